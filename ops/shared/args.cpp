// SPDX-License-Identifier: Apache-2.0
// Kinds and counts were checked against the signature when the file was read. A wrong kind here is a bug of the
// operator (it reads its own signature wrongly), so it is reported as Internal.
#include "ops/shared/args.h"

#include <cinttypes>

#include "graph/graph_impl.h"

namespace pumice::engine {
namespace {

const Arg& argument(const OpCall& call, uint32_t index) {
  if (index >= call.args.size())
    fail(Code::Internal, Stage::plan, "", "the operator reads argument %u of %zu", index, call.args.size());
  return call.args[index];
}

[[noreturn]] void wrong_kind(uint32_t index, const char* wanted) {
  fail(Code::Internal, Stage::plan, "", "the operator reads argument %u as %s; its signature differs", index, wanted);
}

}  // namespace

Args::Args(Graph& graph, const Method&, const OpCall& call) : graph_(graph), call_(call) {}

bool Args::has(uint32_t index) const {
  return argument(call_, index).kind != ArgKind::none;
}

Tensor Args::tensor(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind == ArgKind::none) return {};
  if (arg.kind != ArgKind::value) wrong_kind(index, "a tensor");
  return Tensor(&graph_, static_cast<uint32_t>(arg.i));
}

std::vector<Tensor> Args::tensors(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::values && arg.kind != ArgKind::none) wrong_kind(index, "tensors");
  std::vector<Tensor> result;
  for (const int64_t id : arg.list) result.emplace_back(&graph_, static_cast<uint32_t>(id));
  return result;
}

Operand Args::operand(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  switch (arg.kind) {
    case ArgKind::value:
      return {.tensor = tensor(index)};
    case ArgKind::integer:
    case ArgKind::boolean:
      return {.tensor = {}, .number = static_cast<double>(arg.i), .is_integer = true};
    case ArgKind::real:
      return {.tensor = {}, .number = arg.f};
    default:
      wrong_kind(index, "a tensor or number");
  }
}

int64_t Args::integer(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::integer && arg.kind != ArgKind::boolean) wrong_kind(index, "an integer");
  return arg.i;
}

double Args::real(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind == ArgKind::real) return arg.f;
  return static_cast<double>(integer(index));
}

bool Args::boolean(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::boolean) wrong_kind(index, "a bool");
  return arg.i != 0;
}

DType Args::dtype(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::dtype) wrong_kind(index, "a dtype");
  return static_cast<DType>(arg.i);
}

SymInt Args::size(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::expr && arg.kind != ArgKind::integer) wrong_kind(index, "a size");
  return {.is_expr = arg.kind == ArgKind::expr, .value = arg.i};
}

std::vector<int64_t> Args::ints(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::ints && arg.kind != ArgKind::none) wrong_kind(index, "integers");
  return arg.list;
}

std::vector<SymInt> Args::sizes(uint32_t index) const {
  const Arg& arg = argument(call_, index);
  if (arg.kind != ArgKind::ints && arg.kind != ArgKind::exprs && arg.kind != ArgKind::none) wrong_kind(index, "sizes");
  std::vector<SymInt> result;
  for (const int64_t item : arg.list) result.push_back({.is_expr = arg.kind == ArgKind::exprs, .value = item});
  return result;
}

Tensor Args::out(uint32_t index) const {
  if (index >= call_.outputs.size())
    fail(Code::Internal, Stage::plan, "", "the operator reads output %u of %zu", index, call_.outputs.size());
  return Tensor(&graph_, call_.outputs[index]);
}

uint32_t axis(int64_t index, uint32_t rank, const char* op) {
  const int64_t size = rank;
  check(index >= -size && index < size, "%s: axis %" PRId64 " is outside of rank %u", op, index, rank);
  return static_cast<uint32_t>(index < 0 ? index + size : index);
}

std::vector<Tensor> reporting(Graph& graph, Tensor out, bool may_report) {
  if (!may_report) return {out};
  return {out, graph.status()};
}

}  // namespace pumice::engine
