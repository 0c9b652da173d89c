# SPDX-License-Identifier: Apache-2.0
# A wheel (scikit-build-core) takes the extension, the schema and the tool; a plain `cmake --install` makes the C and
# C++ kit.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(SKBUILD)
  install(TARGETS _pumice LIBRARY DESTINATION pumice)
  install(FILES "${PUMICE_PYTHON_SCHEMA}" DESTINATION pumice/format)
  if(TARGET pumice-rt)
    install(TARGETS pumice-rt RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}")
  endif()
  if(TARGET pumice_executorch)
    set_target_properties(pumice_executorch PROPERTIES INSTALL_RPATH "$ORIGIN/../../executorch/lib")
    install(TARGETS pumice_executorch LIBRARY DESTINATION pumice/executorch)
  endif()
  return()
endif()

if(TARGET pumice-rt)
  install(TARGETS pumice-rt RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
if(TARGET pumice_c)
  install(TARGETS pumice_c EXPORT pumiceTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  if(TARGET pumice_executorch)
    install(TARGETS pumice_executorch EXPORT pumiceTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
  install(DIRECTORY runtime/include/pumice DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT pumiceTargets NAMESPACE pumice:: DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/pumice")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/pumiceConfig.cmake.in" "${PUMICE_GENERATED}/pumiceConfig.cmake" @ONLY)
  write_basic_package_version_file("${PUMICE_GENERATED}/pumiceConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PUMICE_GENERATED}/pumiceConfig.cmake" "${PUMICE_GENERATED}/pumiceConfigVersion.cmake"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/pumice")
endif()
