// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/call_data.h"

#include <algorithm>
#include <cmath>

#include "serialization/signature.h"
#include "tools/kernel_bench/values.h"

namespace pumice::engine::kernel_bench {
namespace {

using Role = Argument::Role;

std::vector<double> random_values(const CallTensor& tensor, Random& random) {
  constexpr double kSpecial[] = {NAN, INFINITY, -INFINITY};
  std::vector<double> values(count_of(tensor.shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const bool special = tensor.has_special && i % 7 == 0;
    const double width = tensor.high - tensor.low + (is_float(tensor.dtype) ? 0 : 1);
    const double drawn = tensor.low + width * static_cast<double>(random.next() >> 40) * 0x1p-24;
    const double value = tensor.numbers.empty() ? drawn : tensor.numbers[i % tensor.numbers.size()];
    values[i] = special                  ? kSpecial[i / 7 % 3]
                : is_float(tensor.dtype) ? stored(value, tensor.dtype)
                                         : std::floor(value);
  }
  return values;
}

void put(Bytes& bytes, size_t at, double value, DType dtype) {
  if (dtype == DType::f32) {
    const auto f = static_cast<float>(value);
    std::memcpy(&bytes[at * 4], &f, 4);
  } else if (dtype == DType::f16) {
    const uint16_t half = half_bits(static_cast<float>(value));
    std::memcpy(&bytes[at * 2], &half, 2);
  } else if (dtype == DType::i64) {
    const auto i = static_cast<int64_t>(value);
    std::memcpy(&bytes[at * 8], &i, 8);
  } else if (dtype == DType::i32) {
    const auto i = static_cast<int32_t>(value);
    std::memcpy(&bytes[at * 4], &i, 4);
  } else {
    bytes[at] = static_cast<std::byte>(static_cast<int>(value));
  }
}

Data encode(const CallTensor& tensor, const std::vector<double>& values) {
  Data data{tensor.dtype, tensor.shape, Bytes(file_bytes(tensor.dtype, tensor.shape))};
  if (tensor.dtype != DType::i4) {
    for (size_t i = 0; i < values.size(); ++i) put(data.bytes, i, values[i], tensor.dtype);
    return data;
  }
  const auto columns = static_cast<size_t>(tensor.shape.back());  // each row of i4 begins at a byte
  for (size_t i = 0; i < values.size(); ++i) {
    std::byte& place = data.bytes[i / columns * ((columns + 1) / 2) + i % columns / 2];
    place |= static_cast<std::byte>((static_cast<int>(values[i]) + 8) << (i % columns % 2 * 4));
  }
  return data;
}

}  // namespace

CallData::CallData(const Op& op, const Case& c, uint64_t seed)
    : CaseData(c), op_(op), call_(parse_call(op, c.call, c.dtype)) {
  for (const CallArgument& argument : call_.arguments) {
    std::vector<Tensor>& tensors = tensors_.emplace_back();
    for (const CallTensor& tensor : argument.tensors) {
      Random random(seed, argument.name + std::to_string(tensors.size()));
      tensors.push_back({tensor, random_values(tensor, random)});
    }
  }
}

const CallData::Results& CallData::results() const {
  if (!results_) results_ = has_reference() ? run_reference() : Results{};
  return *results_;
}

CallData::Results CallData::run_reference() const {
  Results all;
  HostCall host;
  for (const CallTensor& each : call_.outputs) host.outputs.push_back({each.dtype, each.shape});
  for (const Param& param : parse(op_.signature).params) {
    HostArgument& to = host.args.emplace_back();
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      const CallArgument& from = call_.arguments[i];
      if (from.name != param.name) continue;
      to.given = true;
      to.number = from.number;
      to.list = from.list;
      for (const Tensor& each : tensors_[i]) to.tensors.push_back({each.is.dtype, each.is.shape, each.values});
    }
  }
  op_.cases.reference(host);
  for (const HostOutput& output : host.outputs) {
    if (output.elements.size() != output.count())
      fail(Code::Internal, Stage::api, "case", "the reference of %s gives %zu elements, the case has %zu",
           c_.op.c_str(), output.elements.size(), output.count());
    std::vector<Expected>& results = all.outputs.emplace_back();
    for (const HostResult& each : output.elements)
      results.push_back({.want = each.value,
                         .slack = each.error,
                         .by_matrices = each.by_matrices,
                         .in_any_order = each.in_any_order});
  }
  all.reports = std::move(host.reports);
  return all;
}

std::vector<Argument> CallData::arguments() const {
  std::vector<Argument> all;
  for (size_t i = 0; i < call_.arguments.size(); ++i) {
    const CallArgument& from = call_.arguments[i];
    Argument& to = all.emplace_back(Argument{.name = from.name, .role = Role::input});
    to.number = static_cast<int64_t>(from.number);
    to.real = from.number;
    to.numbers = from.list;
    for (const Tensor& tensor : tensors_[i]) to.list.push_back(encode(tensor.is, tensor.values));
    if (from.type == ParamType::tensors) {
      to.role = Role::inputs;
    } else if (!to.list.empty()) {
      to.role = tensors_[i][0].is.is_constant ? Role::constant : Role::input;
      to.data = std::move(to.list[0]);
    } else if (from.type == ParamType::ints || from.type == ParamType::sizes) {
      to.role = Role::integers;
    } else if (from.type == ParamType::dtype) {
      to.role = Role::dtype;
      to.number = static_cast<int64_t>(from.dtype);
    } else if (from.type == ParamType::boolean) {
      to.role = Role::boolean;
    } else {
      to.role = from.is_integer && from.type != ParamType::real ? Role::integer : Role::real;
    }
  }
  return all;
}

std::vector<Output> CallData::outputs() const {
  std::vector<Output> all;
  for (const CallTensor& each : call_.outputs) all.push_back({each.dtype, each.shape});
  return all;
}

std::vector<Expected> CallData::expect(size_t output, std::span<const uint64_t> indices) const {
  std::vector<Expected> all;
  if (!has_reference()) return all;
  for (const uint64_t index : indices) all.push_back(results().outputs[output].at(index));
  return all;
}

uint64_t CallData::macs() const {
  uint64_t count = 1;
  for (const CallTensor& each : call_.outputs) count += count_of(each.shape);
  return count;
}

}  // namespace pumice::engine::kernel_bench
