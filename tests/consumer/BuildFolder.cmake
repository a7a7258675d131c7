# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Who looks for the package in BUILD, where it is not installed, is told so.

find_package(Tessera CONFIG QUIET PATHS "${BUILD}" NO_DEFAULT_PATH)
if(Tessera_FOUND OR NOT Tessera_NOT_FOUND_MESSAGE MATCHES "cmake --install")
  message(FATAL_ERROR "consumer: found '${Tessera_FOUND}', message '${Tessera_NOT_FOUND_MESSAGE}'")
endif()
