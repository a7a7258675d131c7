# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# tessera_probe, PROBE, in the folder BINARY: exit statuses, every group in a quick run, the file that it writes.

file(REMOVE_RECURSE "${BINARY}")
file(MAKE_DIRECTORY "${BINARY}")

function(expect status)
  execute_process(
    COMMAND "${PROBE}" ${ARGN}
    WORKING_DIRECTORY "${BINARY}"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE out
    ERROR_VARIABLE err)
  if(NOT result STREQUAL status)
    list(JOIN ARGN " " line)
    message(SEND_ERROR "tessera_probe ${line}: ended with ${result} instead of ${status}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# Says what CMakeLists.txt's SKIP_REGULAR_EXPRESSION looks for.
execute_process(COMMAND "${PROBE}" --help RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE err)
if(err MATCHES "error while loading shared libraries: lib(cuda|amdhip64)")
  message("bench skipped: ${err}")
  return()
endif()

expect(0 --help)
expect(2 --no-such-option)
expect(2 --only abacus)
expect(2 --repeat 0)

execute_process(COMMAND "${PROBE}" --quick --only launch RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE err)
if(result EQUAL 5 AND err MATCHES "no CUDA device")
  message("bench skipped: ${err}")
  return()
endif()

expect(0 --quick --json p.json)
foreach(title "Streams by working set" "Random gathers by working set" "Launches" "Matrix instructions" "memory")
  if(NOT out MATCHES "${title}")
    message(SEND_ERROR "no table '${title}':\n${out}")
  endif()
endforeach()

file(READ "${BINARY}/p.json" json)
foreach(key device execution_space kokkos compiler date quick)
  string(JSON value ERROR_VARIABLE missing GET "${json}" context ${key})
  if(missing)
    message(SEND_ERROR "p.json: the context has no ${key}")
  endif()
endforeach()
string(JSON count LENGTH "${json}" ceilings)
math(EXPR last "${count} - 1")
set(groups "")
foreach(i RANGE ${last})
  foreach(key group name available unavailable working_set_bytes seconds_median seconds_min goperations_per_second
              gbytes_per_second gflops)
    string(JSON value ERROR_VARIABLE missing GET "${json}" ceilings ${i} ${key})
    if(missing)
      message(SEND_ERROR "p.json: ceiling ${i} has no ${key}")
    endif()
  endforeach()
  string(JSON group GET "${json}" ceilings ${i} group)
  string(JSON available GET "${json}" ceilings ${i} available)
  string(JSON reason GET "${json}" ceilings ${i} unavailable)
  string(JSON seconds GET "${json}" ceilings ${i} seconds_median)
  list(APPEND groups "${group}")
  string(JSON rate GET "${json}" ceilings ${i} gbytes_per_second)
  if(rate GREATER 50000)
    string(JSON name GET "${json}" ceilings ${i} name)
    message(SEND_ERROR "p.json: ${name} at ${rate} GB/s: the compiler left the reads out")
  endif()
  # A figure, or why there is none.
  if(available AND NOT seconds GREATER 0 AND NOT group STREQUAL "launch")
    message(SEND_ERROR "p.json: ceiling ${i} took ${seconds} seconds")
  elseif(NOT available AND reason STREQUAL "")
    message(SEND_ERROR "p.json: ceiling ${i} does not say why it is not available")
  endif()
endforeach()
list(REMOVE_DUPLICATES groups)
if(NOT groups STREQUAL "stream;gather;launch;matrix unit;shared")
  message(SEND_ERROR "p.json holds the groups ${groups}")
endif()
expect(1 --quick --only launch --json no_such_folder/p.json)
