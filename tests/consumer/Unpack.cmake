# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Makes the Debian packages of the build folder BUILD and unpacks them in the empty folder ROOT.

file(REMOVE_RECURSE "${ROOT}" "${ROOT}.deb")
file(MAKE_DIRECTORY "${ROOT}")
execute_process(COMMAND "${CPACK}" -G DEB -B "${ROOT}.deb" WORKING_DIRECTORY "${BUILD}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "cpack ended with ${status}")
endif()
file(GLOB packages "${ROOT}.deb/libtessera*.deb")
if(NOT packages MATCHES "/libtessera-dev_")
  message(FATAL_ERROR "there is no libtessera-dev among the packages: ${packages}")
endif()
foreach(package IN LISTS packages)
  execute_process(COMMAND "${DPKG_DEB}" --info "${package}" control)
  execute_process(COMMAND "${DPKG_DEB}" --extract "${package}" "${ROOT}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "dpkg-deb ended with ${status}")
  endif()
endforeach()
