# SPDX-License-Identifier: Apache-2.0
# The optional library pumice_executorch: our C interface as a backend of the ExecuTorch whose wheel this Python has. Its
# C++ interface has no stable ABI, so one build is for one minor version.
option(PUMICE_EXECUTORCH "Build the backend of ExecuTorch when its wheel is installed" ON)
if(NOT PUMICE_EXECUTORCH OR NOT PUMICE_PYTHON OR CMAKE_CROSSCOMPILING)
  return()
endif()
find_package(executorch 1.5...<1.6 CONFIG QUIET COMPONENTS runtime PATHS "${Python_SITELIB}/executorch/share/cmake"
             NO_DEFAULT_PATH)
if(NOT executorch_FOUND)
  message(STATUS "ExecuTorch 1.5 is not in ${Python_SITELIB}: the backend for it is left out")
  return()
endif()
set(PUMICE_EXECUTORCH_MINOR "${executorch_VERSION_MAJOR}.${executorch_VERSION_MINOR}") # of pumiceConfig.cmake

file(GLOB executorch_sources CONFIGURE_DEPENDS runtime/executorch/*.cpp)
add_library(pumice_executorch SHARED ${executorch_sources})
add_library(pumice::executorch ALIAS pumice_executorch)
get_target_property(executorch_include executorch::runtime INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(pumice_executorch SYSTEM PRIVATE ${executorch_include})
target_link_libraries(pumice_executorch PRIVATE pumice_runtime executorch::runtime)
target_compile_definitions(pumice_executorch PRIVATE PUMICE_EXECUTORCH_VERSION="${executorch_VERSION}")
target_link_options(pumice_executorch PRIVATE LINKER:--as-needed
                    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/executorch.map")
target_include_directories(pumice_executorch INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>
                                                       $<INSTALL_INTERFACE:include>)
set_target_properties(pumice_executorch PROPERTIES EXPORT_NAME executorch
                      LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/executorch.map")
if(PUMICE_DEV_INPLACE)
  set_target_properties(pumice_executorch PROPERTIES
                        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_SOURCE_DIR}/python/pumice/executorch")
endif()
