// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include "base/error.h"

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

uint32_t device_bytes(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
    case DType::i64:
      return 4;
    case DType::f16:
      return 2;
    case DType::boolean:
    case DType::u8:
    case DType::i8:
      return 1;
    case DType::i4:
      break;
  }
  fail(Code::BadDtype, Stage::plan, "", "%s has no element on the device", name(dtype));
}

CheckedU64 checked_elements(std::span<const int64_t> dims) {
  CheckedU64 count = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return CheckedU64::none();
    if (dim == 0) {
      empty = true;
    } else {
      count = count * static_cast<uint64_t>(dim);
    }
  }
  // An empty tensor has no elements, but its other sizes must still multiply without overflow.
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

std::string text(std::span<const int64_t> dims) {
  std::string out;
  for (const int64_t dim : dims) out += (out.empty() ? "" : ", ") + std::to_string(dim);
  return out;
}

}  // namespace pumice::engine
