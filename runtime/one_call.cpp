// SPDX-License-Identifier: Apache-2.0
#include "runtime/one_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op.h"
#include "ops/shared/shape.h"
#include "runtime/smaller_call.h"

namespace pumice::engine {
namespace {

constexpr std::string_view kKnown[] = {"linear",
                                       "linear_q4gsw",
                                       "linear_q8csw",
                                       "linear_q8gsw",
                                       "fused_linear",
                                       "conv2d",
                                       "conv2d_q8csw",
                                       "linear_dq8ca_q4gsw",
                                       "linear_dq8ca_q8csw",
                                       "linear_dq8ca_q8gsw",
                                       "q8ta_linear",
                                       "q8ta_conv2d",
                                       "conv2d_q8ta_q8csw",
                                       "linear_q8ta_q8csw",
                                       "matmul",
                                       "sdpa",
                                       "sdpa_heads",
                                       "conv2d_depthwise_channels_last",
                                       "cached_attention",
                                       "cached_attention_interleaved",
                                       "cached_attention_int8",
                                       "cached_attention_int8_interleaved"};
// Inputs whose values may be anything; those of other names must be constants.
constexpr std::string_view kAnything[] = {"x", "a", "b", "residual", "norm", "q", "k", "v", "mask", "cos", "sin"};
// Of attention over caches: its states, in the order of its further results, and the position of its first new row.
constexpr std::string_view kCaches[] = {"key_cache", "value_cache", "scales"}, kFirst = "first";

template <class List, class T>
bool is_in(const List& list, const T& one) {
  return std::find(std::begin(list), std::end(list), one) != std::end(list);
}

// A few bits of a number that depends on the place alone.
uint32_t noise(uint64_t at) {
  uint64_t z = (at + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 40);
}

// Multiples of 1/128 up to 2, which fp16 has; of 8-bit integers all; of masks, three of four elements are seen.
std::vector<std::byte> made_up(DType dtype, const Shape& shape, uint64_t seed) {
  const auto count = static_cast<size_t>(*checked_elements(shape).value());
  std::vector<std::byte> bytes(count * device_bytes(dtype));
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = noise(i + (seed << 40));
    const float number = (static_cast<float>(bits & 255) - 127.5f) / 64;
    const uint16_t half = half_bits(number);
    const auto byte = static_cast<uint8_t>(dtype == DType::boolean ? (bits & 3) != 0 : bits);
    if (dtype == DType::f32) std::memcpy(&bytes[i * 4], &number, 4);
    if (dtype == DType::f16) std::memcpy(&bytes[i * 2], &half, 2);
    if (device_bytes(dtype) == 1) bytes[i] = std::byte{byte};
  }
  return bytes;
}

// sdpa_heads as sdpa of tensors that have these heads alone: the same kernel over other strides.
void as_sdpa(OpCall& call, std::vector<Shape>& shapes) {
  for (size_t i = 0; i < 3; ++i) shapes[i].at(call.args[6 + i].i != 0 ? 2 : 1) = call.args[i == 0 ? 13 : 14].i;
  call.args.resize(10);
  const auto signatures = op_signatures();
  const auto sdpa = std::ranges::find(signatures, std::string_view("sdpa"), &Signature::name);
  call.op = static_cast<uint32_t>(sdpa - signatures.begin());
}

}  // namespace

double CallTensor::at(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, data + i * 4, 4);
    return static_cast<double>(value);
  }
  if (dtype == DType::f16) {
    uint16_t value;
    std::memcpy(&value, data + i * 2, 2);
    return half_value(value);
  }
  if (dtype == DType::i4) {
    const auto columns = static_cast<size_t>(dim(-1)), row = i / columns, column = i % columns;
    return (data[row * ((columns + 1) / 2) + column / 2] >> (column % 2 * 4) & 15) - 8;
  }
  return dtype == DType::i8 ? static_cast<int8_t>(data[i]) : data[i];
}

