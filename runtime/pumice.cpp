// SPDX-License-Identifier: Apache-2.0
// The C interface. Every function checks its arguments, looks its handles up and runs inside of guarded(), which
// catches every exception.
#include "pumice/pumice.h"

#include <cinttypes>
#include <cstddef>
#include <cstring>

#include "runtime/bounds.h"
#include "runtime/capi_guard.h"
#include "runtime/capi_handles.h"
#include "runtime/describe.h"

namespace pumice::engine {
namespace {

static_assert(PUMICE_OK == static_cast<uint32_t>(Code::Ok) && PUMICE_IO_ERROR == static_cast<uint32_t>(Code::IoError) &&
              PUMICE_CANCELLED == static_cast<uint32_t>(Code::Cancelled) &&
              PUMICE_DEVICE_LOST == static_cast<uint32_t>(Code::DeviceLost) &&
              PUMICE_INTERNAL == static_cast<uint32_t>(Code::Internal));
static_assert(PUMICE_I8 == static_cast<uint32_t>(DType::i8));

std::string or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

ExternalData external_of(const pumice_options& options) {
  if (options.external == nullptr) return {};
  return [options](std::string_view key) -> std::optional<std::span<const std::byte>> {
    const void* data = nullptr;
    uint64_t bytes = 0;
    if (options.external(options.user, std::string(key).c_str(), &data, &bytes) != 0) return std::nullopt;
    if (data == nullptr && bytes != 0)
      fail(Code::InvalidArgument, Stage::api, format("external '%s'", printable(key).c_str()),
           "the function gave a null pointer for %" PRIu64 " bytes", bytes);
    return bytes_of(data, bytes);
  };
}

Budget budget_of(const pumice_options& options) {
  if (!(options.max_seconds >= 0))
    fail(Code::InvalidArgument, Stage::api, "max_seconds", "is %g; it must be positive, or 0 for the default",
         options.max_seconds);
  return {options.max_memory, options.max_seconds};
}

template <class Load>
void load(const pumice_options* given, pumice_model* model, const Load& load_with) {
  const pumice_options options =
      given == nullptr ? PUMICE_INIT(pumice_options) : known(given, "options", offsetof(pumice_options, max_memory));
  required(model, "model") = {};
  const auto open_device = [&] {
    return Device::open({or_empty(options.device), or_empty(options.features), or_empty(options.cache_dir)});
  };
  const auto loaded = load_with(open_device, external_of(options), budget_of(options));
  model->handle =
      models().add(std::make_shared<ModelEntry>(ModelEntry{loaded, uint64_t{options.timeout_ms} * 1'000'000}));
}

const Method& method_of(const ModelEntry& entry, uint32_t method) {
  const auto& methods = entry.model->program().methods;
  if (method >= methods.size()) fail(Code::InvalidArgument, Stage::api, "method", "%u of %zu", method, methods.size());
  return methods[method];
}

void fill(const Method& method, const std::vector<Bounds>& exprs, const std::vector<uint32_t>& ids, uint32_t index,
          const char* what, pumice_tensor_info* info) {
  known(info, "info");
  if (index >= ids.size()) fail(Code::InvalidArgument, Stage::api, what, "%u of %zu", index, ids.size());
  const Value& value = method.values[ids[index]];
  pumice_tensor_info result = PUMICE_INIT(pumice_tensor_info);
  result.struct_size = info->struct_size;
  result.dtype = static_cast<uint32_t>(value.dtype);
  result.rank = static_cast<uint32_t>(value.dims.size());
  for (size_t d = 0; d < value.dims.size() && d < PUMICE_MAX_RANK; ++d) {
    const Bounds size = bounds(exprs, value.dims[d]);
    result.min[d] = size.min;
    result.max[d] = size.max;
    const Symbol* name = symbol(method, value.dims[d]);
    result.symbol[d] = name == nullptr ? nullptr : name->name.c_str();
  }
  result.name = value.name.c_str();
  *info = result;
}

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

const pumice_error* pumice_last_error(void) {
  return &last_error();
}
uint32_t pumice_api_version(void) {
  return PUMICE_API_VERSION;
}
const char* pumice_version(void) {
  return PUMICE_VERSION;
}
void pumice_text_free(char* text) {
  std::free(text);
}

pumice_status pumice_devices(char** json) {
  return guarded([&] {
    required(json, "json") = nullptr;
    *json = handed_over(describe_devices());
  });
}

pumice_status pumice_check(const void* file, uint64_t bytes) {
  return guarded([&] { validate(bytes_of(file, bytes)); });
}

pumice_status pumice_check_file(const char* path) {
  return guarded([&] { validate_file(&required(path, "path")); });
}

pumice_status pumice_inspect(const void* file, uint64_t bytes, char** json) {
  return guarded([&] {
    required(json, "json") = nullptr;
    *json = handed_over(inspect(bytes_of(file, bytes)));
  });
}

pumice_status pumice_inspect_file(const char* path, char** json) {
  return guarded([&] {
    required(json, "json") = nullptr;
    *json = handed_over(inspect_file(&required(path, "path")));
  });
}

pumice_status pumice_model_load(const void* file, uint64_t bytes, const pumice_options* options, pumice_model* model) {
  return guarded([&] {
    load(options, model, [&](const auto& open_device, const ExternalData& external, const Budget& budget) {
      return Model::load(open_device, bytes_of(file, bytes), external, budget);
    });
  });
}

pumice_status pumice_model_load_file(const char* path, const pumice_options* options, pumice_model* model) {
  return guarded([&] {
    load(options, model, [&](const auto& open_device, const ExternalData& external, const Budget& budget) {
      return Model::load_file(open_device, &required(path, "path"), external, budget);
    });
  });
}

pumice_status pumice_model_test(pumice_model model) {
  return guarded([&] { models().get(model.handle)->model->finish_load(); });
}

pumice_status pumice_model_free(pumice_model model) {
  return guarded([&] { models().remove(model.handle); });
}

pumice_status pumice_model_describe(pumice_model model, char** json) {
  return guarded([&] {
    required(json, "json") = nullptr;
    *json = handed_over(describe(*models().get(model.handle)->model));
  });
}

pumice_status pumice_model_num_methods(pumice_model model, uint32_t* count) {
  return guarded([&] {
    required(count, "count") = static_cast<uint32_t>(models().get(model.handle)->model->program().methods.size());
  });
}

pumice_status pumice_model_method(pumice_model model, const char* name, uint32_t* method) {
  return guarded([&] {
    const auto entry = models().get(model.handle);
    const auto& methods = entry->model->program().methods;
    required(method, "method") = 0;
    if (name == nullptr && !methods.empty()) return;
    for (uint32_t m = 0; m < methods.size(); ++m) {
      if (name == nullptr || methods[m].name != name) continue;
      *method = m;
      return;
    }
    fail(Code::InvalidArgument, Stage::api, "method", "the model has no method '%s'",
         name == nullptr ? "" : printable(name).c_str());
  });
}

pumice_status pumice_model_counts(pumice_model model, uint32_t method, uint32_t* num_inputs, uint32_t* num_outputs) {
  return guarded([&] {
    const auto entry = models().get(model.handle);
    const Method& chosen = method_of(*entry, method);
    required(num_inputs, "num_inputs") = static_cast<uint32_t>(chosen.inputs.size());
    required(num_outputs, "num_outputs") = static_cast<uint32_t>(chosen.outputs.size());
  });
}

pumice_status pumice_model_input(pumice_model model, uint32_t method, uint32_t index, pumice_tensor_info* info) {
  return guarded([&] {
    const auto entry = models().get(model.handle);
    const Method& chosen = method_of(*entry, method);
    fill(chosen, entry->model->bounds(method), chosen.inputs, index, "input", info);
  });
}

pumice_status pumice_model_output(pumice_model model, uint32_t method, uint32_t index, pumice_tensor_info* info) {
  return guarded([&] {
    const auto entry = models().get(model.handle);
    const Method& chosen = method_of(*entry, method);
    fill(chosen, entry->model->bounds(method), chosen.outputs, index, "output", info);
  });
}

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

pumice_status pumice_session_prepare(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                     uint32_t num_inputs) {
  return guarded([&] { sessions().get(session.handle)->session->prepare(method, views(inputs, num_inputs)); });
}

pumice_status pumice_session_call(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                  uint32_t num_inputs, pumice_room room, void* user) {
  return pumice_session_call_steps(session, method, inputs, num_inputs, 1, room, user);
}

pumice_status pumice_session_call_steps(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                        uint32_t num_inputs, uint32_t steps, pumice_room room, void* user) {
  return guarded([&] {
    if (room == nullptr) fail(Code::InvalidArgument, Stage::api, "room", "is null");
    const auto entry = sessions().get(session.handle);
    const Session::OutputDestination destination = [&](uint32_t index, const OutputInfo& info) {
      pumice_tensor output = PUMICE_INIT(pumice_tensor);
      fill(output, info);
      void* data = nullptr;
      if (room(user, index, &output, &data) != 0)
        fail(Code::Cancelled, Stage::api, format("output %u", index), "the caller has no room for it");
      return data;
    };
    entry->session->call(method, views(inputs, num_inputs), destination, steps);
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

pumice_status pumice_session_cancel(pumice_session session) {
  return guarded([&] { sessions().get(session.handle)->session->cancel(); });
}

pumice_status pumice_session_reset(pumice_session session) {
  return guarded([&] { sessions().get(session.handle)->session->reset(); });
}

pumice_status pumice_session_seed(pumice_session session, uint64_t seed) {
  return guarded([&] { sessions().get(session.handle)->session->seed(seed); });
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
