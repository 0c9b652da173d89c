// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <string>

namespace pumice::et {

// What may be said of a program: at export (compile specs), for all programs that are loaded from now on
// (executorch::runtime::set_option), for one at load time (LoadBackendOptionsMap). What is said later wins.
class Options {
 public:
  std::string device, features, cache_dir;  // of pumice_options; empty: not said
  bool profile = true;                      // an event tracer gets every dispatch

  // InvalidArgument, with a line in the log: the key is unknown, or its value of another type.
  executorch::runtime::Error set(const executorch::runtime::CompileSpec& spec);
  executorch::runtime::Error set(const executorch::runtime::BackendOption& option);
  // Fills in the value; NotFound: the key is unknown.
  executorch::runtime::Error get(executorch::runtime::BackendOption& option) const;
  // Takes what `later` says.
  void merge(const Options& later);

 private:
  static constexpr std::string Options::* kTexts[] = {&Options::device, &Options::features, &Options::cache_dir};
  static std::string Options::* text(std::string_view key);
};

}  // namespace pumice::et
