// SPDX-License-Identifier: Apache-2.0
// A verified program: what is in a .pumice file after every index, count, size and name in it has been checked.
// `read` is the only way to make one. It runs gates 1 to 3 (header, FlatBuffers verifier, semantics); graph/build.h is
// gate 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace pumice::engine {

enum class DType : uint8_t { f32 = 0, f16 = 1, i32 = 2, i64 = 3, boolean = 4, u8 = 5, i8 = 6, i4 = 7 };
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
// A value on the device: a buffer of elements; a 3D texture of quads of the last dimension (activations); a 2D texture
// of what a kernel makes of it at load (packed weights). docs/format.md.
enum class StorageClass : uint8_t { buffer = 0, texture3d = 1, texture2d = 2 };
enum class ArgKind : uint8_t { none, value, integer, real, boolean, dtype, expr, ints, exprs, values };

const char* name(DType dtype);  // "f32", "bool", ...
const char* name(ValueKind kind);
const char* name(StorageClass storage);
// Bytes of `dims` elements in the file (i4: rows of the last dimension padded to a byte; i64: 8). Checked; throws
// LimitExceeded.
uint64_t file_bytes(DType dtype, std::span<const int64_t> dims);

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
  StorageClass storage = StorageClass::buffer;
};

struct Arg {
  ArgKind kind = ArgKind::none;
  int64_t i = 0;
  double f = 0;
  std::vector<int64_t> list;
};

struct OpCall {
  uint32_t op;  // index in the table of signatures given to `read`
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
  // The constants section of the file that was read; valid as long as that memory is. Nothing uses it after prepack.
  std::span<const std::byte> data;
};

// What the semantic gate must know of an operator. `params` is a comma list of "type name", e.g.
// "Tensor x, Tensor? bias, int dim, float eps -> Tensor". Types: Tensor, Tensors, operand (a tensor or a number), int,
// float, bool, dtype, size (int or expr), ints, sizes (ints or exprs); a trailing '?' admits none. Right of the arrow:
// the outputs.
struct Signature {
  std::string_view name;
  uint16_t version;
  std::string_view params;
};

// Every limit on what a file may ask for; errors quote them by name.
struct Limits {
  uint64_t max_program_bytes = uint64_t{64} << 20;
  uint32_t max_depth = 16;
  uint32_t max_tables = 1u << 20;
  uint32_t max_values = 1u << 18, max_ops = 1u << 17, max_constants = 1u << 17, max_methods = 64, max_symbols = 256;
  uint32_t max_exprs = 1u << 18, max_args = 64, max_list = 4096, max_name_bytes = 4096, max_spec_bytes = 1u << 20;
  uint32_t max_rank = 8;
  uint64_t max_elements = uint64_t{1} << 40;  // of one value; a device's own limits are checked later
  uint64_t max_dim = uint64_t{1} << 31;       // exclusive
};

// Hands over the bytes of an external constant, or nothing when it has none under that key.
using ExternalData = std::function<std::optional<std::span<const std::byte>>(std::string_view key)>;

// Gates 1 to 3. `verify_hashes`: also the hash of every constant (at memory speed, on several threads).
// The file's bytes may be unaligned; they must outlive the program's `data`.
Program read(std::span<const std::byte> file, std::span<const Signature> signatures, const Limits& limits = {},
             bool verify_hashes = true);

// The bytes of constant `index`, from the file or from `external`; size and hash checked for external ones.
std::span<const std::byte> constant_bytes(const Program& program, uint32_t index, const ExternalData& external);

// The value of every Method::exprs node at symbol values `symbols` (one for each Method::symbols), in order.
// Throws BadShape on overflow or division by zero.
std::vector<int64_t> evaluate(const Method& method, std::span<const int64_t> symbols);

}  // namespace pumice::engine