std::vector<float> CallTensor::values() const {
  std::vector<float> values(bytes.size() / device_bytes(dtype));
  if (dtype == DType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  } else if (dtype == DType::f16) {
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t half;
      std::memcpy(&half, &bytes[i * 2], 2);
      values[i] = half_value(half);
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(at(static_cast<int64_t>(i)));
  }
  return values;
}

bool OneCall::is_known(const OpCall& call) {
  return is_in(kKnown, op_signatures()[call.op].name);
}

std::optional<OneCall> OneCall::of(const Graph& graph, std::span<const uint32_t> calls, std::optional<int64_t> most,
                                   const ExternalData& external) {
  const Graph::Impl& impl = graph.impl();
  OneCall one;
  one.external_ = &external;
  one.program_ = std::make_shared<Program>();
  Program& program = *one.program_;
  program.version = impl.program->version;
  program.constants = impl.program->constants;
  program.data = impl.program->data;
  Method& method = program.methods.emplace_back();
  method.name = "self test";
  Made made;
  for (const uint32_t call : calls)
    if (!one.add_call(impl, call, most, made)) return std::nullopt;
  one.add_outputs(impl, calls, made);
  const auto values = static_cast<uint32_t>(method.values.size());
  for (uint32_t id = 0; id < values; ++id) one.add_update(id);
  return one;
}

bool OneCall::add_call(const Graph::Impl& impl, uint32_t index, std::optional<int64_t> most, Made& made) {
  Method& method = program_->methods[0];
  OpCall& op = method.ops.emplace_back(impl.method().ops[index]);
  std::vector<Shape> shapes;
  std::vector<size_t> params;  // of each tensor; that after the last one: the output
  std::vector<int64_t*> arguments;
  for (size_t i = 0; i < op.args.size(); ++i) {
    const ArgKind kind = op.args[i].kind;
    if (kind == ArgKind::expr || kind == ArgKind::exprs || kind == ArgKind::values) return false;
    if (kind != ArgKind::value) continue;
    arguments.push_back(&op.args[i].i);
    shapes.push_back(impl.tensors[static_cast<size_t>(op.args[i].i)].shape);
    params.push_back(i);
  }
  if (op_signatures()[op.op].name == "sdpa_heads") as_sdpa(op, shapes);
  const Parameters& known = parameters_.emplace_back(parse(op_signatures()[op.op]));
  const uint32_t result = op.outputs[0];
  shapes.push_back(impl.tensors[result].shape);
  params.push_back(op.args.size());
  if (most) make_small(*this, parameters_[0].params, shapes, params, *most);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto id = static_cast<uint32_t>(*arguments[i]);
    if (const auto before = made.find(id); before != made.end()) {
      *arguments[i] = before->second;
      continue;
    }
    const std::string_view name = known.params[params[i]].name;
    const bool made_up = is_in(kAnything, name) || is_in(kCaches, name) || name == kFirst;
    if (impl.method().values[id].kind != ValueKind::constant && !made_up) return false;
    if (!add_value(impl, id, shapes[i], name)) return false;
    *arguments[i] = static_cast<int64_t>(method.values.size()) - 1;
  }
  made[result] = static_cast<uint32_t>(method.values.size());
  op.outputs = {made[result]};
  add_result(impl, result, shapes.back());
  return true;
}

void OneCall::add_result(const Graph::Impl& graph, uint32_t id, const Shape& shape) {
  Value value = graph.method().values[id];
  value.kind = ValueKind::scratch;
  value.ref = -1;
  value.dims.clear();
  for (const int64_t size : shape) value.dims.push_back({false, size});
  shapes_.push_back(shape);
  data_.emplace_back();
  others_.emplace_back();
  program_->methods[0].values.push_back(std::move(value));
}

