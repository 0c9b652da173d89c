// SPDX-License-Identifier: Apache-2.0
// The C interface to sessions.
#include <cstring>

#include "pumice/pumice.h"
#include "runtime/capi_guard.h"
#include "runtime/capi_handles.h"

namespace pumice::engine {
namespace {

// The inputs as the engine takes them; `given` is an array whose items have the size that the first one says.
std::span<const InputView> views(const pumice_tensor* given, uint32_t count) {
  thread_local std::vector<InputView> result;
  result.clear();
  if (count == 0) return result;
  const size_t stride = known(given, "inputs[0]").struct_size;
  for (uint32_t i = 0; i < count; ++i) {
    const auto* input = reinterpret_cast<const pumice_tensor*>(reinterpret_cast<const char*>(given) + i * stride);
    const bool same = input->struct_size == stride;
    if (!same || input->rank > PUMICE_MAX_RANK || input->dtype > PUMICE_I8)
      fail(Code::InvalidArgument, Stage::input, format("inputs[%u]", i),
           "struct_size %u, rank %u, dtype %u: sizes are %zu, ranks at most %d, dtypes at most %d", input->struct_size,
           input->rank, input->dtype, stride, PUMICE_MAX_RANK, PUMICE_I8);
    known(input, "inputs");
    result.push_back(
        {static_cast<DType>(input->dtype), std::span(input->dims, input->rank), input->data, input->bytes});
  }
  return result;
}

void fill(pumice_tensor& tensor, const OutputInfo& info) {
  tensor.dtype = static_cast<uint32_t>(info.dtype);
  tensor.rank = static_cast<uint32_t>(info.shape.size());
  tensor.data = nullptr;
  tensor.bytes = info.bytes;
  std::memset(tensor.dims, 0, sizeof(tensor.dims));
  for (size_t d = 0; d < info.shape.size() && d < PUMICE_MAX_RANK; ++d) tensor.dims[d] = info.shape[d];
}

}  // namespace
}  // namespace pumice::engine

using namespace pumice::engine;  // NOLINT: the functions below are C

pumice_status pumice_session_new(pumice_model model, pumice_session* session) {
  return guarded([&] {
    required(session, "session") = {};
    const auto entry = models().get(model.handle);
    session->handle = sessions().add(
        std::make_shared<SessionEntry>(SessionEntry{entry->model->session({.timeout_ns = entry->timeout_ns})}));
  });
}

pumice_status pumice_session_free(pumice_session session) {
  return guarded([&] { sessions().remove(session.handle); });
}

pumice_status pumice_session_run(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                 uint32_t num_inputs) {
  return guarded([&] { sessions().get(session.handle)->session->run(method, views(inputs, num_inputs)); });
}

pumice_status pumice_session_call(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                  uint32_t num_inputs, pumice_room room, void* user) {
  return guarded([&] {
    if (room == nullptr) fail(Code::InvalidArgument, Stage::api, "room", "is null");
    const auto entry = sessions().get(session.handle);
    entry->session->call(method, views(inputs, num_inputs), [&](uint32_t index, const OutputInfo& info) {
      pumice_tensor output = PUMICE_INIT(pumice_tensor);
      fill(output, info);
      void* data = nullptr;
      if (room(user, index, &output, &data) != 0)
        fail(Code::Cancelled, Stage::api, format("output %u", index), "the caller has no room for it");
      return data;
    });
  });
}

pumice_status pumice_session_output(pumice_session session, uint32_t index, pumice_tensor* output) {
  return guarded([&] {
    pumice_tensor result = known(output, "output");
    fill(result, sessions().get(session.handle)->session->output(index));
    *output = result;
  });
}

pumice_status pumice_session_read(pumice_session session, uint32_t index, void* data, uint64_t bytes) {
  return guarded([&] { sessions().get(session.handle)->session->read(index, data, bytes); });
}

pumice_status pumice_session_reset(pumice_session session) {
  return guarded([&] { sessions().get(session.handle)->session->reset(); });
}

pumice_status pumice_session_profile(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                     uint32_t num_inputs, char** json) {
  return guarded([&] {
    required(json, "json") = nullptr;
    *json = handed_over(describe(sessions().get(session.handle)->session->profile(method, views(inputs, num_inputs))));
  });
}

pumice_status pumice_session_memory(pumice_session session, char** json) {
  return guarded([&] {
    required(json, "json") = nullptr;
    *json = handed_over(describe(sessions().get(session.handle)->session->memory()));
  });
}
