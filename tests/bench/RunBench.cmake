# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# The command line of tessera_bench, BENCH, in the folder BINARY: its exit statuses and the files that it writes and
# reads. Without a device that its Kokkos needs only what comes before Kokkos is tried.

file(REMOVE_RECURSE "${BINARY}")
file(MAKE_DIRECTORY "${BINARY}/operands")

function(expect status)
  execute_process(
    COMMAND "${BENCH}" ${ARGN}
    WORKING_DIRECTORY "${BINARY}"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE out
    ERROR_VARIABLE err)
  if(NOT result STREQUAL status)
    list(JOIN ARGN " " line)
    message(SEND_ERROR "tessera_bench ${line}: ended with ${result} instead of ${status}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

# Says what CMakeLists.txt's SKIP_REGULAR_EXPRESSION looks for.
macro(skip reason)
  message("bench skipped: ${reason}")
  return()
endmacro()

execute_process(COMMAND "${BENCH}" --help RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE err)
if(err MATCHES "error while loading shared libraries: lib(cuda|amdhip64)")
  skip("${err}")
endif()

set(small "gen:stencil2d:nx=20:ny=15")
expect(0 --help)
expect(0 --list)
expect(2)
expect(2 --no-such-option)
expect(2 --op spmv)
expect(2 --op fft --matrix ${small})
expect(2 --matrix ${small} --algorithm no_such)
expect(2 --matrix ${small} --precision fp8)
expect(2 --matrix ${small} --backend abacus)
expect(2 --matrix ${small} --baseline no_such)
expect(2 --matrix ${small} --dasp threshold)
expect(2 --matrix ${small} --selection guess)
expect(2 --matrix ${small} --n 4)
expect(2 --op read --matrix ${small})
expect(3 --op read --matrix no_such.mtx)
foreach(op spmm sddmm attention spgemm)
  expect(5 --op ${op} --matrix ${small})
endforeach()
expect(5 --matrix ${small} --precision tf32)

execute_process(COMMAND "${BENCH}" --matrix ${small} --quiet --budget 0.01 RESULT_VARIABLE result ERROR_VARIABLE err)
if(result EQUAL 5 AND err MATCHES "no CUDA device")
  skip("${err}")
endif()

set(fast --budget 0.01 --repeat 3)
expect(2 --matrix gen:no_such)
expect(2 --matrix ${small} --algorithm dasp --dasp threshold=7 ${fast})
expect(3 --matrix no_such.mtx)
expect(5 --matrix ${small} --precision fp32 --algorithm dasp ${fast})

# Several matrices, every precision, each result verified, both files.
expect(0 --matrix ${small} --matrix gen:circuit:n=500 --precision fp64,fp32,fp16,bf16 --cold --json r.json --csv r.csv
       ${fast})
file(READ "${BINARY}/r.json" json)
string(JSON records LENGTH "${json}" records)
math(EXPR last "${records} - 1")
foreach(i RANGE ${last})
  foreach(key op algorithm backend precision matrix rows cols nnz n k seconds_median seconds_min gflops
              gbytes_per_second csr_gbytes_per_second setup_seconds update_seconds format_bytes padding_ratio
              workspace_bytes launches error_over_bound verified why)
    string(JSON value ERROR_VARIABLE missing GET "${json}" records ${i} ${key})
    if(missing)
      message(SEND_ERROR "r.json: record ${i} has no ${key}")
    endif()
  endforeach()
  string(JSON verified GET "${json}" records ${i} verified)
  if(NOT verified)
    message(SEND_ERROR "r.json: record ${i} is not verified")
  endif()
endforeach()
file(STRINGS "${BINARY}/r.csv" lines)
list(LENGTH lines count)
math(EXPR expected "${records} + 1")
if(NOT count EQUAL expected)
  message(SEND_ERROR "r.csv has ${count} lines for ${records} records")
endif()

# Every algorithm in every precision, auto told apart from what it takes. csr is named alone: regret measures auto too.
foreach(selection predict measure)
  expect(0 --matrix ${small} --matrix gen:circuit:n=500 --precision fp64,fp32,fp16,bf16 --algorithm auto,packed,csr5,csr
         --regret --selection ${selection} --baseline none --json g.json ${fast})
  if(NOT out MATCHES "auto->" OR NOT out MATCHES "regret of auto" OR NOT out MATCHES "bf16: geometric mean")
    message(SEND_ERROR "--regret: the table lacks auto or its regret:\n${out}${err}")
  endif()
  file(READ "${BINARY}/g.json" json)
  foreach(list_length "records;32" "regret;8" "regret_summary;4" "auto;4")
    list(GET list_length 0 name)
    list(GET list_length 1 expected)
    string(JSON length LENGTH "${json}" ${name})
    if(NOT length EQUAL expected)
      message(SEND_ERROR "g.json: ${name} has ${length} elements instead of ${expected}")
    endif()
  endforeach()
  string(JSON used GET "${json}" context selection)
  if(NOT used STREQUAL selection)
    message(SEND_ERROR "g.json: selection is ${used} instead of ${selection}")
  endif()
endforeach()
expect(0 --matrix ${small} --algorithm csr --regret --baseline none ${fast})
if(NOT out MATCHES "2 verified" OR NOT out MATCHES "auto->")
  message(SEND_ERROR "--regret does not measure auto by itself:\n${out}${err}")
endif()

# Generated values have 8 significant bits: FP64 is stored as float where that is allowed, and only there. The kernel for
# hosts never does that, so hosts ask an emulated device.
string(JSON host GET "${json}" context host)
set(packed --matrix ${small} --algorithm packed --baseline none ${fast})
if(host)
  list(APPEND packed --backend emulated-nvidia)
endif()
expect(0 ${packed} --json full.json)
expect(0 ${packed} --value-classes --json classes.json)
foreach(file full classes)
  file(READ "${BINARY}/${file}.json" json)
  string(JSON ${file}_bytes GET "${json}" records 0 format_bytes)
endforeach()
if(NOT classes_bytes LESS full_bytes)
  message(SEND_ERROR "--value-classes: ${classes_bytes} bytes are not less than ${full_bytes}")
endif()

# Operands written, read again: the same result. csr sums a row in the order of its entries on every host.
set(scalars --alpha -2 --beta 0.5 --baseline none --algorithm csr ${fast})
expect(0 --matrix ${small} ${scalars} --write-operands operands --write-result y1.mtx)
expect(0 --matrix operands/A.mtx --x operands/x.mtx --y operands/y.mtx ${scalars} --write-result y2.mtx)
file(SHA256 "${BINARY}/y1.mtx" first)
file(SHA256 "${BINARY}/y2.mtx" second)
if(NOT first STREQUAL second)
  message(SEND_ERROR "y1.mtx and y2.mtx differ")
endif()
expect(0 --matrix ${small} --precision fp64,fp32 --write-result z.mtx --baseline none --algorithm csr ${fast})
foreach(file z_fp64.mtx z_fp32.mtx)
  if(NOT EXISTS "${BINARY}/${file}")
    message(SEND_ERROR "${file} was not written")
  endif()
endforeach()
expect(3 --matrix operands/A.mtx --x operands/A.mtx ${fast})
expect(3 --matrix operands/A.mtx --beta 1 --y no_such.mtx ${fast})
expect(0 --op read --matrix operands/A.mtx ${fast})
# A file that cannot be read does not keep the others from being measured, nor is it forgotten.
expect(3 --matrix no_such.mtx --matrix ${small} --baseline none --algorithm csr ${fast})
if(NOT out MATCHES "1 verified")
  message(SEND_ERROR "the second matrix was not measured:\n${out}${err}")
endif()
