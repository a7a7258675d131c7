# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Makes the Debian package of the build folder BUILD and unpacks it in the empty folder ROOT.

file(REMOVE_RECURSE "${ROOT}")
file(MAKE_DIRECTORY "${ROOT}")
execute_process(COMMAND "${CPACK}" -G DEB -B "${ROOT}.deb" WORKING_DIRECTORY "${BUILD}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "cpack ended with ${status}")
endif()
file(GLOB package "${ROOT}.deb/libtessera-dev_*.deb")
execute_process(COMMAND "${DPKG_DEB}" --info ${package} COMMAND "${CMAKE_COMMAND}" -E cat)
execute_process(COMMAND "${DPKG_DEB}" --extract ${package} "${ROOT}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "dpkg-deb ended with ${status}")
endif()
