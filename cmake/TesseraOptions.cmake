# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Every option in one place. Needs Tessera_KOKKOS_DEVICES (TesseraKokkos.cmake).

foreach(device CUDA HIP)
  if("${device}" IN_LIST Tessera_KOKKOS_DEVICES)
    set(tessera_default_${device} ON)
  else()
    set(tessera_default_${device} OFF)
  endif()
endforeach()

# The device backends know no Kokkos: they may be on beside a Kokkos that has no device at all.
option(Tessera_ENABLE_CUDA "Build the CUDA backend (default: what Kokkos enables)" ${tessera_default_CUDA})
option(Tessera_ENABLE_HIP "Build the HIP backend (default: what Kokkos enables)" ${tessera_default_HIP})
# Headers only, and only for the compiled library: who uses a built Tessera needs no Boost.
find_package(Boost 1.66 QUIET)
if(Boost_FOUND AND NOT Boost_INCLUDE_DIRS AND TARGET Boost::headers)
  get_target_property(Boost_INCLUDE_DIRS Boost::headers INTERFACE_INCLUDE_DIRECTORIES)
endif()
set(tessera_default_BOOST OFF)
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(EXISTS "${directory}/boost/graph/cuthill_mckee_ordering.hpp")
    set(tessera_default_BOOST ON)
  endif()
endforeach()
option(Tessera_ENABLE_BOOST "Reordering with Boost Graph's Cuthill-McKee (default: whether Boost is found)"
       ${tessera_default_BOOST})
if(Tessera_ENABLE_BOOST AND NOT tessera_default_BOOST)
  message(FATAL_ERROR "Tessera_ENABLE_BOOST needs the headers of Boost Graph 1.66 or later, which were not found. Give "
                      "their prefix in CMAKE_PREFIX_PATH or Boost_ROOT, install your system's package (Debian: "
                      "libboost-dev), or set the option to OFF: reorder::rcm then throws NotSupported.")
endif()
# Headers only: an application can use the adapter whatever this says.
option(Tessera_ENABLE_TPETRA "Build tests, examples and the benchmark of the Tpetra operator (needs Trilinos and MPI)" OFF)
option(Tessera_ENABLE_MUELU "With Tessera_ENABLE_TPETRA: build the example with MueLu, too" OFF)
option(Tessera_ENABLE_PYTHON "Build the Python package tessera (needs Python's headers and nanobind)" OFF)

# tessera_optional(<option> <text> <package> <Debian's package> ...)
# On at the top level where the packages are found; where one is missing the option is off with a warning, or, when the
# user switched it on, an error.
function(tessera_optional name text)
  set(missing "")
  set(packages ${ARGN})
  if(NOT PROJECT_IS_TOP_LEVEL AND NOT ${name})
    set(packages "")  # a project that includes Tessera has no use for them
  endif()
  while(packages)
    list(POP_FRONT packages package debian)
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      list(APPEND missing "${package} (Debian: ${debian})")
    endif()
  endwhile()
  list(JOIN missing ", " missing)
  set(default ${PROJECT_IS_TOP_LEVEL})
  if(missing AND NOT DEFINED CACHE{${name}})
    set(default OFF)
    message(WARNING "${name} is OFF, because these were not found: ${missing}. Install them and say -D${name}=ON.")
  elseif(missing AND ${name})
    message(FATAL_ERROR "${name} needs ${missing}. Give their prefix in CMAKE_PREFIX_PATH, or set it to OFF.")
  endif()
  option(${name} "${text}" ${default})
endfunction()

