// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's backend interface over the C interface of Pumice. No exception crosses it.
#include "pumice/executorch.h"

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/executorch/delegate.h"
#include "runtime/executorch/errors.h"

namespace pumice::et {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendOption;
using executorch::runtime::BackendOptionContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

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
      if (const Error bad = set_all(options, specs); bad != Error::Ok) {
        return bad;
      }
      options.merge(current());
      if (const Error bad = set_all(options, context.runtime_specs()); bad != Error::Ok) {
        return bad;
      }
      auto loaded = std::make_unique<Delegate>();
      if (const Error bad = loaded->load(processed->data(), processed->size(), options, context.get_named_data_map());
          bad != Error::Ok) {
        return bad;
      }
      processed->Free();  // the weights are on the device
      delegate = loaded.release();
      return Error::Ok;
    });
    if (error != Error::Ok) {
      return error;
    }
    return static_cast<DelegateHandle*>(delegate);
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle, Span<EValue*> args) const override {
    return guarded([&] { return static_cast<Delegate*>(handle)->run(args, context.event_tracer()); });
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Delegate*>(handle); }

  // All of them or, on an error, none.
  Error set_option(BackendOptionContext&, const Span<BackendOption>& given) override {
    return guarded([&] {
      const std::lock_guard lock(mutex_);
      Options options = options_;
      const Error error = set_all(options, given);
      if (error == Error::Ok) {
        options_ = std::move(options);
      }
      return error;
    });
  }

  Error get_option(BackendOptionContext&, Span<BackendOption>& asked) override {
    return guarded([&] {
      const Options options = current();
      for (BackendOption& option : asked) {
        if (const Error error = options.get(option); error != Error::Ok) {
          return error;
        }
      }
      return Error::Ok;
    });
  }

 private:
  template <class List>
  static Error set_all(Options& options, const List& given) {
    for (const auto& each : given) {
      if (const Error error = options.set(each); error != Error::Ok) {
        return error;
      }
    }
    return Error::Ok;
  }

  Options current() const {
    const std::lock_guard lock(mutex_);
    return options_;
  }

  mutable std::mutex mutex_;
  Options options_;  // of the programs that are loaded from now on
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
