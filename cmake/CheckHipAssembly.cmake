# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Static check of a HIP source by the assembly of its object, for want of a device to run it on: every kernel, but those
# that add partial sums, issues matrix instructions (PRODUCTS=OFF: none does), and all keep everything in registers.
#
#   cmake -DASSEMBLY=FILE.s [-DKERNELS=<how many are expected>] [-DPRODUCTS=OFF] -P cmake/CheckHipAssembly.cmake

if(NOT EXISTS "${ASSEMBLY}")
  message(FATAL_ERROR "CheckHipAssembly: -DASSEMBLY=... names no file: '${ASSEMBLY}'")
endif()

# What has a meaning in a CMake list is taken out before the text becomes one: an element per kernel.
file(READ "${ASSEMBLY}" text)
string(REPLACE ";" "#" text "${text}")
string(REPLACE "[" "(" text "${text}")
string(REPLACE "]" ")" text "${text}")
string(REPLACE "# -- Begin function " ";" functions "${text}")

set(kernels 0)
set(faults "")
foreach(function IN LISTS functions)
  if(NOT function MATCHES "\\.amdhsa_kernel ([A-Za-z0-9_]+)")
    continue()
  endif()
  set(name "${CMAKE_MATCH_1}")
  math(EXPR kernels "${kernels} + 1")
  string(REGEX MATCHALL "\n[ \t]+v_mfma_[a-z0-9_]+" products "${function}")
  list(LENGTH products count)
  string(REGEX REPLACE ".*\n# ScratchSize: ([0-9]+).*" "\\1" scratch "${function}")
  string(REGEX REPLACE ".*\n# TotalNumVgprs: ([0-9]+).*" "\\1" vectors "${function}")
  string(REGEX REPLACE ".*\n# Occupancy: ([0-9]+).*" "\\1" waves "${function}")
  if(DEFINED PRODUCTS AND NOT PRODUCTS)
    set(product "matrix instructions")
    if(count GREATER 0)
      list(APPEND faults "${name}: ${count} matrix instructions, none expected")
    endif()
  elseif(count EQUAL 0 AND name MATCHES "AddPartialsBody|MergeBody")
    set(product "additions of partial sums only")
  elseif(count EQUAL 0)
    list(APPEND faults "${name}: no v_mfma instruction")
  else()
    list(GET products 0 product)
    string(STRIP "${product}" product)
    # The name of the atom in the kernel's name says which instruction it must be.
    foreach(pair "M16N16K4_F64:v_mfma_f64_16x16x4" "M16N16K4_F32:v_mfma_f32_16x16x4" "F32_F16:v_mfma_f32_16x16x16"
                 "F32_BF16:v_mfma_f32_16x16x16")
      string(REPLACE ":" ";" pair "${pair}")
      list(GET pair 0 atom)
      list(GET pair 1 wanted)
      if(name MATCHES "${atom}E" AND NOT product MATCHES "^${wanted}")
        list(APPEND faults "${name}: ${product} instead of ${wanted}")
      endif()
    endforeach()
  endif()
  if(NOT scratch STREQUAL "0")
    list(APPEND faults "${name}: ${scratch} bytes of scratch per lane")
  endif()
  message(STATUS "${name}: ${count} ${product}, scratch ${scratch}, ${vectors} vector registers, "
                 "${waves} waves per SIMD")
endforeach()

# The same facts as the loader sees them.
string(REGEX MATCHALL "\\.(private_segment_fixed_size|vgpr_spill_count): +[1-9][0-9]*" metadata "${text}")
foreach(entry IN LISTS metadata)
  list(APPEND faults "metadata: ${entry}")
endforeach()
string(REGEX MATCHALL "\\.private_segment_fixed_size: +0" clean "${text}")
list(LENGTH clean clean)
if(NOT clean EQUAL kernels)
  list(APPEND faults "${clean} of ${kernels} kernels have .private_segment_fixed_size: 0")
endif()
if(kernels EQUAL 0 OR (DEFINED KERNELS AND NOT kernels EQUAL KERNELS))
  list(APPEND faults "${kernels} kernels found, ${KERNELS} expected")
endif()

if(faults)
  string(REPLACE ";" "\n  " faults "${faults}")
  message(FATAL_ERROR "CheckHipAssembly: ${ASSEMBLY}:\n  ${faults}")
endif()
message(STATUS "${ASSEMBLY}: ${kernels} kernels as expected and without scratch")
