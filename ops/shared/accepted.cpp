// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/accepted.h"

#include <algorithm>

#include "base/dtype.h"
#include "ops/conv/conv_scheme.h"
#include "ops/linear/linear_scheme.h"

namespace pumice::engine {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f16,     DType::i32, DType::i64,
                             DType::u8,  DType::boolean, DType::i8};  // i4 is only inside of packed weights

const Axis* find(const Op& op, std::string_view name) {
  const auto found =
      std::find_if(op.variants.begin(), op.variants.end(), [&](const Axis& axis) { return axis.name == name; });
  return found == op.variants.end() ? nullptr : &*found;
}

bool lists(const Axis& axis, std::string_view value) {
  return std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end();
}

// i64 is i32 on the device, unless the axis lists it; an axis BITS moves whatever has that width.
bool takes(const Axis& axis, DType dtype) {
  if (axis.name == "BITS") return lists(axis, "b" + std::to_string(8 * device_bytes(dtype)));
  if (dtype == DType::i64) return lists(axis, "i64") || lists(axis, "i32");
  if (dtype == DType::boolean) return lists(axis, "boolean");
  return lists(axis, name(dtype));
}

std::vector<std::string> dtypes(const Axis* axis, std::string_view never) {
  std::vector<std::string> names;
  for (const DType dtype : kDTypes)
    if ((axis == nullptr || takes(*axis, dtype)) && name(dtype) != never) names.emplace_back(name(dtype));
  return names;
}

std::vector<std::string> values(const Axis& axis) {
  return {axis.values.begin(), axis.values.end()};
}

std::vector<std::string> scheme(const LinearScheme& linear) {
  if (linear.scales == ScalePer::none) return {};
  std::string words = linear.weight == WeightType::q4 ? "int4" : "int8";
  words += linear.scales == ScalePer::group ? " weights by group" : " weights by row";
  constexpr const char* kRows[] = {"", ", int8 x chosen for each row", ", int8 x by numbers", ", 8 bits in and out",
                                   ", int8 in and out with numbers for each row"};
  return {words + kRows[static_cast<size_t>(linear.rows)]};
}

std::vector<std::string> scheme(const ConvScheme& conv) {
  if (!conv.quantized) return {};
  const char* const bytes = conv.out_bytes ? ", 8 bits in and out" : conv.x_bytes ? ", 8 bits in" : "";
  return {std::string("int8 weights by output channel") + bytes};
}

}  // namespace

Accepted accepted(const Op& op) {
  Accepted found;
  const Axis *in = find(op, "DTYPE"), *out = find(op, "OUT"), *bits = find(op, "BITS");
  if (in == nullptr) in = find(op, "IN");
  if (in != nullptr) found["tensors"] = dtypes(in, op.never);
  if (out != nullptr || in == nullptr) found["results"] = dtypes(out != nullptr ? out : bits, op.never);
  const Axis *both = find(op, "STORAGE"), *x = find(op, "X_STORAGE"), *weight = find(op, "WEIGHT_STORAGE");
  found["storage"] = found["result_storage"] = {"buffer"};
  if (both != nullptr) found["storage"] = found["result_storage"] = values(*both);
  if (x != nullptr) found["storage"] = values(*x);
  if (weight != nullptr) found["weight_storage"] = values(*weight);
  std::vector<std::string> quantized;
  if (op.cases.linear != nullptr) quantized = scheme(*op.cases.linear);
  if (op.cases.conv != nullptr) quantized = scheme(*op.cases.conv);
  if (!quantized.empty()) found["scheme"] = std::move(quantized);
  return found;
}

}  // namespace pumice::engine
