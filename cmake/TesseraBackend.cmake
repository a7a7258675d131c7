# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# tessera_add_backend(<name> LANGUAGE CXX|CUDA|HIP [LIBRARY <target>] SOURCES <file>...)
#
# Compiles the sources without Kokkos' flags and puts the objects into the library (`tessera` unless named). A backend includes no
# Kokkos header; the vendor's compiler alone builds it, whatever Kokkos was built with.
function(tessera_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LANGUAGE;LIBRARY" "SOURCES")
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY tessera)
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  if(arg_LANGUAGE STREQUAL "HIP")
    tessera_add_hip_objects(${name} ${arg_LIBRARY} ${arg_SOURCES})
    return()
  endif()
  set(objects tessera_backend_${name})
  add_library(${objects} OBJECT ${arg_SOURCES})
  tessera_own_target(${objects})
  tessera_host_only(${objects})
  target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}"
                                                "${PROJECT_BINARY_DIR}/src")
  target_compile_features(${objects} PRIVATE cxx_std_17)
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${objects} PRIVATE ${tessera_backend_sanitizer_flags})
  if(arg_LANGUAGE STREQUAL "CUDA")
    set_target_properties(${objects} PROPERTIES CUDA_ARCHITECTURES "${Tessera_CUDA_ARCHITECTURES}" CUDA_STANDARD 17
                                                CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Shared)
    target_link_libraries(${objects} PRIVATE CUDA::cudart)
    if(Tessera_DEVICE_FEWER_WIDTHS)
      target_compile_definitions(${objects} PRIVATE TESSERA_DEVICE_FEWER_WIDTHS)
    endif()
  endif()
  target_sources(${arg_LIBRARY} PRIVATE $<TARGET_OBJECTS:${objects}>)
endfunction()

# Sources in backends/hip/ whose assembly the tests read (tests/compile): name, number of kernels, whether they multiply
# with matrix instructions. Their compilation leaves the assembly beside the object.
set(tessera_hip_assembly Dasp:9:ON Flash:21:ON Panels:8:ON GeSpmm:41:OFF Attention:30:ON AttentionBackward:44:ON
                         Conformance:4:ON)
if(Tessera_DEVICE_FEWER_WIDTHS)
  list(TRANSFORM tessera_hip_assembly REPLACE "^Attention:30:" "Attention:14:")
  list(TRANSFORM tessera_hip_assembly REPLACE "^AttentionBackward:44:" "AttentionBackward:28:")
  list(TRANSFORM tessera_hip_assembly REPLACE "^Dasp:9:" "Dasp:5:")
  list(TRANSFORM tessera_hip_assembly REPLACE "^GeSpmm:41:" "GeSpmm:25:")
endif()

# CMake's own HIP language cannot be enabled with the hipcc of Debian 12, so hipcc is called directly.
function(tessera_add_hip_objects name library)
  set(flags -x hip -std=c++17 -fPIC -Wall -Wextra)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    list(APPEND flags -O0 -g)
  else()
    list(APPEND flags -O3 -DNDEBUG)
  endif()
  if(Tessera_ENABLE_WERROR)
    list(APPEND flags -Werror)
  endif()
  if(Tessera_DEVICE_FEWER_WIDTHS)
    list(APPEND flags -DTESSERA_DEVICE_FEWER_WIDTHS)
  endif()
  foreach(architecture IN LISTS Tessera_HIP_ARCHITECTURES)
    list(APPEND flags "--offload-arch=${architecture}")
  endforeach()
  # The user's own come last, as in CMake's languages.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  separate_arguments(user_flags UNIX_COMMAND "${CMAKE_HIP_FLAGS} ${CMAKE_HIP_FLAGS_${build_type}}")
  list(APPEND flags ${user_flags})
  set(objects "")
  foreach(source IN LISTS ARGN)
    get_filename_component(file "${source}" NAME)
    set(own_flags "")
    if(Tessera_HIP_UNOPTIMIZED AND file MATCHES "${Tessera_HIP_UNOPTIMIZED}")
      set(own_flags -O0 -DTESSERA_UNOPTIMIZED)
    endif()
    string(REGEX REPLACE "^Tessera_Hip(.+)[.]hip$" "\\1" checked "${file}")
    if(Tessera_ENABLE_TESTS AND "${tessera_hip_assembly}" MATCHES "(^|;)${checked}:")
      list(APPEND own_flags -save-temps=obj)
    endif()
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}/${file}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/${name}"
      COMMAND "${Tessera_HIPCC}" ${flags} ${own_flags} "-I${PROJECT_SOURCE_DIR}/src" "-I${PROJECT_SOURCE_DIR}"
              "-I${PROJECT_BINARY_DIR}/src" -MD -MF "${object}.d" -MT "${object}" -c "${source}" -o "${object}"
      DEPENDS "${source}"
      DEPFILE "${object}.d"
      COMMENT "Building HIP object ${file}.o"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_custom_target(tessera_backend_${name} DEPENDS ${objects})
  set_source_files_properties(${objects} TARGET_DIRECTORY ${library} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_sources(${library} PRIVATE ${objects})
  add_dependencies(${library} tessera_backend_${name})
endfunction()

if(Tessera_ENABLE_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Only for CMake's check of the compiler; the backend's own architectures are set on its target.
    set(CMAKE_CUDA_ARCHITECTURES "${Tessera_CUDA_ARCHITECTURES}")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # One CUDA runtime per program: Kokkos links the shared one.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  if(NOT PROJECT_IS_TOP_LEVEL)
    tessera_make_global(CUDA::cudart)
  endif()
endif()

if(Tessera_ENABLE_HIP)
  find_program(Tessera_HIPCC hipcc HINTS ENV ROCM_PATH ENV HIP_PATH PATHS /opt/rocm PATH_SUFFIXES bin)
  if(NOT Tessera_HIPCC)
    message(FATAL_ERROR "Tessera_ENABLE_HIP needs hipcc; none was found on the PATH or under ROCM_PATH "
                        "(Debian: hipcc rocm-device-libs libamdhip64-dev).")
  endif()
  include(TesseraHipRuntime)
  tessera_find_hip_runtime(REQUIRED)
endif()
