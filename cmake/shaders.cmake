# SPDX-License-Identifier: Apache-2.0
# ops/*.cpp -> the registry; glsl/*.glsl -> SPIR-V, a typed header glsl/<stem>.h each, and one assembler file that holds
# all. Sets PUMICE_OP_SOURCES and PUMICE_SHADER_BLOBS; the target pumice_shaders makes the headers. The same for the
# shaders of the kernel bench: PUMICE_BENCH_SHADER_BLOBS, pumice_bench_shaders, and PUMICE_SHADER_TABLE, its list of them all.
file(GLOB op_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*.cpp")
file(GLOB op_shared CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*/*.cpp")
file(GLOB shader_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/glsl/*.glsl")

# PUMICE_OPS keeps some operators and the shaders that begin with their stems.
if(PUMICE_OPS)
  list(JOIN PUMICE_OPS "|" wanted)
  list(FILTER op_files INCLUDE REGEX "/(${wanted})\\.cpp$")
  list(FILTER shader_files INCLUDE REGEX "/glsl/(${wanted})[^/]*\\.glsl$")
endif()

set(PUMICE_OP_DECLARATIONS "")
set(PUMICE_OP_CALLS "")
foreach(file IN LISTS op_files)
  cmake_path(GET file STEM stem)
  string(APPEND PUMICE_OP_DECLARATIONS "std::span<const Op> ${stem}_ops();\n")
  string(APPEND PUMICE_OP_CALLS "    add(${stem}_ops());\n")
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/registry.cpp.in" "${PUMICE_GENERATED}/ops/registry.cpp" @ONLY)
set(PUMICE_OP_SOURCES ${op_files} ${op_shared} "${PUMICE_GENERATED}/ops/registry.cpp")

set(pumice_pack "")
if(PUMICE_ZSTD_LIBRARY)
  set(pumice_pack --zstd)
endif()

# The shaders of a list of files: sets NAME_headers, and makes BLOBS, the assembler file that holds their SPIR-V.
function(pumice_shader_set name blobs)
  set(PUMICE_BLOBS "")
  set(headers "")
  set(binaries "")
  set(script "${PROJECT_SOURCE_DIR}/glsl/compile_shader.py")
  file(MAKE_DIRECTORY "${PUMICE_GENERATED}/glsl")
  foreach(file IN LISTS ARGN)
    cmake_path(GET file STEM stem)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE shown)
    if(PUMICE_BUNDLED)  # headers lie where a checkout has them
      file(CREATE_LINK "${PUMICE_BUNDLED}/generated/glsl/${stem}.h" "${PUMICE_GENERATED}/glsl/${stem}.h" SYMBOLIC)
      string(APPEND PUMICE_BLOBS "blob pumice_glsl_${stem}, \"${PUMICE_BUNDLED}/generated/glsl/${stem}.bin\"\n")
      continue()
    endif()
    set(base "${PUMICE_GENERATED}/glsl/${stem}")
    add_custom_command(
      OUTPUT "${base}.h" "${base}.bin"
      COMMAND "${Python_EXECUTABLE}" "${script}" --glslang "${PUMICE_GLSLANG}" --spirv-val "${PUMICE_SPIRV_VAL}"
              --include "${PROJECT_SOURCE_DIR}/glsl/include" --out "${PUMICE_GENERATED}/glsl" ${pumice_pack} "${file}"
      DEPENDS "${file}" "${script}" "${PROJECT_SOURCE_DIR}/glsl/reflect_spirv.py"
              "${PROJECT_SOURCE_DIR}/glsl/shader_pragmas.py"
      DEPFILE "${base}.d"
      COMMENT "${shown}"
      VERBATIM)
    list(APPEND headers "${base}.h")
    list(APPEND binaries "${base}.bin")
    string(APPEND PUMICE_BLOBS "blob pumice_glsl_${stem}, \"${base}.bin\"\n")
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/blobs.S.in" "${blobs}" @ONLY)
  set_source_files_properties("${blobs}" PROPERTIES OBJECT_DEPENDS "${binaries}")
  set(${name}_headers "${headers}" PARENT_SCOPE)
endfunction()

set(PUMICE_SHADER_BLOBS "${PUMICE_GENERATED}/glsl/blobs.S")
pumice_shader_set(ops "${PUMICE_SHADER_BLOBS}" ${shader_files})
add_custom_target(pumice_shaders DEPENDS ${ops_headers})

# A table of all of them, for `kernel list`.
set(PUMICE_SHADER_INCLUDES "")
set(PUMICE_SHADER_ROWS "")
foreach(file IN LISTS shader_files)
  cmake_path(GET file STEM stem)
  string(APPEND PUMICE_SHADER_INCLUDES "#include \"glsl/${stem}.h\"\n")
  string(APPEND PUMICE_SHADER_ROWS "      {\"${stem}\", glsl::${stem}::axes, glsl::${stem}::kVariants},\n")
endforeach()
set(PUMICE_SHADER_TABLE "${PUMICE_GENERATED}/kernel_bench/shaders.cpp")
configure_file("${PROJECT_SOURCE_DIR}/cmake/shader_table.cpp.in" "${PUMICE_SHADER_TABLE}" @ONLY)

# Those of the kernel bench: ceilings and baselines. No operator of the product can ask for one.
file(GLOB bench_shader_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/kernel_bench/glsl/*.glsl")
set(PUMICE_BENCH_SHADER_BLOBS "${PUMICE_GENERATED}/glsl/bench_blobs.S")
pumice_shader_set(bench "${PUMICE_BENCH_SHADER_BLOBS}" ${bench_shader_files})
add_custom_target(pumice_bench_shaders DEPENDS ${bench_headers})
