// SPDX-License-Identifier: Apache-2.0
// A valid program with every kind of value and argument, of operators that exist only in these tests.
#pragma once

#include "serialization/signature.h"
#include "test/serialization/write.h"

namespace pumice::engine::test {

inline constexpr Signature kSignatures[] = {
    {"relu", 1, "Tensor x -> Tensor"},
    {"add", 1, "Tensor x, operand y, float alpha -> Tensor"},
    {"linear", 2, "Tensor x, Tensor weight, Tensor? bias -> Tensor"},
    {"cat", 1, "Tensors xs, int dim -> Tensor"},
    {"split", 1, "Tensor x, sizes sizes, int dim -> Tensors"},
    {"topk", 1, "Tensor x, int k -> Tensor values, Tensor indices"},
    {"full", 1, "sizes shape, operand value, dtype dtype, bool flag, size n, ints dims -> Tensor"},
};

inline Arg tensor_arg(int64_t id) {
  return {ArgKind::value, id, 0, {}};
}
inline Arg int_arg(int64_t i) {
  return {ArgKind::integer, i, 0, {}};
}
inline Arg float_arg(double f) {
  return {ArgKind::real, 0, f, {}};
}
inline Arg list_arg(ArgKind kind, std::vector<int64_t> list) {
  return {kind, 0, 0, std::move(list)};
}

// Values: 0 x, 1 y inputs [s, 8]; 2 weight, 3 bias; 4 the state; 5.. scratch; kOutput the output.
enum SampleValue : uint32_t {
  kX,
  kY,
  kWeight,
  kBias,
  kCount,
  kHidden,
  kSum,
  kLeft,
  kRight,
  kTop,
  kTopIndex,
  kFull,
  kNext,
  kPacked,
  kOutput
};
enum SampleOp : uint32_t { kLinear, kAdd, kSplit, kTopk, kMakeFull, kAddState, kCat };

inline Model sample() {
  Model m;
  m.program.producer = "test";
  m.op_names = {{"linear", 2}, {"add", 1}, {"split", 1}, {"topk", 1}, {"full", 1}, {"cat", 1}};
  add_constant(m, "weight", Bytes(256, std::byte{1}));
  add_constant(m, "bias", Bytes(32, std::byte{2}));
  add_constant(m, "start", Bytes(8, std::byte{3}));
  add_constant(m, "packed", Bytes(9, std::byte{0x8f}));
  m.program.states = {{"count", 2}};
  m.program.methods.emplace_back();
  Method& f = m.method();
  f.name = "forward";
  f.in_spec = "tree\n[*, *]";
  f.symbols = {{"s", 1, 128, 16}};
  f.exprs = {{ExprOp::symbol, 0, 0},
             {ExprOp::constant, 2, 0},
             {ExprOp::mul, 0, 1},
             {ExprOp::floordiv, 0, 1},
             {ExprOp::sub, 0, 3}};
  const auto fixed = [](int64_t n) { return SymInt{false, n}; };
  const auto expr = [](int64_t i) { return SymInt{true, i}; };
  const std::vector<SymInt> rows{expr(0), fixed(8)}, half{expr(3), fixed(8)}, rest{expr(4), fixed(8)};
  const auto value = [&](ValueKind kind, DType dtype, std::vector<SymInt> dims, int32_t ref, const char* name) {
    f.values.push_back({kind, dtype, std::move(dims), ref, name});
  };
  value(ValueKind::input, DType::f32, rows, -1, "x");
  value(ValueKind::input, DType::f32, rows, -1, "y");
  value(ValueKind::constant, DType::f32, {fixed(8), fixed(8)}, 0, "weight");
  value(ValueKind::constant, DType::f32, {fixed(8)}, 1, "bias");
  value(ValueKind::state, DType::i64, {fixed(1)}, 0, "count");
  value(ValueKind::scratch, DType::f32, rows, -1, "");
  value(ValueKind::scratch, DType::f32, rows, -1, "");
  value(ValueKind::scratch, DType::f32, half, -1, "");
  value(ValueKind::scratch, DType::f32, rest, -1, "");
  value(ValueKind::scratch, DType::f32, {expr(0), fixed(2)}, -1, "");
  value(ValueKind::scratch, DType::i64, {expr(0), fixed(2)}, -1, "");
  value(ValueKind::scratch, DType::f16, {expr(2), fixed(0)}, -1, "");
  value(ValueKind::scratch, DType::i64, {fixed(1)}, -1, "");
  value(ValueKind::constant, DType::i4, {fixed(3), fixed(5)}, 3, "packed");
  value(ValueKind::output, DType::f32, rows, -1, "out");
  f.ops = {
      {0, {tensor_arg(kX), tensor_arg(kWeight), tensor_arg(kBias)}, {kHidden}, "model.py:12"},
      {1, {tensor_arg(kHidden), tensor_arg(kY), float_arg(1)}, {kSum}, ""},
      {2, {tensor_arg(kSum), list_arg(ArgKind::exprs, {3, 4}), int_arg(0)}, {kLeft, kRight}, ""},
      {3, {tensor_arg(kSum), int_arg(2)}, {kTop, kTopIndex}, ""},
      {4,
       {list_arg(ArgKind::exprs, {2, 1}),
        float_arg(-1.5),
        {ArgKind::dtype, 1, 0, {}},
        {ArgKind::boolean, 1, 0, {}},
        {ArgKind::expr, 2, 0, {}},
        list_arg(ArgKind::ints, {-1, 0})},
       {kFull},
       ""},
      {1, {tensor_arg(kCount), int_arg(1), int_arg(1)}, {kNext}, ""},
      {5, {list_arg(ArgKind::values, {kLeft, kRight}), int_arg(0)}, {kOutput}, ""},
  };
  f.inputs = {kX, kY};
  f.outputs = {kOutput};
  f.updates = {{kCount, kNext}};
  return m;
}

inline Program read_file(const Bytes& bytes, bool verify_hashes = true) {
  return read(bytes, kSignatures, {}, verify_hashes);
}

}  // namespace pumice::engine::test
