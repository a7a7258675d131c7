# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Target tessera_doc, where Doxygen is found: HTML of the public headers and the manual in doc/html, what Doxygen misses
# in doc/warnings.txt, which fails the target. Not part of the default build.

find_package(Doxygen 1.9 QUIET)
if(DOXYGEN_FOUND)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in" "${PROJECT_BINARY_DIR}/doc/Doxyfile" @ONLY)
  add_custom_target(
    tessera_doc
    COMMAND Doxygen::doxygen "${PROJECT_BINARY_DIR}/doc/Doxyfile"
    # Doxygen does not copy pictures that pages name with their folder.
    COMMAND "${CMAKE_COMMAND}" -E copy_directory "${PROJECT_SOURCE_DIR}/example/manual/figures"
            "${PROJECT_BINARY_DIR}/doc/html/figures"
    COMMENT "Tessera: documentation in ${PROJECT_BINARY_DIR}/doc/html"
    VERBATIM)
endif()
