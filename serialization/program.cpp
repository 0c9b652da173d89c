// SPDX-License-Identifier: Apache-2.0
#include "serialization/program.h"

#include <algorithm>

namespace pumice::engine {

const char* name(ValueKind kind) {
  switch (kind) {
    case ValueKind::input:
      return "input";
    case ValueKind::output:
      return "output";
    case ValueKind::constant:
      return "constant";
    case ValueKind::state:
      return "state";
    case ValueKind::scratch:
      return "scratch";
  }
  return "?";
}

const char* name(StorageType storage) {
  switch (storage) {
    case StorageType::buffer:
      return "buffer";
    case StorageType::texture3d:
      return "texture3d";
    case StorageType::texture2d:
      return "texture2d";
  }
  return "?";
}

const char* name(Precision precision) {
  constexpr const char* kNames[] = {"split", "fp32", "fp16"};
  return kNames[static_cast<size_t>(precision)];
}

const char* name(ArgKind kind) {
  switch (kind) {
    case ArgKind::none:
      return "none";
    case ArgKind::value:
      return "tensor";
    case ArgKind::integer:
      return "int";
    case ArgKind::real:
      return "float";
    case ArgKind::boolean:
      return "bool";
    case ArgKind::dtype:
      return "dtype";
    case ArgKind::expr:
      return "expression";
    case ArgKind::ints:
      return "list of ints";
    case ArgKind::exprs:
      return "list of expressions";
    case ArgKind::values:
      return "list of tensors";
  }
  return "?";
}

bool same_dims(const Value& a, const Value& b) {
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](SymInt x, SymInt y) { return x.is_expr == y.is_expr && x.value == y.value; });
}

}  // namespace pumice::engine
