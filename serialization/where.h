// SPDX-License-Identifier: Apache-2.0
// A place in the program, for errors. Private to serialization/.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace pumice::engine {

// A place such as "methods[0].values[17].dims[2]", as a chain on the call stack; it becomes text only for an error.
struct Where {
  const Where* up = nullptr;
  const char* field = "";
  int64_t index = -1;  // -1: the field itself

  std::string text() const;
};

// Both throw with Stage::semantics and the place as path.
[[noreturn]] void bad(Code code, const Where& at, const std::string& text);
// Throws BadIndex unless 0 <= got < size. `what` is what is counted, e.g. "values".
void check_index(int64_t got, uint64_t size, const char* what, const Where& at);

}  // namespace pumice::engine