tessera_optional(Tessera_ENABLE_TESTS "Build the tests" GTest libgtest-dev nlohmann_json nlohmann-json3-dev)
tessera_optional(Tessera_ENABLE_PERF_TESTS "Build the benchmark driver" CLI11 libcli11-dev nlohmann_json nlohmann-json3-dev)
option(Tessera_ENABLE_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(Tessera_ENABLE_COMPILED_PLANS "Compile the plans of the usual types once, for Tessera::tessera" ON)
option(BUILD_SHARED_LIBS "Build shared libraries" OFF)
option(Tessera_ENABLE_EMULATION "Compile the emulated units (development: OFF is for programs that name none of them)" ON)
if(BUILD_SHARED_LIBS AND NOT Tessera_ENABLE_EMULATION)
  message(FATAL_ERROR "Shared libraries name the emulated units: Tessera_ENABLE_EMULATION=OFF needs static ones.")
endif()
set(Tessera_OPERATIONS "${Tessera_ALL_OPERATIONS}"
    CACHE STRING "Operations whose plans are compiled once, tested and measured; headers hold all of them in any case")
foreach(operation IN LISTS Tessera_OPERATIONS)
  if(NOT operation IN_LIST Tessera_ALL_OPERATIONS)
    message(FATAL_ERROR "Tessera_OPERATIONS: there is no '${operation}', only ${Tessera_ALL_OPERATIONS}")
  endif()
endforeach()
# These are made of others: SDDMM and attention share the windows of an SpMM plan, attention's chain has an SDDMM.
if("attention" IN_LIST Tessera_OPERATIONS)
  list(APPEND Tessera_OPERATIONS sddmm spmm)
elseif("sddmm" IN_LIST Tessera_OPERATIONS)
  list(APPEND Tessera_OPERATIONS spmm)
endif()
list(REMOVE_DUPLICATES Tessera_OPERATIONS)
option(Tessera_ENABLE_INSTALL "Create the install rules" ON)
option(Tessera_ENABLE_WERROR "Treat warnings in Tessera's own sources as errors (development)" OFF)
option(Tessera_ENABLE_SANITIZERS "Build with the address and undefined-behaviour sanitizers (development)" OFF)
if(Tessera_ENABLE_SANITIZERS AND Tessera_ENABLE_PYTHON)
  message(FATAL_ERROR "Tessera_ENABLE_PYTHON does not go with Tessera_ENABLE_SANITIZERS: Python itself is not sanitized.")
endif()

# Debug builds keep their own. Kokkos' nvcc_wrapper wants one -O only.
set(tessera_default_TEST_FLAGS "")
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT "CUDA" IN_LIST Tessera_KOKKOS_DEVICES)
  set(tessera_default_TEST_FLAGS -O1)
endif()
set(Tessera_TEST_FLAGS "${tessera_default_TEST_FLAGS}"
    CACHE STRING "Last flags of the test programs in release builds (-O1 halves their compile time)")
set(Tessera_PERF_TEST_FLAGS ""
    CACHE STRING "Last flags of the benchmarks in release builds (development; its figures need the default)")
set(Tessera_EXAMPLE_FLAGS "" CACHE STRING "Last flags of the examples in release builds; -O0: also of test programs that compute little (development)")
set(Tessera_PYTHON_FLAGS "" CACHE STRING "Last flags of the Python package in release builds (development)")
set(Tessera_UNOPTIMIZED ""
    CACHE STRING "Regular expression: files of the library, as spmv_float_int (a compiled plan) or HostBsr, that release builds compile at -Og (development)")
set(Tessera_LEFT_OUT ""
    CACHE STRING "Regular expression: files of the library, as for Tessera_UNOPTIMIZED but plans, that are left out for programs that name nothing of them (development)")
set(Tessera_PLANS_TOGETHER 0
    CACHE STRING "So many compiled plans are one translation unit, but those with flags of their own (development)")
set(Tessera_TEST_SHARDS 0 CACHE STRING "Per test program so many ctest entries; 0: one per test (development)")
set(Tessera_TEST_TOGETHER 0
    CACHE STRING "So many files of a test program are one translation unit, and what is alike in the benchmark and in the Python package; 0: each by itself (development)")
option(Tessera_TEST_FEWER_TYPES "Tests leave out types that differ from others in arithmetic or offsets only, and some widths (development)" OFF)
option(Tessera_TEST_BESIDE_SANITIZED
       "Tests of emulated units leave out what a sanitized build with Tessera_TEST_FEWER_TYPES runs; shorter lists of cases (development)" OFF)

# Those of a Kokkos with a device, which runs on no other; matrix units of CUDA begin with 80. Beside a Kokkos without a
# device 80 also as PTX, which later devices compile at load time.
set(tessera_default_CUDA_ARCHITECTURES "80;89-real;90-real")
set(tessera_default_HIP_ARCHITECTURES gfx90a)
foreach(device CUDA HIP)
  if("${device}" IN_LIST Tessera_KOKKOS_DEVICES AND Kokkos_${device}_ARCHITECTURES)
    set(tessera_default_${device}_ARCHITECTURES "${Kokkos_${device}_ARCHITECTURES}")
  endif()
endforeach()
if(tessera_default_CUDA_ARCHITECTURES MATCHES "(^|;)[1-7][0-9](-|;|$)")
  set(tessera_default_CUDA_ARCHITECTURES 80)
endif()
set(Tessera_CUDA_ARCHITECTURES "${tessera_default_CUDA_ARCHITECTURES}"
    CACHE STRING "CUDA architectures, as in CMAKE_CUDA_ARCHITECTURES")
set(Tessera_HIP_ARCHITECTURES "${tessera_default_HIP_ARCHITECTURES}"
    CACHE STRING "AMD GPU architectures, as in hipcc --offload-arch")
