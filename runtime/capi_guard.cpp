// SPDX-License-Identifier: Apache-2.0
#include "runtime/capi_guard.h"

#include <pthread.h>

#include <atomic>

namespace pumice::engine {
namespace {

struct LastError {
  std::string stage, path, text;
  pumice_error view{sizeof(pumice_error), PUMICE_OK, "Ok", "", "", ""};
};
thread_local LastError last;

std::atomic<bool> is_child{false};

}  // namespace

const pumice_error& last_error() {
  return last.view;
}

pumice_status set_error(Code code, const char* stage, const char* path, const char* text) noexcept {
  const uint32_t number = static_cast<uint32_t>(code);
  try {
    last.stage = stage;
    last.path = path;
    last.text = text;
    last.view = {sizeof(pumice_error), number, name(code), last.stage.c_str(), last.path.c_str(), last.text.c_str()};
  } catch (...) {
    last.view = {sizeof(pumice_error), number, name(code), "", "", "no memory for the error's text"};
  }
  return number;
}

void must_be_parent() {
  static const int kWatching = pthread_atfork(nullptr, nullptr, [] { is_child = true; });
  (void)kWatching;
  if (is_child)
    fail(Code::WrongState, Stage::api, "",
         "this process was forked after Pumice was used; load the model in a fresh process");
}

}  // namespace pumice::engine
