# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Configures SOURCE in BINARY from nothing, builds it, and runs its tests. TESSERA is the prefix of an installed Tessera,
# TESSERA_SOURCE a source tree of it. STANDARD, if given, is the C++ that the project asks for; the library's own is 17.

set(ENV{CMAKE_BUILD_PARALLEL_LEVEL} 2)

function(run)
  list(JOIN ARGN " " line)
  message(STATUS "${line}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "consumer: this command ended with ${status}: ${line}")
  endif()
endfunction()

file(REMOVE_RECURSE "${BINARY}")
set(arguments -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}" -DCMAKE_BUILD_TYPE=Release
              "-DCMAKE_CXX_COMPILER=${COMPILER}")
if(STANDARD)
  list(APPEND arguments -DCMAKE_CXX_STANDARD=${STANDARD} -DCMAKE_CXX_STANDARD_REQUIRED=ON)
endif()
if(TESSERA)
  # Kokkos is not named: the package has to find the one it was built with.
  list(APPEND arguments "-DCMAKE_PREFIX_PATH=${TESSERA}")
else()
  # The library once more, only to see that it builds and links here, and that it does so without compiled plans: its
  # optimised code is tested where it is built, and compiled plans in what was installed. Emulation, which is built like
  # what hosts multiply with, would be two thirds of the time; of that itself one text in four precisions.
  list(APPEND arguments "-DTESSERA_SOURCE=${TESSERA_SOURCE}" "-DKokkos_ROOT=${KOKKOS}" "-DCMAKE_CXX_FLAGS_RELEASE=-O0"
       -DTessera_ENABLE_COMPILED_PLANS=OFF -DTessera_ENABLE_EMULATION=OFF
       "-DTessera_LEFT_OUT=HostPacked(Bf16|Fp32|Fp64|Mixed)")
endif()
run("${CMAKE_COMMAND}" ${arguments})
run("${CMAKE_COMMAND}" --build "${BINARY}")
run("${CTEST}" --test-dir "${BINARY}" --output-on-failure --no-tests=error)
