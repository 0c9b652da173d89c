// SPDX-License-Identifier: Apache-2.0
#include "serialization/where.h"

#include <cinttypes>

namespace pumice::engine {

std::string Where::text() const {
  std::string out = up == nullptr ? std::string() : up->text() + ".";
  out += field;
  if (index >= 0) out += "[" + std::to_string(index) + "]";
  return out;
}

void bad(Code code, const Where& at, const std::string& text) {
  fail(code, Stage::semantics, at.text(), "%s", text.c_str());
}

void check_index(int64_t got, uint64_t size, const char* what, const Where& at) {
  if (got < 0 || static_cast<uint64_t>(got) >= size) {
    fail(Code::BadIndex, Stage::semantics, at.text(), "got %" PRId64 ", there are %" PRIu64 " %s", got, size, what);
  }
}

}  // namespace pumice::engine
