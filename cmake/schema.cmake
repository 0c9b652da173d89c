# SPDX-License-Identifier: Apache-2.0
# serialization/schema.fbs -> serialization/schema_generated.h for the reader, pumice/format/_schema.py for the writer.
set(PUMICE_GENERATED "${PROJECT_BINARY_DIR}/generated")
set(PUMICE_SCHEMA "${PROJECT_SOURCE_DIR}/serialization/schema.fbs")
if(PUMICE_DEV_INPLACE)
  set(PUMICE_PYTHON_SCHEMA "${PROJECT_SOURCE_DIR}/python/pumice/format/_schema.py")
else()
  set(PUMICE_PYTHON_SCHEMA "${PUMICE_GENERATED}/python/_schema.py")
endif()

if(PUMICE_BUNDLED)
  set(PUMICE_PYTHON_SCHEMA "${PUMICE_BUNDLED}/generated/python/_schema.py")
  file(MAKE_DIRECTORY "${PUMICE_GENERATED}/serialization")
  file(CREATE_LINK "${PUMICE_BUNDLED}/generated/serialization/schema_generated.h"
                   "${PUMICE_GENERATED}/serialization/schema_generated.h" SYMBOLIC)
  add_custom_target(pumice_schema)
  add_custom_target(pumice_python_schema)
  return()
endif()

add_custom_command(
  OUTPUT "${PUMICE_GENERATED}/serialization/schema_generated.h"
  COMMAND "${PUMICE_FLATC}" --cpp -o "${PUMICE_GENERATED}/serialization" "${PUMICE_SCHEMA}"
  DEPENDS "${PUMICE_SCHEMA}"
  COMMENT "schema.fbs -> C++"
  VERBATIM)
add_custom_target(pumice_schema DEPENDS "${PUMICE_GENERATED}/serialization/schema_generated.h")

add_custom_command(
  OUTPUT "${PUMICE_PYTHON_SCHEMA}"
  COMMAND "${PUMICE_FLATC}" --python --gen-onefile -o "${PUMICE_GENERATED}/python" "${PUMICE_SCHEMA}"
  COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${PUMICE_GENERATED}/python/schema_generated.py"
          "${PUMICE_PYTHON_SCHEMA}"
  DEPENDS "${PUMICE_SCHEMA}"
  COMMENT "schema.fbs -> Python"
  VERBATIM)
add_custom_target(pumice_python_schema ALL DEPENDS "${PUMICE_PYTHON_SCHEMA}")
