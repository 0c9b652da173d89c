# SPDX-License-Identifier: Apache-2.0
# ops/*.cpp -> the registry; glsl/*.glsl -> SPIR-V, a typed header glsl/<stem>.h each, and one assembler file that holds
# all. Sets PUMICE_OP_SOURCES and PUMICE_SHADER_BLOBS; the target pumice_shaders makes the headers.
file(GLOB op_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*.cpp")
file(GLOB op_common CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/common/*.cpp")
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
set(PUMICE_OP_SOURCES ${op_files} ${op_common} "${PUMICE_GENERATED}/ops/registry.cpp")

set(PUMICE_BLOBS "")
set(shader_headers "")
set(shader_binaries "")
set(script "${PROJECT_SOURCE_DIR}/glsl/compile_shader.py")
foreach(file IN LISTS shader_files)
  cmake_path(GET file STEM stem)
  set(base "${PUMICE_GENERATED}/glsl/${stem}")
  add_custom_command(
    OUTPUT "${base}.h" "${base}.bin"
    COMMAND "${Python_EXECUTABLE}" "${script}" --glslang "${PUMICE_GLSLANG}" --spirv-val "${PUMICE_SPIRV_VAL}"
            --include "${PROJECT_SOURCE_DIR}/glsl/include" --out "${PUMICE_GENERATED}/glsl" "${file}"
    DEPENDS "${file}" "${script}" "${PROJECT_SOURCE_DIR}/glsl/reflect_spirv.py"
    DEPFILE "${base}.d"
    COMMENT "glsl/${stem}.glsl"
    VERBATIM)
  list(APPEND shader_headers "${base}.h")
  list(APPEND shader_binaries "${base}.bin")
  string(APPEND PUMICE_BLOBS "blob pumice_glsl_${stem}, \"${base}.bin\"\n")
endforeach()
add_custom_target(pumice_shaders DEPENDS ${shader_headers} ${shader_binaries})

set(PUMICE_SHADER_BLOBS "${PUMICE_GENERATED}/glsl/blobs.S")
configure_file("${PROJECT_SOURCE_DIR}/cmake/blobs.S.in" "${PUMICE_SHADER_BLOBS}" @ONLY)
set_source_files_properties("${PUMICE_SHADER_BLOBS}" PROPERTIES OBJECT_DEPENDS "${shader_binaries}")
