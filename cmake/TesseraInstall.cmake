# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Install rules and the package files. The installed include directory is include/tessera, so that the headers include
# each other by the same names as in this tree.

include(CMakePackageConfigHelpers)

# Programs that are linked with shared libraries need the component runtime alone.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
set(tessera_includes "${CMAKE_INSTALL_INCLUDEDIR}/tessera")
set(tessera_package "${CMAKE_INSTALL_LIBDIR}/cmake/Tessera")

install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/src/"
  DESTINATION "${tessera_includes}"
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "lib" EXCLUDE
  PATTERN "python" EXCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/src/Tessera_Config.hpp" DESTINATION "${tessera_includes}")
foreach(folder interface host units kernels emulated reference)
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/backends/${folder}"
    DESTINATION "${tessera_includes}/backends"
    FILES_MATCHING
    PATTERN "*.hpp")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CITATION.cff" DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera")

set(tessera_targets tessera)
if(Tessera_ENABLE_COMPILED_PLANS)
  set_target_properties(tessera PROPERTIES EXPORT_NAME core)
  set_target_properties(tessera_plans PROPERTIES EXPORT_NAME tessera)
  list(APPEND tessera_targets tessera_plans)
endif()
install(
  TARGETS ${tessera_targets}
  EXPORT TesseraTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev
  INCLUDES
  DESTINATION "${tessera_includes}")
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION "${tessera_package}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/TesseraConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/TesseraConfig.cmake" INSTALL_DESTINATION "${tessera_package}")
# Before 1.0 a minor number may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/TesseraConfig.cmake" "${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/TesseraKokkos.cmake" "${PROJECT_SOURCE_DIR}/cmake/TesseraHipRuntime.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/TesseraTpetra.cmake"
  DESTINATION "${tessera_package}")
