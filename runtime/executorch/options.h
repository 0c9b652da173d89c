// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <string>

namespace pumice::et {

// The options of a program: from its export (compile specs), for all programs that are loaded from now on
// (executorch::runtime::set_option), or for one at load time (LoadBackendOptionsMap). A later one wins.
class Options {
 public:
  std::string device, features, cache_dir;  // of pumice_options; empty: not set
  bool profile = true;                      // an event tracer gets every dispatch

  // InvalidArgument, with a line in the log: the key is unknown, or its value has another type.
  executorch::runtime::Error set(const executorch::runtime::CompileSpec& spec);
  executorch::runtime::Error set(const executorch::runtime::BackendOption& option);
  // Fills in the value; NotFound: the key is unknown.
  executorch::runtime::Error get(executorch::runtime::BackendOption& option) const;
  // Takes the options that `later` sets.
  void merge(const Options& later);

 private:
  static constexpr std::string Options::* kTexts[] = {&Options::device, &Options::features, &Options::cache_dir};
  static std::string Options::* text(std::string_view key);
};

}  // namespace pumice::et
