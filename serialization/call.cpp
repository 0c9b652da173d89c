// SPDX-License-Identifier: Apache-2.0
// Gate 3 for operator calls: each against its signature, in order, so that what is read was written before.
#include <cinttypes>

#include "serialization/method.h"

namespace pumice::engine {
namespace {

bool fits(ParamType type, const Arg& arg) {
  switch (type) {
    case ParamType::tensor:
      return arg.kind == ArgKind::value;
    case ParamType::tensors:
      return arg.kind == ArgKind::values;
    case ParamType::operand:
      return arg.kind == ArgKind::value || arg.kind == ArgKind::integer || arg.kind == ArgKind::real;
    case ParamType::integer:
      return arg.kind == ArgKind::integer;
    case ParamType::real:
      return arg.kind == ArgKind::real;
    case ParamType::boolean:
      return arg.kind == ArgKind::boolean;
    case ParamType::dtype:
      return arg.kind == ArgKind::dtype;
    case ParamType::size:
      return arg.kind == ArgKind::integer || arg.kind == ArgKind::expr;
    case ParamType::ints:
      return arg.kind == ArgKind::ints;
    case ParamType::sizes:
      return arg.kind == ArgKind::ints || arg.kind == ArgKind::exprs;
  }
  return false;
}

// A writer that knows no signature writes 1 for 1.0 and an empty list of anything as `ints`: the same thing, said
// otherwise.
void normalize(ParamType type, Arg& arg) {
  constexpr int64_t kExact = int64_t{1} << 53;  // up to here every integer is a double
  if (type == ParamType::real && arg.kind == ArgKind::integer && arg.i >= -kExact && arg.i <= kExact) {
    arg.kind = ArgKind::real;
    arg.f = static_cast<double>(arg.i);
  }
  if (type == ParamType::tensors && arg.kind == ArgKind::ints && arg.list.empty()) arg.kind = ArgKind::values;
}

}  // namespace

void MethodChecker::reads(int64_t value, const Where& at) {
  index(value, method_.values.size(), "values", at);
  if (!defined_[static_cast<size_t>(value)])
    bad(Code::BadGraph, at, format("reads value %" PRId64 " before anything wrote it", value));
}

void MethodChecker::arg(Arg& arg, const Operator& op, const Param& param, const Where& at) {
  if (arg.kind == ArgKind::none && param.optional) return;
  normalize(param.type, arg);
  if (!fits(param.type, arg)) {
    bad(Code::BadGraph, at,
        format("%s: '%s' is a %s, got %s", std::string(op.name).c_str(), std::string(param.name).c_str(),
               name(param.type), name(arg.kind)));
  }
  if (arg.kind == ArgKind::value) reads(arg.i, at);
  if (arg.kind == ArgKind::expr) index(arg.i, method_.exprs.size(), "expressions", at);
  for (size_t i = 0; i < arg.list.size(); i++) {
    const Where item{&at, "list", static_cast<int64_t>(i)};
    if (arg.kind == ArgKind::values) reads(arg.list[i], item);
    if (arg.kind == ArgKind::exprs) index(arg.list[i], method_.exprs.size(), "expressions", item);
  }
}

void MethodChecker::writes(const OpCall& call, const Operator& op, const Where& at) {
  const Parameters& p = op.parameters;
  if (p.any_outputs ? call.outputs.empty() : call.outputs.size() != p.outputs) {
    bad(Code::BadGraph, {&at, "outputs"},
        format("%s has %s%u outputs, got %zu", std::string(op.name).c_str(), p.any_outputs ? "at least " : "",
               p.outputs, call.outputs.size()));
  }
  for (size_t i = 0; i < call.outputs.size(); i++) {
    const Where where{&at, "outputs", static_cast<int64_t>(i)};
    const uint32_t id = call.outputs[i];
    index(id, method_.values.size(), "values", where);
    const ValueKind kind = method_.values[id].kind;
    if (kind != ValueKind::output && kind != ValueKind::scratch) {
      bad(Code::BadGraph, where, format("writes value %u, which is of kind %s", id, name(kind)));
    }
    if (defined_[id]) bad(Code::BadGraph, where, format("writes value %u a second time", id));
    defined_[id] = true;
  }
}

void MethodChecker::call(OpCall& call, const Where& at) {
  index(call.op, operators_.size(), "op_names", {&at, "op"});
  const Operator& op = operators_[call.op];
  const std::vector<Param>& params = op.parameters.params;
  if (call.args.size() != params.size()) {
    bad(Code::BadGraph, {&at, "args"},
        format("%s has %zu parameters, got %zu", std::string(op.name).c_str(), params.size(), call.args.size()));
  }
  for (size_t i = 0; i < params.size(); i++) arg(call.args[i], op, params[i], {&at, "args", static_cast<int64_t>(i)});
  writes(call, op, at);
  call.op = op.index;
}

}  // namespace pumice::engine
