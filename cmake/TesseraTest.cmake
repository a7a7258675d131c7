# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# tessera_test_options(<target> [QUICK])
# Flags and precompiled header of a test program. QUICK: it takes longer to compile than to run, and is not optimised where
# examples are not.
function(tessera_test_options target)
  if("${ARGV1}" STREQUAL "QUICK" AND tessera_unoptimized_programs)
    tessera_precompile(${target} REUSE_FROM tessera_precompiled)
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O0>")
  else()
    tessera_precompile(${target} REUSE_FROM tessera_test_support)
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:${Tessera_TEST_FLAGS}>")
  endif()
endfunction()

# tessera_add_test(<name> LABEL <label> SOURCES <file>... [LIBRARIES <target>...] [QUICK])
# One GoogleTest program; each of its tests becomes a ctest entry "<label>.<suite>.<test>". With Tessera_TEST_SHARDS = n
# there are n entries "<program>.<shard>" per program instead, each of which runs every n-th test in one process: starting a
# process and Kokkos per test takes longer than most tests.
function(tessera_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK" "LABEL" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  tessera_own_target(${name})
  target_compile_definitions(${name} PRIVATE TESSERA_EXAMPLE_DATA="${PROJECT_SOURCE_DIR}/example/data")
  target_link_libraries(${name} PRIVATE tessera_test_main ${arg_LIBRARIES})
  set(quick "")
  if(arg_QUICK)
    set(quick QUICK)
  endif()
  tessera_test_options(${name} ${quick})
  if(Tessera_TEST_FEWER_TYPES)
    target_compile_definitions(${name} PRIVATE TESSERA_TEST_FEWER_TYPES)
  endif()
  if(Tessera_TEST_BESIDE_SANITIZED)
    target_compile_definitions(${name} PRIVATE TESSERA_TEST_BESIDE_SANITIZED)
  endif()
  if(Tessera_DEVICE_FEWER_WIDTHS)
    target_compile_definitions(${name} PRIVATE TESSERA_TEST_DEVICES_SKIP)
  endif()
  if(Tessera_TEST_SHARDS)
    string(REPLACE "tessera_test_" "" program ${name})
    foreach(shard RANGE 1 ${Tessera_TEST_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${program}.${shard} COMMAND ${name})
      set_tests_properties(
        ${program}.${shard}
        PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 1800 ENVIRONMENT
                   "GTEST_TOTAL_SHARDS=${Tessera_TEST_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
    return()
  endif()
  # Listed when ctest runs and not by the build: a program with a device backend may not start where it is built.
  gtest_discover_tests(
    ${name}
    TEST_PREFIX "${arg_LABEL}."
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 600
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120)
endfunction()

# tessera_add_header_tests(<name> STANDARD <17|20> [TOGETHER] HEADERS <file>... [INCLUDES <folder>...]
#                          [LIBRARIES <target>...] [PRECOMPILE <header>])
# Every header compiles alone, twice in one file (its guard), under one standard; TOGETHER: all of them in one file. The
# objects are built by the ctest entry "compile.<name>" and not by the default build, where they would be paid for again
# and again.
function(tessera_add_header_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TOGETHER" "STANDARD;PRECOMPILE" "HEADERS;INCLUDES;LIBRARIES")
  set(units "")
  foreach(header IN LISTS arg_HEADERS)
    string(MAKE_C_IDENTIFIER "${header}" unit)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/${name}/${unit}.cpp")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND units "${unit}")
  endforeach()
  if(NOT units)
    return()
  endif()
  if(arg_TOGETHER)
    list(TRANSFORM arg_HEADERS REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
    list(JOIN lines "" content)
    set(units "${CMAKE_CURRENT_BINARY_DIR}/${name}/all.cpp")
    file(CONFIGURE OUTPUT "${units}" CONTENT "${content}")
  endif()
  add_library(tessera_${name} OBJECT EXCLUDE_FROM_ALL ${units})
  tessera_own_target(tessera_${name})
  target_include_directories(tessera_${name} PRIVATE ${arg_INCLUDES})
  target_link_libraries(tessera_${name} PRIVATE ${arg_LIBRARIES})
  # Only the front end matters here.
  target_compile_options(tessera_${name} PRIVATE -O0 -g0)
  if(arg_PRECOMPILE)
    target_precompile_headers(tessera_${name} PRIVATE "${arg_PRECOMPILE}")
  endif()
  set_target_properties(tessera_${name} PROPERTIES CXX_STANDARD ${arg_STANDARD} CXX_STANDARD_REQUIRED ON
                                                   UNITY_BUILD OFF)
  add_test(NAME compile.${name} COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --config $<CONFIG> --target
                                        tessera_${name})
  # Two builds in one folder at a time are one too many.
  set_tests_properties(compile.${name} PROPERTIES LABELS compile RESOURCE_LOCK tessera_build_folder TIMEOUT 1800)
endfunction()