// What other calls of the graph read, or its caller, is an output, too: a kernel that computes several calls writes it.
void OneCall::add_outputs(const Graph::Impl& graph, std::span<const uint32_t> calls, const Made& made) {
  Method& method = program_->methods[0];
  method.outputs = {method.ops.back().outputs[0]};
  const std::vector<OpCall>& ops = graph.method().ops;
  for (const auto& [id, value] : made) {
    const auto reads = [id = id](const Arg& arg) {
      return arg.kind == ArgKind::value && arg.i == static_cast<int64_t>(id);
    };
    bool outside = is_in(graph.method().outputs, id);
    for (uint32_t call = 0; call < ops.size(); ++call)
      outside = outside || (!is_in(calls, call) && std::ranges::any_of(ops[call].args, reads));
    if (outside && value != method.outputs[0]) method.outputs.push_back(value);
  }
  for (const uint32_t output : method.outputs) method.values[output].kind = ValueKind::output;
}

// The call's next result is the new value of a state.
void OneCall::add_update(uint32_t state) {
  Method& method = program_->methods[0];
  if (method.values[state].kind != ValueKind::state) return;
  Value value = method.values[state];
  value.kind = ValueKind::scratch, value.ref = -1;
  method.ops[0].outputs.push_back(static_cast<uint32_t>(method.values.size()));
  method.updates.push_back({state, method.ops[0].outputs.back()});
  method.values.push_back(std::move(value));
}

bool OneCall::add_value(const Graph::Impl& graph, uint32_t id, const Shape& shape, std::string_view name) {
  Method& method = program_->methods[0];
  Value value = graph.method().values[id];
  value.dims.clear();
  for (const int64_t size : shape) value.dims.push_back({false, size});
  shapes_.push_back(shape);
  data_.emplace_back();
  others_.emplace_back();
  if (value.kind == ValueKind::constant) {
    if (shape != graph.tensors[id].shape) return false;
  } else if (is_in(kCaches, name)) {
    value.kind = ValueKind::state;
    value.ref = static_cast<int32_t>(program_->states.size());
    program_->states.push_back({std::string(name), -1});
  } else if (name == kFirst) {
    value.kind = ValueKind::input;
    value.ref = -1;
    first_ = static_cast<uint32_t>(method.values.size());
    method.inputs.push_back(*first_);
  } else {
    if (value.dtype == DType::i32 || value.dtype == DType::i64 || checked_elements(shape).value() == 0) return false;
    value.kind = ValueKind::input;
    value.ref = -1;
    method.inputs.push_back(static_cast<uint32_t>(method.values.size()));
  }
  method.values.push_back(std::move(value));
  return true;
}

void OneCall::keep_constants() {
  constexpr size_t kAlignment = 16;
  constants_ = std::make_shared<std::vector<std::byte>>();
  std::map<uint32_t, uint64_t> offsets;
  for (const Value& value : program_->methods[0].values) {
    const auto index = static_cast<uint32_t>(value.ref);
    if (value.kind != ValueKind::constant || offsets.contains(index)) continue;
    const std::span<const std::byte> bytes = constant_bytes(*program_, index, *external_);
    constants_->resize((constants_->size() + kAlignment - 1) / kAlignment * kAlignment);
    offsets[index] = constants_->size();
    constants_->insert(constants_->end(), bytes.begin(), bytes.end());
  }
  for (const auto& [index, offset] : offsets) program_->constants[index].offset = offset;
  program_->data = *constants_;
}

void OneCall::fill() {
  for (const uint32_t id : program_->methods[0].inputs) {
    const DType dtype = program_->methods[0].values[id].dtype;
    if (id == first_) {
      data_[id] = others_[id] = std::vector<std::byte>(file_bytes(dtype, shapes_[id]));
      continue;
    }
    const bool quantized = has("x_scale") && id == static_cast<uint32_t>(arg("x")->i) && is_float(dtype);
    const auto make = [&](uint64_t seed) {
      std::vector<std::byte> bytes = made_up(dtype, shapes_[id], seed);
      if (quantized) quantizable(bytes, dtype);
      return bytes;
    };
    data_[id] = make(id + 1);
    others_[id] = make(id + 0x101);
  }
}

