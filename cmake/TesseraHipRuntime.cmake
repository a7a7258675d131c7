# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# tessera_find_hip_runtime([REQUIRED]): target Tessera::hip_runtime, the library that HIP objects call. The vendor's own
# package file is not used, because it asks for the compiler's packages too, which a user of a built Tessera has no use
# for.
function(tessera_find_hip_runtime)
  if(TARGET Tessera::hip_runtime)
    return()
  endif()
  find_library(Tessera_HIP_RUNTIME amdhip64 HINTS ENV ROCM_PATH ENV HIP_PATH PATHS /opt/rocm PATH_SUFFIXES lib lib64)
  mark_as_advanced(Tessera_HIP_RUNTIME)
  if(Tessera_HIP_RUNTIME)
    add_library(Tessera::hip_runtime UNKNOWN IMPORTED GLOBAL)
    set_target_properties(Tessera::hip_runtime PROPERTIES IMPORTED_LOCATION "${Tessera_HIP_RUNTIME}"
                                                          INTERFACE_COMPILE_DEFINITIONS __HIP_PLATFORM_AMD__=1)
  elseif("${ARGN}" STREQUAL "REQUIRED")
    message(FATAL_ERROR "Tessera's HIP backend needs libamdhip64; none was found (Debian: libamdhip64-dev).")
  endif()
endfunction()