option(Tessera_DEVICE_FEWER_WIDTHS
       "Of attention, SDDMM and packed slices on devices only FP16 has every kernel, tests of devices have fewer types (development, where nothing runs them)" OFF)
set(Tessera_HIP_UNOPTIMIZED "" CACHE STRING "Regular expression: files that hipcc compiles at -O0 (development)")

if(Tessera_ENABLE_SANITIZERS)
  # Errors end the program, so that ctest sees them.
  # The address sanitizer ends a program at a null pointer and at a wrong address, too, and nothing here is virtual:
  # checks at every member access would make compiling twice as long, those of pointers' sums half as long again.
  # Alignment, and zones around local variables, only in the backends (tessera_add_backend): words are wide there, and
  # lanes' registers are arrays that are copied by pointers. Elsewhere both together were two fifths of the compile
  # time; there indices of arrays are checked by themselves, and overruns of the heap. What reads by numbers of bytes,
  # which no sanitizer sees, the emulation checks itself (interface/Tessera_Aligned.hpp).
  set(tessera_sanitizer_flags
      -fsanitize=address,undefined -fno-sanitize=null,vptr,object-size,pointer-overflow,alignment
      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(tessera_backend_sanitizer_flags -fsanitize=alignment)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND tessera_sanitizer_flags --param=asan-stack=0)
    # Less of what makes emulated kernels fast: a sixth less to compile. Calls instead of checks in place would save more
    # there, but cost tests more than that.
    list(APPEND tessera_backend_sanitizer_flags --param=asan-stack=1 -fira-region=one -fno-tree-pta
         -fno-tree-dominator-opts)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${tessera_sanitizer_flags}>")
  add_link_options(${tessera_sanitizer_flags})
endif()

# Warnings for our own targets only: a project that includes Tessera keeps its own choice.
function(tessera_own_target target)
  # nvcc knows the pragmas meant for it; the host compiler that sees them next does not.
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>"
                                           "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas>")
  if("CUDA" IN_LIST Tessera_KOKKOS_DEVICES)
    # The C++ compiler is then Kokkos' nvcc_wrapper.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>")
  endif()
  if(Tessera_ENABLE_WERROR)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
                                             "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>")
  endif()
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CUDA_EXTENSIONS OFF)
endfunction()

# tessera_shared_properties(<target>)
# Of a shared library: its version, and that it exports names of Tessera alone, not what it made of Kokkos' templates.
function(tessera_shared_properties target)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "SHARED_LIBRARY")
    return()
  endif()
  # Before 1.0 a minor number may change the interface.
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION
                                                                        ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(map "${PROJECT_SOURCE_DIR}/cmake/Tessera.map")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  endif()
endfunction()

# Of the sources those that Tessera_UNOPTIMIZED names, with or without the prefix of our files.
function(tessera_unoptimized)
  if(Tessera_UNOPTIMIZED)
    list(FILTER ARGN INCLUDE REGEX "/(Tessera_)?(${Tessera_UNOPTIMIZED})[.]cpp$")
    foreach(file IN LISTS ARGN)
      set_source_files_properties("${file}" PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Og>")
    endforeach()
  endif()
endfunction()

# tessera_leave_out(<list of sources>): takes from it those that Tessera_LEFT_OUT names.
function(tessera_leave_out list)
  if(Tessera_LEFT_OUT)
    list(FILTER ${list} EXCLUDE REGEX "/Tessera_(${Tessera_LEFT_OUT})[.]cpp$")
    set(${list} "${${list}}" PARENT_SCOPE)
  endif()
endfunction()

# tessera_host_only(<target>) or tessera_host_only(SOURCES <file>...)
# For what knows no Kokkos: with Kokkos' nvcc_wrapper as C++ compiler every file would go through nvcc, which takes longer
# and warns about host functions that it believes to be called from a device.
function(tessera_host_only target)
  get_filename_component(compiler "${CMAKE_CXX_COMPILER}" NAME)
  if(NOT compiler MATCHES "^nvcc_wrapper")
    return()
  endif()
  if("${target}" STREQUAL "SOURCES")
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS --host-only)
  else()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:--host-only>")
  endif()
endfunction()

# tessera_precompile(<target> <header>...) or tessera_precompile(<target> REUSE_FROM <target>)
# Most of the compile time of a short file is Kokkos: read once per set of flags. g++ shares a precompiled header between
# targets that differ in warnings, macros of their own and a lower -O, but not in -fPIC; with a higher -O than the header's
# g++ 12 crashes. CMAKE_DISABLE_PRECOMPILE_HEADERS turns it off.
function(tessera_precompile target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR "CUDA" IN_LIST Tessera_KOKKOS_DEVICES)
    return()
  endif()
  if("${ARGV1}" STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
