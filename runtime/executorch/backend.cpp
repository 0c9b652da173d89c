// SPDX-License-Identifier: Apache-2.0
// The adaptor: ExecuTorch's backend interface over our C interface. Nothing is thrown across it.
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>

#include "pumice/executorch.h"
#include "runtime/executorch/delegate.h"

namespace pumice::et {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

Error code_of(pumice_status status) {
  switch (status) {
    case PUMICE_OK:
      return Error::Ok;
    case PUMICE_BAD_HEADER:
    case PUMICE_UNSUPPORTED_VERSION:
    case PUMICE_UNKNOWN_OP:
      return Error::DelegateInvalidCompatibility;
    case PUMICE_PATH_REJECTED:
    case PUMICE_IO_ERROR:
      return Error::AccessFailed;
    case PUMICE_INVALID_ARGUMENT:
      return Error::InvalidArgument;
    case PUMICE_WRONG_STATE:
    case PUMICE_BUSY:
      return Error::InvalidState;
    case PUMICE_OUT_OF_HOST_MEMORY:
      return Error::MemoryAllocationFailed;
    case PUMICE_OUT_OF_DEVICE_MEMORY:
      return Error::DelegateMemoryAllocationFailed;
    case PUMICE_DEVICE_UNSUPPORTED:
      return Error::NotSupported;
    default:
      return status < PUMICE_INVALID_ARGUMENT ? Error::InvalidProgram : Error::Internal;
  }
}

Error failed(const char* doing, pumice_status status) {
  const pumice_error* error = pumice_last_error();
  ET_LOG(Error, "PumiceBackend: %s: %s: %s%s%s", doing, error->name, error->path, *error->path ? ": " : "",
         error->text);
  return code_of(status);
}

std::string* Options::find(std::string_view key) {
  if (key == "device") {
    return &device;
  }
  if (key == "features") {
    return &features;
  }
  return key == "cache_dir" ? &cache_dir : nullptr;
}

namespace {

// Calls `body`; what it throws (there is nothing left but a lack of memory) becomes an error.
template <class Body>
Error guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    ET_LOG(Error, "PumiceBackend: out of memory");
    return Error::MemoryAllocationFailed;
  } catch (const std::exception& error) {
    ET_LOG(Error, "PumiceBackend: %s", error.what());
    return Error::Internal;
  }
}

Error unknown_option(const char* kind, std::string_view key) {
  ET_LOG(Error, "PumiceBackend: the %s '%.*s' is unknown; there are device, features and cache_dir", kind,
         static_cast<int>(key.size()), key.data());
  return Error::InvalidArgument;
}

// What was said at export, then what is said at load time.
Error read_options(const BackendInitContext& context, ArrayRef<CompileSpec> specs, Options& options) {
  for (const CompileSpec& spec : specs) {
    if (std::string_view(spec.key) == "least_sizes" || std::string_view(spec.key) == "external_data") {
      continue;  // of use at export only
    }
    std::string* field = options.find(spec.key);
    if (field == nullptr) {
      return unknown_option("compile spec", spec.key);
    }
    field->assign(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
  }
  for (const auto& option : context.runtime_specs()) {
    const std::string_view key(option.key, strnlen(option.key, sizeof option.key));
    std::string* field = options.find(key);
    const auto* text = std::get_if<std::array<char, executorch::runtime::kMaxOptionValueLength>>(&option.value);
    if (field == nullptr || text == nullptr) {
      return unknown_option("option (they are text)", key);
    }
    field->assign(text->data(), strnlen(text->data(), text->size()));
  }
  return Error::Ok;
}

class Backend final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override {
    bool found = false;
    (void)guarded([&] {
      char* text = nullptr;
      if (const auto status = pumice_devices(&text)) {
        return failed("cannot look for devices", status);
      }
      const std::unique_ptr<char, void (*)(char*)> owned(text, pumice_text_free);
      const auto json = nlohmann::json::parse(text);
      found = !json.at("devices").empty();
      if (!found) {
        ET_LOG(Error, "PumiceBackend: no Vulkan device: %s", json.value("why", std::string()).c_str());
      }
      return Error::Ok;
    });
    return found;
  }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec> specs) const override {
    Delegate* delegate = nullptr;
    const Error error = guarded([&] {
      Options options;
      if (const Error bad = read_options(context, specs, options); bad != Error::Ok) {
        return bad;
      }
      auto made = std::make_unique<Delegate>();
      if (const Error bad = made->load(processed->data(), processed->size(), options, context.get_named_data_map());
          bad != Error::Ok) {
        return bad;
      }
      processed->Free();  // the weights are on the device
      delegate = made.release();
      return Error::Ok;
    });
    if (error != Error::Ok) {
      return error;
    }
    return static_cast<DelegateHandle*>(delegate);
  }

  Error execute(BackendExecutionContext&, DelegateHandle* handle, Span<EValue*> args) const override {
    return guarded([&] { return static_cast<Delegate*>(handle)->run(args); });
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Delegate*>(handle); }
};

}  // namespace
}  // namespace pumice::et

extern "C" uint32_t pumice_executorch_register(void) {
  static std::mutex mutex;
  static bool registered = false;
  static pumice::et::Backend backend;
  const std::lock_guard lock(mutex);
  if (registered) {
    return 0;
  }
  const auto error = executorch::runtime::register_backend({"PumiceBackend", &backend});
  registered = error == executorch::runtime::Error::Ok;
  return static_cast<uint32_t>(error);
}

extern "C" const char* pumice_executorch_version(void) {
  return PUMICE_EXECUTORCH_VERSION;
}
