// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/host_call.h"

#include <algorithm>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "ops/shared/shape.h"

namespace pumice::engine {

size_t count_of(const Shape& shape) {
  return static_cast<size_t>(product(shape, 0, shape.size()));
}

size_t HostOutput::count() const {
  return count_of(shape);
}

void check_i64(HostCall& call) {
  const std::vector<HostResult>& all = call.out().elements;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].value >= -0x1p31 && all[i].value < 0x1p31) continue;
    call.reports.push_back({static_cast<uint32_t>(i), 0, STATUS_LEAVES_32_BITS});
  }
}

Shape coordinates(size_t index, const Shape& shape) {
  Shape at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const auto size = static_cast<size_t>(shape[d]);
    at[d] = static_cast<int64_t>(index % size);
    index /= size;
  }
  return at;
}

size_t index_at(const Shape& coordinates, const Shape& shape) {
  size_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    index = index * static_cast<size_t>(shape[d]) + static_cast<size_t>(coordinates[d]);
  return index;
}

double broadcast_to(const HostArgument& side, const Shape& at) {
  if (!side.is_tensor()) return side.number;
  const HostTensor& tensor = side.tensors[0];
  const size_t added = at.size() - tensor.shape.size();
  Shape own(at.begin() + static_cast<std::ptrdiff_t>(added), at.end());
  for (size_t d = 0; d < own.size(); ++d) own[d] = tensor.shape[d] == 1 ? 0 : own[d];
  return tensor.values[index_at(own, tensor.shape)];
}

size_t axis_of(int64_t dim, const Shape& shape) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim);
}

double in_f16(double value) {
  return half_value(half_bits(static_cast<float>(value)));
}

double wrapped(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::boolean:
      return value != 0;
    default:
      return static_cast<int32_t>(value);
  }
}

double stored(double value, DType dtype) {
  if (dtype == DType::f32) return in_f32(value);
  return dtype == DType::f16 ? in_f16(value) : wrapped(static_cast<int64_t>(value), dtype);
}

void limit_errors(HostOutput& out) {
  double largest = 0;
  for (const HostResult& each : out.elements)
    if (std::isfinite(each.value)) largest = std::max(largest, std::fabs(each.value));
  for (HostResult& each : out.elements) each.error = std::min(each.error, 0x1p-18 * largest);
}

}  // namespace pumice::engine
