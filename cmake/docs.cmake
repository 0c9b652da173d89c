# SPDX-License-Identifier: Apache-2.0
# docs/ops.md, the page of operators: from the extension and the lowerings of this checkout. Not in git.
set(PUMICE_OPS_PAGE "${PROJECT_SOURCE_DIR}/docs/ops.md")
set(script "${PROJECT_SOURCE_DIR}/docs/generate_ops.py")
file(GLOB_RECURSE python_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/pumice/*.py")
add_custom_command(
  OUTPUT "${PUMICE_OPS_PAGE}"
  COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${PROJECT_SOURCE_DIR}/python" "${Python_EXECUTABLE}" "${script}"
          "${PUMICE_OPS_PAGE}"
  DEPENDS _pumice pumice_python_schema "${script}" ${python_files}
  COMMENT "docs/ops.md"
  VERBATIM)
add_custom_target(pumice_docs ALL DEPENDS "${PUMICE_OPS_PAGE}")
