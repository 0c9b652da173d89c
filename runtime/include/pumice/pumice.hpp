// SPDX-License-Identifier: Apache-2.0
// The C++20 interface of Pumice: RAII and exceptions on top of pumice.h, header only.
//
//   pumice::Model model = pumice::Model::load_file("m.pumice");
//   pumice::Session session(model);
//   std::vector<pumice::Output> outputs = session.call({pumice::view<float>(x, {1, 384})});
//   std::vector<float> y = outputs[0].values<float>();
#pragma once

#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pumice/half.h"
#include "pumice/pumice.h"

namespace pumice {
// Inline, so that these classes never share a symbol with the engine's own.
inline namespace api {

// What every function of this header throws: the error of the C call.
class Error : public std::runtime_error {
 public:
  explicit Error(const pumice_error& error)
      : std::runtime_error(std::string(error.name) + (*error.path ? " (" + std::string(error.path) + "): " : ": ") +
                           error.text),
        code(error.code),
        name(error.name),
        stage(error.stage),
        path(error.path),
        text(error.text) {}
  const pumice_status code;
  const std::string name, stage, path, text;
};

inline void throw_if(pumice_status status) {
  if (status != PUMICE_OK) throw Error(*pumice_last_error());
}

// Copies a text of the C interface and frees it.
inline std::string to_string_and_free(char* text) {
  const std::unique_ptr<char, void (*)(char*)> owner(text, pumice_text_free);
  return text;
}

struct Options {
  std::string device = {}, features = {}, cache_dir = {};  // "" is not set
  uint32_t timeout_ms = 0;
  uint64_t max_memory = 0;  // the budget of the file, see pumice_options; 0 is not set
  double max_seconds = 0;

  pumice_options c() const&& = delete;  // the result points into this object
  pumice_options c() const& {
    pumice_options options = PUMICE_INIT(pumice_options);
    options.timeout_ms = timeout_ms;
    options.max_memory = max_memory;
    options.max_seconds = max_seconds;
    options.device = device.empty() ? nullptr : device.c_str();
    options.features = features.empty() ? nullptr : features.c_str();
    options.cache_dir = cache_dir.empty() ? nullptr : cache_dir.c_str();
    return options;
  }
};

// pumice_devices: JSON.
inline std::string devices() {
  char* json = nullptr;
  throw_if(pumice_devices(&json));
  return to_string_and_free(json);
}

// Validate a file; throw Error. No device is touched.
inline void check_file(const std::string& path) {
  throw_if(pumice_check_file(path.c_str()));
}
inline void check_bytes(std::span<const std::byte> file) {
  throw_if(pumice_check(file.data(), file.size()));
}

// Validate a file and return its content as JSON (pumice_inspect).
inline std::string inspect_file(const std::string& path) {
  char* json = nullptr;
  throw_if(pumice_inspect_file(path.c_str(), &json));
  return to_string_and_free(json);
}

inline std::string inspect(std::span<const std::byte> file) {
  char* json = nullptr;
  throw_if(pumice_inspect(file.data(), file.size(), &json));
  return to_string_and_free(json);
}

// A loaded model, pumice_model. Movable. Methods are numbers from 0.
class Model {
 public:
  // Validate a file, open a device, copy the weights to it (pumice_model_load). Throw Error.
  static Model load(std::span<const std::byte> file, const pumice_options& options) {
    Model model;
    throw_if(pumice_model_load(file.data(), file.size(), &options, &model.handle_));
    return model;
  }
  static Model load(std::span<const std::byte> file, const Options& options = {}) { return load(file, options.c()); }
  static Model load_file(const std::string& path, const pumice_options& options) {
    Model model;
    throw_if(pumice_model_load_file(path.c_str(), &options, &model.handle_));
    return model;
  }
  static Model load_file(const std::string& path, const Options& options = {}) { return load_file(path, options.c()); }
  Model(Model&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Model& operator=(Model&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Model() {
    if (handle_.handle) pumice_model_free(handle_);
  }
  pumice_model handle() const { return handle_; }

  // How many methods; the number of the one called `name`.
  uint32_t num_methods() const {
    uint32_t count = 0;
    throw_if(pumice_model_num_methods(handle_, &count));
    return count;
  }
  uint32_t method(const std::string& name) const {
    uint32_t method = 0;
    throw_if(pumice_model_method(handle_, name.c_str(), &method));
    return method;
  }
  // Dtype, bounds of the shape and name of each input or output; valid as long as the model.
  std::vector<pumice_tensor_info> inputs(uint32_t method = 0) const { return infos(method, true); }
  std::vector<pumice_tensor_info> outputs(uint32_t method = 0) const { return infos(method, false); }
  // Ends the self test of the kernels (pumice_model_test), which describe() then has the results of.
  void test() const { throw_if(pumice_model_test(handle_)); }
  std::string describe() const {
    char* json = nullptr;
    throw_if(pumice_model_describe(handle_, &json));
    return to_string_and_free(json);
  }

 private:
  Model() = default;
  std::vector<pumice_tensor_info> infos(uint32_t method, bool inputs) const {
    uint32_t counts[2] = {0, 0};
    throw_if(pumice_model_counts(handle_, method, &counts[0], &counts[1]));
    std::vector<pumice_tensor_info> result(counts[inputs ? 0 : 1], PUMICE_INIT(pumice_tensor_info));
    for (uint32_t i = 0; i < result.size(); ++i)
      throw_if((inputs ? pumice_model_input : pumice_model_output)(handle_, method, i, &result[i]));
    return result;
  }
  pumice_model handle_{};
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr pumice_dtype value = PUMICE_F32;
};
template <>
struct DTypeOf<Half> {
  static constexpr pumice_dtype value = PUMICE_F16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr pumice_dtype value = PUMICE_I32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr pumice_dtype value = PUMICE_I64;
};
template <>
struct DTypeOf<bool> {
  static constexpr pumice_dtype value = PUMICE_BOOL;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr pumice_dtype value = PUMICE_U8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr pumice_dtype value = PUMICE_I8;
};

// An input of `bytes` bytes with that dtype and shape. `data` must stay valid until the run returns. A rank of more
// than PUMICE_MAX_RANK is refused by the run.
inline pumice_tensor view(pumice_dtype dtype, std::span<const int64_t> dims, const void* data, uint64_t bytes) {
  pumice_tensor tensor = PUMICE_INIT(pumice_tensor);
  tensor.dtype = dtype;
  tensor.rank = static_cast<uint32_t>(dims.size());
  for (size_t i = 0; i < dims.size() && i < PUMICE_MAX_RANK; ++i) tensor.dims[i] = dims[i];
  tensor.data = data;
  tensor.bytes = bytes;
  return tensor;
}
// The same for float, Half, int32_t, int64_t, bool, uint8_t and int8_t.
template <class T>
pumice_tensor view(std::span<const T> data, std::span<const int64_t> dims) {
  return view(DTypeOf<T>::value, dims, data.data(), data.size_bytes());
}
template <class T>
pumice_tensor view(std::span<const T> data, std::initializer_list<int64_t> dims) {
  return view<T>(data, std::span(dims.begin(), dims.size()));
}

// A copy of an output.
struct Output {
  pumice_dtype dtype;
  std::vector<int64_t> dims;
  std::vector<std::byte> data;  // row-major

  template <class T>
  std::vector<T> values() const {
    std::vector<T> result(data.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), data.data(), result.size() * sizeof(T));
    return result;
  }
};

// A session of a model, pumice_session. Movable.
class Session {
 public:
  explicit Session(const Model& model) { throw_if(pumice_session_new(model.handle(), &handle_)); }
  Session(Session&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Session& operator=(Session&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Session() {
    if (handle_.handle) pumice_session_free(handle_);
  }
  pumice_session handle() const { return handle_; }

  // Runs, and copies the outputs. Threads may share a session: their calls wait for one another. `steps`: how often the
  // method runs, in few submits and with the same inputs; the outputs are those of the last time.
  std::vector<Output> call(std::span<const pumice_tensor> inputs, uint32_t method = 0, uint32_t steps = 1) {
    std::vector<Output> outputs;
    const auto destination = [&](uint32_t, const pumice_tensor& tensor) -> void* {
      outputs.push_back({tensor.dtype, std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank),
                         std::vector<std::byte>(tensor.bytes)});
      return outputs.back().data.data();
    };
    call_into(inputs, method, destination, steps);
    return outputs;
  }
  std::vector<Output> call(std::initializer_list<pumice_tensor> inputs, uint32_t method = 0, uint32_t steps = 1) {
    return call(std::span(inputs.begin(), inputs.size()), method, steps);
  }
  // The same, with each output copied to where `room(index, dtype and shape)` says: room for tensor.bytes, or null.
  template <class Destination>
  void call_into(std::span<const pumice_tensor> inputs, uint32_t method, Destination destination, uint32_t steps = 1) {
    struct Caller {
      Destination& destination;
      std::exception_ptr raised;
    } caller{destination, nullptr};
    const auto forward = [](void* user, uint32_t index, const pumice_tensor* output, void** data) {
      auto& to = *static_cast<Caller*>(user);
      try {
        *data = to.destination(index, *output);
        return 0;
      } catch (...) {
        to.raised = std::current_exception();
        return 1;
      }
    };
    const pumice_status status = pumice_session_call_steps(
        handle_, method, inputs.data(), static_cast<uint32_t>(inputs.size()), steps, forward, &caller);
    if (caller.raised) std::rethrow_exception(caller.raised);
    throw_if(status);
  }

  // In steps, for one thread: run(), then output() and read(). On an error run() throws and there are no outputs.
  void run(std::span<const pumice_tensor> inputs, uint32_t method = 0) {
    throw_if(pumice_session_run(handle_, method, inputs.data(), static_cast<uint32_t>(inputs.size())));
  }
  void run(std::initializer_list<pumice_tensor> inputs, uint32_t method = 0) {
    run(std::span(inputs.begin(), inputs.size()), method);
  }
  // Makes what the first run with inputs of these dtypes and shapes needs (pumice_session_prepare).
  void prepare(std::span<const pumice_tensor> inputs, uint32_t method = 0) {
    throw_if(pumice_session_prepare(handle_, method, inputs.data(), static_cast<uint32_t>(inputs.size())));
  }
  // dtype, dims and bytes of an output of the last run.
  pumice_tensor output(uint32_t index) const {
    pumice_tensor tensor = PUMICE_INIT(pumice_tensor);
    throw_if(pumice_session_output(handle_, index, &tensor));
    return tensor;
  }
  // Copies an output to `data`; `bytes` must be exactly its size.
  void read(uint32_t index, void* data, uint64_t bytes) const {
    throw_if(pumice_session_read(handle_, index, data, bytes));
  }
  // An output as a vector, row-major; T is not checked against the dtype.
  template <class T>
  std::vector<T> output(uint32_t index) const {
    std::vector<T> data(output(index).bytes / sizeof(T));
    read(index, data.data(), data.size() * sizeof(T));
    return data;
  }
  // Ends the run under way in another thread, which throws Error with PUMICE_CANCELLED (pumice_session_cancel).
  void cancel() { throw_if(pumice_session_cancel(handle_)); }
  // Sets the state back to its values in the file.
  void reset() { throw_if(pumice_session_reset(handle_)); }
  void seed(uint64_t seed) { throw_if(pumice_session_seed(handle_, seed)); }
  // A run with timestamps: JSON of pumice_session_profile.
  std::string profile(std::span<const pumice_tensor> inputs, uint32_t method = 0) {
    char* json = nullptr;
    throw_if(pumice_session_profile(handle_, method, inputs.data(), static_cast<uint32_t>(inputs.size()), &json));
    return to_string_and_free(json);
  }
  // Bytes on the device by kind: JSON of pumice_session_memory.
  std::string memory() const {
    char* json = nullptr;
    throw_if(pumice_session_memory(handle_, &json));
    return to_string_and_free(json);
  }

 private:
  pumice_session handle_{};
};

}  // namespace api
}  // namespace pumice
