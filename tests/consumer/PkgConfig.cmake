# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Builds SOURCE with nothing but the compiler and what pkg-config says of the installed TESSERA, and runs it.

function(flags_of kind result)
  execute_process(COMMAND "${PKG_CONFIG}" ${kind} tessera OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "pkg-config ${kind} tessera ended with ${status}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE file "${TESSERA}/*/tessera.pc")
get_filename_component(directory "${file}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${directory}")
flags_of(--cflags compile)
flags_of(--libs link)
execute_process(COMMAND "${COMPILER}" ${compile} "${SOURCE}" -o "${BINARY}" ${link} COMMAND_ECHO STDOUT
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the compiler ended with ${status}")
endif()
set(ENV{LD_LIBRARY_PATH} "${directory}/..:$ENV{LD_LIBRARY_PATH}")  # of shared libraries
execute_process(COMMAND "${BINARY}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the program ended with ${status}")
endif()