std::vector<int64_t> OneCall::positions() const {
  constexpr int64_t kMost = 40;  // more than a subgroup has lanes; the others are zeros
  if (!first_) return {};
  const int64_t last = tensor("key_cache").dim(2) - tensor("q").dim(1), steps = std::min(last, kMost);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < steps; ++i) found.push_back(last * i / steps);
  found.push_back(last);
  return found;
}

void OneCall::set_position(int64_t position) {
  const Value& value = program_->methods[0].values[*first_];
  const size_t bytes = value.dtype == DType::i64 ? 8 : 4;  // of a little-endian number
  for (auto* data : {&data_[*first_], &others_[*first_]})
    for (size_t at = 0; at < data->size(); at += bytes) std::memcpy(&(*data)[at], &position, bytes);
}

// Of x that is quantized by parameters of the call: numbers up to 32 steps from zero and a quarter of a step beyond
// one, so that it is clear which step is theirs.
void OneCall::quantizable(std::vector<std::byte>& bytes, DType dtype) const {
  const double scale = real("x_scale"), zero = real("x_zero");
  const double low = std::max(real("qmin") - zero, -32.0), high = std::min(real("qmax") - zero, 32.0);
  const std::vector<float> values = CallTensor{dtype, {}, bytes}.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const double part = static_cast<double>(values[i]) / 4 + 0.5;  // 0 to 1
    const auto number = static_cast<float>((std::floor(low + part * (high - low)) + 0.25) * scale);
    const uint16_t half = half_bits(number);
    if (dtype == DType::f32) std::memcpy(&bytes[i * 4], &number, 4);
    if (dtype == DType::f16) std::memcpy(&bytes[i * 2], &half, 2);
  }
}

std::vector<InputView> OneCall::inputs(bool other) const {
  const auto& data = other ? others_ : data_;
  std::vector<InputView> views;
  for (const uint32_t id : program_->methods[0].inputs)
    views.push_back({program_->methods[0].values[id].dtype, shapes_[id], data[id].data(), data[id].size()});
  return views;
}

std::string_view OneCall::op(size_t index) const {
  return op_signatures()[program_->methods[0].ops[index].op].name;
}

DType OneCall::out_dtype(size_t output) const {
  return program_->methods[0].values[program_->methods[0].outputs[output]].dtype;
}

bool OneCall::is_channels_last() const {
  return op(0) == "conv2d_depthwise_channels_last";
}

bool OneCall::has_caches(const OpCall& call) {
  return op_signatures()[call.op].name.starts_with("cached_attention");
}

bool OneCall::knows(std::string_view param) const {
  return std::ranges::any_of(parameters_[0].params, [&](const Param& each) { return each.name == param; });
}

const Arg* OneCall::arg(std::string_view param, size_t of) const {
  const std::vector<Param>& params = parameters_[of].params;
  const auto found = std::ranges::find(params, param, &Param::name);
  if (found == params.end()) return nullptr;
  const Arg& arg = program_->methods[0].ops[of].args[static_cast<size_t>(found - params.begin())];
  return arg.kind == ArgKind::none ? nullptr : &arg;
}

bool OneCall::has(std::string_view param) const {
  return arg(param) != nullptr;
}

int64_t OneCall::integer(std::string_view param, int64_t otherwise) const {
  const Arg* found = arg(param);
  return found == nullptr ? otherwise : found->i;
}

double OneCall::real(std::string_view param, double otherwise, size_t of) const {
  const Arg* found = arg(param, of);
  return found == nullptr ? otherwise : found->kind == ArgKind::real ? found->f : static_cast<double>(found->i);
}

CallTensor OneCall::tensor(std::string_view param, size_t of) const {
  const Arg* found = arg(param, of);
  if (found == nullptr) return {};
  const auto id = static_cast<size_t>(found->i);
  const Value& value = program_->methods[0].values[id];
  const bool constant = value.kind == ValueKind::constant;
  const std::span<const std::byte> bytes =
      constant ? constant_bytes(*program_, static_cast<uint32_t>(value.ref), *external_) : std::span(data_[id]);
  return {value.dtype, shapes_[id], bytes};
}

}  // namespace pumice::engine
