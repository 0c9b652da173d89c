/* SPDX-License-Identifier: Apache-2.0
 * The same in C for a model of one fp32 input and one fp32 output, both of at most 4096 elements. */
#include <pumice/pumice.h>
#include <stdio.h>

static float values[4096];

static int room(void* user, uint32_t index, const pumice_tensor* output, void** data) {
  *(uint64_t*)user = output->bytes / sizeof values[0];
  if (index == 0 && output->dtype == PUMICE_F32 && output->bytes <= sizeof values) *data = values;
  return *data == NULL; /* no room: the call ends with PUMICE_CANCELLED */
}

static int failed(pumice_status status) {
  if (status != PUMICE_OK) fprintf(stderr, "%s: %s\n", pumice_last_error()->name, pumice_last_error()->text);
  return status != PUMICE_OK;
}

int main(int argc, char** argv) {
  static float ones[4096];
  pumice_options options = PUMICE_INIT(pumice_options);
  pumice_tensor_info info = PUMICE_INIT(pumice_tensor_info);
  pumice_tensor input = PUMICE_INIT(pumice_tensor);
  pumice_model model;
  pumice_session session;
  uint64_t count = 1;
  if (argc < 2) return fprintf(stderr, "usage: host_c FILE.pumice [DEVICE]\n"), 2;
  options.device = argc > 2 ? argv[2] : NULL;
  if (failed(pumice_model_load_file(argv[1], &options, &model))) return 1;
  if (failed(pumice_model_input(model, 0, 0, &info)) || failed(pumice_session_new(model, &session))) return 1;
  for (uint32_t d = 0; d < info.rank; ++d) count *= (uint64_t)(input.dims[d] = info.min[d]);
  if (info.dtype != PUMICE_F32 || count > 4096) return fprintf(stderr, "the input does not fit\n"), 2;
  for (uint64_t i = 0; i < count; ++i) ones[i] = 1.0f;
  input.dtype = PUMICE_F32;
  input.rank = info.rank;
  input.data = ones;
  input.bytes = count * sizeof ones[0];
  if (failed(pumice_session_call(session, 0, &input, 1, room, &count))) return 1;
  for (uint64_t i = 0; i < count && i < 8; ++i) printf("%.6g ", values[i]);
  printf("\n");
  pumice_session_free(session);
  pumice_model_free(model);
  return 0;
}
