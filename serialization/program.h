// SPDX-License-Identifier: Apache-2.0
// A verified program: what is in a .pumice file after every index, count, size and name in it has been checked.
// serialization/read.h makes one, by gates 1 to 3 (header, FlatBuffers verifier, semantics); graph/plan.h is gate 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"

namespace pumice::engine {

enum class ValueKind : uint8_t { input = 0, output = 1, constant = 2, state = 3, scratch = 4 };
enum class ExprOp : uint8_t {
  constant = 0,
  symbol = 1,
  add = 2,
  sub = 3,
  mul = 4,
  floordiv = 5,
  mod = 6,
  min = 7,
  max = 8
};
// What a value lies in on the device. buffer: its elements in order. texture3d: an image whose texels are vec4 groups
// of the last dimension (activations). texture2d: an image with the form that a kernel makes at load (packed weights).
// docs/format.md.
enum class StorageType : uint8_t { buffer = 0, texture3d = 1, texture2d = 2 };
// ExportOptions.precision. fp32: no kernel may cut fp32 operands into fp16 (Feature::split).
enum class Precision : uint8_t { split = 0, fp32 = 1, fp16 = 2 };
enum class ArgKind : uint8_t { none, value, integer, real, boolean, dtype, expr, ints, exprs, values };

const char* name(ValueKind kind);
const char* name(StorageType storage);
const char* name(Precision precision);
const char* name(ArgKind kind);
using Shape = std::vector<int64_t>;  // sizes, PyTorch order, every one >= 0

struct Expr {
  ExprOp op;
  int64_t a, b;
};
struct Symbol {
  std::string name;
  int64_t min, max, hint;
};

// A size that is a number or an expression over symbols; evaluated with checked arithmetic.
struct SymInt {
  bool is_expr = false;
  int64_t value = 0;  // the number, or the index in Method::exprs
};

struct Value {
  ValueKind kind;
  DType dtype;
  std::vector<SymInt> dims;
  int32_t ref;  // constant or state index, else -1
  std::string name;
  StorageType storage = StorageType::buffer;
};

bool same_dims(const Value& a, const Value& b);  // equal numbers, or the same expressions

struct Arg {
  ArgKind kind = ArgKind::none;
  int64_t i = 0;
  double f = 0;
  std::vector<int64_t> list;
};

struct OpCall {
  uint32_t op;  // index in the signatures given to `read`
  std::vector<Arg> args;
  std::vector<uint32_t> outputs;
  std::string source;
};

struct Update {
  uint32_t state, value;
};

struct Method {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Expr> exprs;
  std::vector<Value> values;
  std::vector<OpCall> ops;
  std::vector<uint32_t> inputs, outputs;
  std::vector<Update> updates;
  std::string in_spec, out_spec;
};

struct Constant {
  std::string key;
  uint64_t offset, size, hash;  // offset: from the start of the constants section
  bool external;
};

struct State {
  std::string key;
  int32_t constant;  // initial value, or -1 for zeros
};

struct Program {
  std::string producer;
  uint32_t version = 0;
  uint64_t file_size = 0, program_bytes = 0;
  std::vector<std::string> required_features;
  std::vector<Constant> constants;
  std::vector<State> states;
  std::vector<Method> methods;
  Precision precision = Precision::split;
  // The constants section of the file that was read; valid as long as that memory is. Nothing uses it after prepack.
  std::span<const std::byte> data;
};

}  // namespace pumice::engine
