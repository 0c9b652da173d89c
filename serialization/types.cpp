// SPDX-License-Identifier: Apache-2.0
#include "serialization/types.h"

#include <algorithm>

namespace pumice::engine {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::i4:
      return "i4";
  }
  return "?";
}

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

const char* name(StorageClass storage) {
  switch (storage) {
    case StorageClass::buffer:
      return "buffer";
    case StorageClass::texture3d:
      return "texture3d";
    case StorageClass::texture2d:
      return "texture2d";
  }
  return "?";
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

CheckedU64 checked_elements(std::span<const int64_t> dims) {
  CheckedU64 count = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return CheckedU64::none();
    if (dim == 0)
      empty = true;
    else
      count = count * static_cast<uint64_t>(dim);
  }
  // An empty tensor is empty whatever its other sizes are, but they must still multiply without overflow.
  return empty && count.ok() ? CheckedU64(0) : count;
}

CheckedU64 checked_file_bytes(DType dtype, std::span<const int64_t> dims) {
  if (dtype == DType::i4) {
    if (dims.empty()) return 1;
    if (dims.back() < 0) return CheckedU64::none();
    const uint64_t row = (static_cast<uint64_t>(dims.back()) + 1) / 2;
    return checked_elements(dims.first(dims.size() - 1)) * row;
  }
  const uint64_t size = dtype == DType::i64                          ? 8
                        : dtype == DType::f32 || dtype == DType::i32 ? 4
                        : dtype == DType::f16                        ? 2
                                                                     : 1;
  return checked_elements(dims) * size;
}

uint64_t file_bytes(DType dtype, std::span<const int64_t> dims) {
  const auto bytes = checked_file_bytes(dtype, dims).value();
  if (!bytes) {
    fail(Code::LimitExceeded, Stage::semantics, "", "the bytes of %s[%s] do not fit 64 bits", name(dtype),
         text(dims).c_str());
  }
  return *bytes;
}

bool same_dims(const Value& a, const Value& b) {
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](SymInt x, SymInt y) { return x.is_expr == y.is_expr && x.value == y.value; });
}

std::string text(std::span<const int64_t> dims) {
  std::string out;
  for (const int64_t dim : dims) out += (out.empty() ? "" : ", ") + std::to_string(dim);
  return out;
}

std::string Where::text() const {
  std::string out = up == nullptr ? std::string() : up->text() + ".";
  out += field;
  if (index >= 0) out += "[" + std::to_string(index) + "]";
  return out;
}

}  // namespace pumice::engine
