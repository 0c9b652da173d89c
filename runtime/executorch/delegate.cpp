// SPDX-License-Identifier: Apache-2.0
#include "runtime/executorch/delegate.h"

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "runtime/executorch/errors.h"
#include "runtime/executorch/layout.h"
#include "runtime/executorch/trace.h"

namespace pumice::et {

using executorch::aten::ScalarType;
using executorch::aten::SizesType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::EventTracer;
using executorch::runtime::NamedDataMap;

namespace {

std::optional<pumice_dtype> dtype_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return PUMICE_F32;
    case ScalarType::Half:
      return PUMICE_F16;
    case ScalarType::Int:
      return PUMICE_I32;
    case ScalarType::Long:
      return PUMICE_I64;
    case ScalarType::Bool:
      return PUMICE_BOOL;
    case ScalarType::Byte:
      return PUMICE_U8;
    case ScalarType::Char:
      return PUMICE_I8;
    default:
      return std::nullopt;
  }
}

Error mismatch(const char* what, size_t index, const char* why) {
  ET_LOG(Error, "PumiceBackend: %s %zu %s", what, index, why);
  return Error::InvalidArgument;
}

// Why the runtime's tensor is nothing that the C interface takes, or null.
const char* unfit_type(const Tensor& tensor) {
  if (tensor.dim() > PUMICE_MAX_RANK) {
    return "has more than 8 dimensions";
  }
  return dtype_of(tensor.scalar_type()) ? nullptr : "has a dtype that Pumice does not have";
}

// Constants that preprocess stored outside of the blob. Each is read once, because ExecuTorch may read the file for it.
struct ExternalConstants {
  const NamedDataMap* map;
  std::map<std::string, executorch::runtime::FreeableBuffer, std::less<>> held;

  static int find(void* user, const char* key, const void** data, uint64_t* bytes) {
    auto& self = *static_cast<ExternalConstants*>(user);
    auto at = self.held.find(std::string_view(key));
    if (at == self.held.end()) {
      if (self.map == nullptr) {
        return 1;
      }
      auto found = self.map->get_data(key);
      if (!found.ok()) {
        return 1;
      }
      at = self.held.emplace(key, std::move(*found)).first;
    }
    *data = at->second.data();
    *bytes = at->second.size();
    return 0;
  }
};

}  // namespace

Delegate::~Delegate() {
  pumice_session_free(session_);
  pumice_model_free(model_);
}

Error Delegate::load(const void* blob, size_t bytes, const Options& options, const NamedDataMap* weights) {
  const auto or_null = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  auto chosen = PUMICE_INIT(pumice_options);
  chosen.device = or_null(options.device);
  chosen.features = or_null(options.features);
  chosen.cache_dir = or_null(options.cache_dir);
  ExternalConstants outside{weights, {}};  // freed on return: the weights are on the device then
  chosen.external = ExternalConstants::find;
  chosen.user = &outside;
  if (const auto status = pumice_model_load(blob, bytes, &chosen, &model_)) {
    return failed("cannot load", status);
  }
  if (const auto status = pumice_session_new(model_, &session_)) {
    return failed("cannot start", status);
  }
  if (const auto status = pumice_model_counts(model_, 0, &num_inputs_, &num_outputs_)) {
    return failed("cannot read the signature", status);
  }
  inputs_.reserve(num_inputs_);
  profile_ = options.profile;
  return Error::Ok;
}

pumice_status Delegate::run_session(EventTracer* tracer) {
  if (tracer != nullptr && profile_) {
    const auto status = run_traced(session_, inputs_, *tracer);
    if (status != PUMICE_DEVICE_UNSUPPORTED) {
      return status;
    }
    ET_LOG(Info, "PumiceBackend: dispatches are not traced: %s", pumice_last_error()->text);  // and nothing has run
    profile_ = false;
  }
  return pumice_session_run(session_, 0, inputs_.data(), static_cast<uint32_t>(inputs_.size()));
}

Error Delegate::run(executorch::runtime::Span<EValue*> args, EventTracer* tracer) {
  if (args.size() < size_t{num_inputs_} + num_outputs_) {
    ET_LOG(Error, "PumiceBackend: %zu arguments, the blob has %u inputs and %u outputs", args.size(), num_inputs_,
           num_outputs_);
    return Error::InvalidArgument;
  }
  const size_t first_output = args.size() - num_outputs_;
  const std::lock_guard lock(running_);
  inputs_.clear();
  for (size_t i = 0; i < first_output; ++i) {
    if (!args[i]->isTensor()) {
      continue;  // a size: the file computes it from the shapes of the inputs
    }
    const Tensor& tensor = args[i]->toTensor();
    if (const char* why = unfit_type(tensor)) {
      return mismatch("input", inputs_.size(), why);
    }
    auto input = PUMICE_INIT(pumice_tensor);
    input.dtype = *dtype_of(tensor.scalar_type());
    input.rank = static_cast<uint32_t>(tensor.dim());
    std::copy(tensor.sizes().begin(), tensor.sizes().end(), input.dims);
    input.data = has_usual_order(tensor) ? tensor.const_data_ptr() : in_usual_order(tensor, inputs_.size());
    input.bytes = tensor.nbytes();
    inputs_.push_back(input);
  }
  if (const auto status = run_session(tracer)) {
    return failed("cannot run", status);
  }
  for (uint32_t i = 0; i < num_outputs_; ++i) {
    if (const Error error = read(i, *args[first_output + i]); error != Error::Ok) {
      return error;
    }
  }
  return Error::Ok;
}

const void* Delegate::in_usual_order(const Tensor& tensor, size_t index) {
  reordered_.resize(std::max(reordered_.size(), index + 1));
  reordered_[index].resize(tensor.nbytes());
  copy_out(tensor, reordered_[index].data());
  return reordered_[index].data();
}

Error Delegate::read(uint32_t index, EValue& value) {
  if (!value.isTensor()) {
    return mismatch("output", index, "is no tensor");
  }
  Tensor& tensor = value.toTensor();
  auto result = PUMICE_INIT(pumice_tensor);
  if (const auto status = pumice_session_output(session_, index, &result)) {
    return failed("cannot read an output", status);
  }
  std::array<SizesType, PUMICE_MAX_RANK> sizes{};
  std::copy_n(result.dims, result.rank, sizes.begin());  // a size is less than 2^31 in a file
  const Error resized = executorch::runtime::resize_tensor(tensor, {sizes.data(), result.rank});
  if (resized != Error::Ok) {
    return mismatch("output", index, "cannot take the shape of the result: the program was exported for other sizes");
  }
  if (const char* why = unfit_type(tensor)) {
    return mismatch("output", index, why);
  }
  if (*dtype_of(tensor.scalar_type()) != result.dtype) {
    return mismatch("output", index, "has another dtype than the blob's");
  }
  const bool usual = has_usual_order(tensor);
  if (!usual) {
    reordered_.resize(std::max<size_t>(reordered_.size(), 1));
    reordered_[0].resize(result.bytes);
  }
  void* target = usual ? tensor.mutable_data_ptr() : reordered_[0].data();
  if (const auto status = pumice_session_read(session_, index, target, result.bytes)) {
    return failed("cannot copy an output", status);
  }
  if (!usual) {
    copy_in(reordered_[0].data(), tensor);
  }
  return Error::Ok;
}

}  // namespace pumice::et
