# SPDX-License-Identifier: Apache-2.0
# One executable for each folder of test/ that holds *_test.cpp, with the other .cpp files of that folder and
# test/support/main.cpp; ctest runs each case. The target cpp_tests builds what ctest runs and nothing else; `all` has
# none of them.
if(PUMICE_TESTS AND GTest_FOUND)
  enable_testing()
  include(GoogleTest)
  if(PUMICE_SANITIZE) # GCC and clang have no word in common by which a program could ask
    add_compile_definitions(PUMICE_SANITIZED)
    if("${PUMICE_SANITIZE}" MATCHES "address")
      add_compile_definitions(PUMICE_ADDRESS_SANITIZER)
    endif()
  endif()
  file(GLOB_RECURSE test_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/test" test/*_test.cpp)
  list(TRANSFORM test_files REPLACE "/[^/]*$" "" OUTPUT_VARIABLE test_folders)
  list(REMOVE_DUPLICATES test_folders)
  if(PUMICE_SANITIZE) # they go through all cases of every operator: 500 s, 50 without
    list(REMOVE_ITEM test_folders case_tables)
  endif()
  add_library(pumice_test_main OBJECT EXCLUDE_FROM_ALL test/support/main.cpp)
  target_link_libraries(pumice_test_main PRIVATE pumice_vulkan GTest::gmock)
  # Tests alone: a third, with sanitizers half the time to compile.
  set(test_options $<IF:$<CONFIG:Release>,-O1,-O0>)
  target_compile_options(pumice_test_main PRIVATE ${test_options})
  if(PUMICE_SANITIZE)
    target_compile_options(pumice_test_main PRIVATE -fPIE)  # as CMake compiles the sources of programs
    target_precompile_headers(pumice_test_main PRIVATE cmake/precompiled.h <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  add_custom_target(cpp_tests)
  foreach(folder IN LISTS test_folders)
    file(GLOB sources CONFIGURE_DEPENDS "test/${folder}/*.cpp")
    string(REPLACE "/" "_" name "${folder}_test")
    add_executable(${name} EXCLUDE_FROM_ALL ${sources} $<TARGET_OBJECTS:pumice_test_main>)
    target_link_libraries(${name} PRIVATE pumice_runtime GTest::gmock)
    if(folder MATCHES "^(kernel_bench|ops|case_tables)$") # no other test looks at it, and each build of it takes a minute
      target_link_libraries(${name} PRIVATE pumice_kernel_bench)
    endif()
    target_compile_options(${name} PRIVATE ${test_options})
    if(PUMICE_SANITIZE)
      target_precompile_headers(${name} REUSE_FROM pumice_test_main)
    endif()
    add_dependencies(cpp_tests ${name})
    target_compile_definitions(${name} PRIVATE PUMICE_TEST_DIR="${PROJECT_SOURCE_DIR}/test")
    if(folder STREQUAL "case_tables")
      # Those of profiles in one process: making the files of all cases takes most of their time.
      add_test(NAME Profiles COMMAND ${name} --gtest_filter=*Profile*)
      add_test(NAME CaseTables COMMAND ${name} --gtest_filter=-*Profile*)
      set_tests_properties(Profiles CaseTables PROPERTIES LABELS ${folder} TIMEOUT 600)
    else()
      # Those of times are alone on the machine.
      gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "-Cancel.*" PROPERTIES LABELS ${folder} TIMEOUT 300)
    endif()
    if(folder STREQUAL "graph")
      gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "Cancel.*" TEST_LIST cancel_tests
                           PROPERTIES LABELS ${folder} TIMEOUT 300 RUN_SERIAL TRUE)
    endif()
  endforeach()
  # For a GPU's machine: a program to copy there, which ctest does not run.
  add_executable(faults_gpu EXCLUDE_FROM_ALL test/gpu/faults_gpu.cpp)
  target_link_libraries(faults_gpu PRIVATE pumice_runtime GTest::gmock ${pumice_static_cxx})
endif()

if(PUMICE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PUMICE_FUZZ needs clang (libFuzzer): give -DCMAKE_CXX_COMPILER=clang++")
  endif()
  file(GLOB fuzz_sources CONFIGURE_DEPENDS test/fuzz/fuzz_*.cpp)
  foreach(file IN LISTS fuzz_sources)
    cmake_path(GET file STEM name)
    list(APPEND fuzz_targets ${name})
    add_executable(${name} "${file}")
    target_link_libraries(${name} PRIVATE pumice_runtime -fsanitize=fuzzer)
  endforeach()
  target_sources(fuzz_npy PRIVATE tools/pumice-rt/npy.cpp)
  add_custom_target(fuzz DEPENDS ${fuzz_targets})
  add_executable(case_files EXCLUDE_FROM_ALL test/fuzz/case_files.cpp)
  target_link_libraries(case_files PRIVATE pumice_kernel_bench pumice_runtime)
endif()

# Hosts of the ExecuTorch backend: for the Python tests in test/delegate, and for measurements.
if(PUMICE_TESTS AND TARGET pumice_executorch AND NOT PUMICE_SANITIZE)
  find_package(executorch 1.5...<1.6 CONFIG REQUIRED COMPONENTS kernels_optimized etdump
               PATHS "${Python_SITELIB}/executorch/share/cmake" NO_DEFAULT_PATH)
  add_executable(delegate_driver test/delegate/driver.cpp)
  target_link_libraries(delegate_driver PRIVATE pumice_options pumice_executorch executorch::runtime executorch::kernels_optimized
                                                executorch::etdump)
  add_executable(delegate_bench test/bench/delegate_bench.cpp)
  target_link_libraries(delegate_bench PRIVATE pumice_options pumice_executorch pumice_c executorch::runtime)
  add_executable(llama_host test/bench/llama_host.cpp)
  target_link_libraries(llama_host PRIVATE pumice_options pumice_executorch executorch::runtime executorch::kernels_optimized
                                           executorch::kernels_quantized executorch::backend_xnnpack)
endif()
