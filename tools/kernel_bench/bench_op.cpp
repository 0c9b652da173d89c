// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/bench_op.h"

#include <algorithm>

#include "serialization/signature.h"
#include "tools/kernel_bench/call_data.h"
#include "tools/kernel_bench/conv.h"
#include "tools/kernel_bench/linear.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::kernel_bench {
namespace {

using Role = Argument::Role;

const Argument* find(const std::vector<Argument>& all, std::string_view name) {
  for (const Argument& each : all) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

// Makes a program of one operator call.
class Writer {
 public:
  Writer(const CaseData& case_data, std::string_view op, uint16_t version) : data_(case_data) {
    draft_.program.producer = "pumice kernel bench";
    draft_.op_names = {{std::string(op), version}};
    Method& method = draft_.program.methods.emplace_back();
    method.name = "forward";
    if (data_.has_rows()) {
      const int64_t m = data_.shape().m;
      method.symbols = {{"m", 1, m, m}};
      method.exprs = {{ExprOp::symbol, 0, 0}};
    }
  }

  void argument(const Param& param, const Argument* argument) {
    if (argument == nullptr) {
      if (!param.optional)
        fail(Code::InvalidArgument, Stage::api, "case", "%s: '%s' is missing", data_.shape().op.c_str(),
             std::string(param.name).c_str());
      call_.args.emplace_back();
      return;
    }
    switch (argument->role) {
      case Role::integer:
        return void(call_.args.push_back({ArgKind::integer, argument->number, 0, {}}));
      case Role::boolean:
        return void(call_.args.push_back({ArgKind::boolean, argument->number, 0, {}}));
      case Role::dtype:
        return void(call_.args.push_back({ArgKind::dtype, argument->number, 0, {}}));
      case Role::integers:
        return void(call_.args.push_back({ArgKind::ints, 0, 0, argument->numbers}));
      case Role::real:
        return void(call_.args.push_back({ArgKind::real, 0, argument->real, {}}));
      case Role::inputs: {
        std::vector<int64_t> ids;
        for (const Data& each : argument->list)
          ids.push_back(input(each, argument->name + std::to_string(ids.size()), StorageType::buffer));
        return void(call_.args.push_back({ArgKind::values, 0, 0, ids}));
      }
      case Role::input: {
        const bool is_first = draft_.program.methods[0].inputs.empty();
        const bool texture = (data_.has_rows() ? argument->name == "x" : is_first) && data_.shape().in_textures();
        const uint32_t id =
            input(argument->data, argument->name, texture ? StorageType::texture3d : StorageType::buffer);
        return void(call_.args.push_back({ArgKind::value, id, 0, {}}));
      }
      case Role::constant:
        return void(call_.args.push_back({ArgKind::value, constant(*argument), 0, {}}));
    }
  }

  Bytes file() {
    const bool texture = data_.has_rows() && data_.shape().in_textures();
    Method& method = draft_.program.methods[0];
    for (const Output& output : data_.outputs()) {
      const std::string name = call_.outputs.empty() ? "out" : "out" + std::to_string(call_.outputs.size());
      call_.outputs.push_back(value({ValueKind::output, output.dtype, dims(output.shape, true), -1, name,
                                     texture ? StorageType::texture3d : StorageType::buffer}));
    }
    method.outputs = call_.outputs;
    method.ops.push_back(std::move(call_));
    return write_file(draft_);
  }

 private:
  uint32_t value(Value value) {
    std::vector<Value>& values = draft_.program.methods[0].values;
    values.push_back(std::move(value));
    return static_cast<uint32_t>(values.size() - 1);
  }
  uint32_t input(const Data& data, const std::string& name, StorageType storage) {
    const uint32_t id = value({ValueKind::input, data.dtype, dims(data.shape, true), -1, name, storage});
    draft_.program.methods[0].inputs.push_back(id);
    return id;
  }
  uint32_t constant(const Argument& argument) {
    const bool texture = argument.name == "weight" && data_.shape().weight_in_texture();
    const auto ref = static_cast<int32_t>(add_constant(draft_, argument.name, argument.data.bytes));
    return value({ValueKind::constant, argument.data.dtype, dims(argument.data.shape, false), ref, argument.name,
                  texture ? StorageType::texture2d : StorageType::buffer});
  }
  std::vector<SymInt> dims(const Shape& shape, bool rows) const {
    std::vector<SymInt> result;
    for (const int64_t size : shape) result.push_back({false, size});
    if (rows && data_.has_rows()) result[0] = {true, 0};
    return result;
  }

  const CaseData& data_;
  Draft draft_;
  OpCall call_{.op = 0, .args = {}, .outputs = {}, .source = "case"};
};

}  // namespace

LinearShape BenchOp::linear(const Case& c) const {
  LinearShape shape = linear_shape(*row->cases.linear, c);
  if (shape.integers) shape.op = row->signature.name;
  return shape;
}

ConvFacts BenchOp::conv(const Case& c) const {
  return conv_facts(*row->cases.conv, c);
}

std::unique_ptr<CaseData> BenchOp::make(const Case& c, uint64_t seed) const {
  if (is_linear()) return make_linear(*row->cases.linear, c, seed);
  if (is_conv()) return make_conv(*row->cases.conv, c, seed);
  return std::make_unique<CallData>(*row, c, seed);
}

std::string BenchOp::refuse(const Case& c) const {
  if (is_linear()) return refuse_linear(*row->cases.linear, c);
  if (is_conv()) return refuse_conv(*row->cases.conv, c);
  if (!c.weight_in_texture()) return "";
  const bool takes = !c.in_textures() &&
                     std::ranges::any_of(row->variants, [](const Axis& axis) { return axis.name == "WEIGHT_STORAGE"; });
  return takes ? "" : "storage is buffer or texture3d";
}

std::span<const BenchOp> bench_ops() {
  static const std::vector<BenchOp> kAll = [] {
    std::vector<BenchOp> all;
    for (const Op& op : op_table()) all.push_back({op.signature.name, &op});
    return all;
  }();
  return kAll;
}

const BenchOp& bench_op(std::string_view op) {
  must_be_operator(op);
  for (const BenchOp& each : bench_ops()) {
    if (each.op == op) return each;
  }
  fail(Code::Internal, Stage::api, "case", "the operator table has no %s", printable(op).c_str());
}

std::vector<Data> inputs_of(const CaseData& case_data) {
  const BenchOp& op = bench_op(case_data.shape().op);
  std::vector<Argument> all = case_data.arguments();
  std::vector<Data> inputs;
  for (const Param& param : parse(op.row->signature).params) {
    const Argument* argument = find(all, param.name);
    if (argument == nullptr) continue;
    if (argument->role == Role::input) inputs.push_back(argument->data);
    if (argument->role == Role::inputs) inputs.insert(inputs.end(), argument->list.begin(), argument->list.end());
  }
  return inputs;
}

Bytes make_file(const CaseData& case_data, std::string_view op) {
  const Signature& signature = bench_op(case_data.shape().op).row->signature;
  const std::vector<Argument> all = case_data.arguments();
  Writer writer(case_data, op, signature.version);
  for (const Param& param : parse(signature).params) writer.argument(param, find(all, param.name));
  return writer.file();
}

}  // namespace pumice::engine::kernel_bench
