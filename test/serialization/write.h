// SPDX-License-Identifier: Apache-2.0
// For tests: the bytes of a file from a Program, which may be invalid (writer: serialization/write.h).
#pragma once

#include <cstring>

#include "serialization/read.h"
#include "serialization/write.h"

namespace pumice::engine::test {

using pumice::engine::Bytes;
using pumice::engine::reseal;

struct Model : Draft {
  Method& method() { return program.methods[0]; }
  Value& value(size_t i) { return method().values[i]; }
  OpCall& op(size_t i) { return method().ops[i]; }
  Arg& arg(size_t op, size_t i) { return method().ops[op].args[i]; }
};

inline void put(Bytes& file, size_t at, uint64_t value, size_t bytes) {
  std::memcpy(file.data() + at, &value, bytes);
}
inline uint64_t get(const Bytes& file, size_t at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + at, bytes);
  return value;
}

inline Bytes file(const Model& model) {
  return write_file(model);
}

}  // namespace pumice::engine::test
