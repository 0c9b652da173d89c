// SPDX-License-Identifier: Apache-2.0
// The FlatBuffers verifier decides, but gives no reason. For the path in the error, `locate` walks a refused file once
// more.
#include "serialization/verify.h"

#include <cstring>

#include "serialization/schema_generated.h"
#include "serialization/where.h"

namespace pumice::engine {
namespace {

enum class Kind : uint8_t { scalar, string, scalars, strings, tables };

struct Table;

struct Field {
  const char* name;
  uint16_t slot;
  Kind kind;
  uint8_t size;  // of a scalar, or of an element of a vector of scalars
  bool required;
  const Table* table = nullptr;
};

struct Table {
  std::span<const Field> fields;
};

constexpr bool kRequired = true, kOptional = false;

// The slots come from the generated header; the rest is what its Verify functions ask for.
constexpr Field kSymbol[] = {{"name", fb::Symbol::VT_NAME, Kind::string, 0, kRequired},
                             {"min", fb::Symbol::VT_MIN, Kind::scalar, 8, kOptional},
                             {"max", fb::Symbol::VT_MAX, Kind::scalar, 8, kOptional},
                             {"hint", fb::Symbol::VT_HINT, Kind::scalar, 8, kOptional}};
constexpr Field kValue[] = {{"kind", fb::Value::VT_KIND, Kind::scalar, 1, kOptional},
                            {"dtype", fb::Value::VT_DTYPE, Kind::scalar, 1, kOptional},
                            {"dims", fb::Value::VT_DIMS, Kind::scalars, 8, kRequired},
                            {"ref", fb::Value::VT_REF, Kind::scalar, 4, kOptional},
                            {"name", fb::Value::VT_NAME, Kind::string, 0, kOptional},
                            {"storage", fb::Value::VT_STORAGE, Kind::scalar, 1, kOptional}};
constexpr Field kArg[] = {{"kind", fb::Arg::VT_KIND, Kind::scalar, 1, kOptional},
                          {"i", fb::Arg::VT_I, Kind::scalar, 8, kOptional},
                          {"f", fb::Arg::VT_F, Kind::scalar, 8, kOptional},
                          {"list", fb::Arg::VT_LIST, Kind::scalars, 8, kOptional}};
constexpr Field kOpName[] = {{"name", fb::OpName::VT_NAME, Kind::string, 0, kRequired},
                             {"version", fb::OpName::VT_VERSION, Kind::scalar, 2, kOptional}};
constexpr Field kUpdate[] = {{"state", fb::Update::VT_STATE, Kind::scalar, 4, kOptional},
                             {"value", fb::Update::VT_VALUE, Kind::scalar, 4, kOptional}};
constexpr Field kConstant[] = {{"key", fb::Constant::VT_KEY, Kind::string, 0, kRequired},
                               {"offset", fb::Constant::VT_OFFSET, Kind::scalar, 8, kOptional},
                               {"size", fb::Constant::VT_SIZE, Kind::scalar, 8, kOptional},
                               {"hash", fb::Constant::VT_HASH, Kind::scalar, 8, kOptional},
                               {"external", fb::Constant::VT_EXTERNAL, Kind::scalar, 1, kOptional}};
constexpr Field kState[] = {{"key", fb::State::VT_KEY, Kind::string, 0, kRequired},
                            {"constant", fb::State::VT_CONSTANT, Kind::scalar, 4, kOptional}};
constexpr Table kSymbolTable{kSymbol}, kValueTable{kValue}, kArgTable{kArg}, kOpNameTable{kOpName},
    kUpdateTable{kUpdate}, kConstantTable{kConstant}, kStateTable{kState};
constexpr Field kOpCall[] = {{"op", fb::OpCall::VT_OP, Kind::scalar, 4, kOptional},
                             {"args", fb::OpCall::VT_ARGS, Kind::tables, 0, kRequired, &kArgTable},
                             {"outputs", fb::OpCall::VT_OUTPUTS, Kind::scalars, 4, kRequired},
                             {"source", fb::OpCall::VT_SOURCE, Kind::string, 0, kOptional}};
constexpr Table kOpCallTable{kOpCall};
constexpr Field kMethod[] = {{"name", fb::Method::VT_NAME, Kind::string, 0, kRequired},
                             {"symbols", fb::Method::VT_SYMBOLS, Kind::tables, 0, kOptional, &kSymbolTable},
                             {"exprs", fb::Method::VT_EXPRS, Kind::scalars, sizeof(fb::Expr), kOptional},
                             {"values", fb::Method::VT_VALUES, Kind::tables, 0, kRequired, &kValueTable},
                             {"ops", fb::Method::VT_OPS, Kind::tables, 0, kRequired, &kOpCallTable},
                             {"inputs", fb::Method::VT_INPUTS, Kind::scalars, 4, kRequired},
                             {"outputs", fb::Method::VT_OUTPUTS, Kind::scalars, 4, kRequired},
                             {"updates", fb::Method::VT_UPDATES, Kind::tables, 0, kOptional, &kUpdateTable},
                             {"in_spec", fb::Method::VT_IN_SPEC, Kind::string, 0, kOptional},
                             {"out_spec", fb::Method::VT_OUT_SPEC, Kind::string, 0, kOptional}};
constexpr Table kMethodTable{kMethod};
constexpr Field kProgram[] = {{"producer", fb::Program::VT_PRODUCER, Kind::string, 0, kOptional},
                              {"required_features", fb::Program::VT_REQUIRED_FEATURES, Kind::strings, 0, kOptional},
                              {"op_names", fb::Program::VT_OP_NAMES, Kind::tables, 0, kRequired, &kOpNameTable},
                              {"constants", fb::Program::VT_CONSTANTS, Kind::tables, 0, kRequired, &kConstantTable},
                              {"states", fb::Program::VT_STATES, Kind::tables, 0, kOptional, &kStateTable},
                              {"methods", fb::Program::VT_METHODS, Kind::tables, 0, kRequired, &kMethodTable},
                              {"precision", fb::Program::VT_PRECISION, Kind::scalar, 1, kOptional}};
constexpr Table kProgramTable{kProgram};

class Locator {
 public:
  Locator(std::span<const std::byte> bytes, uint32_t max_tables) : bytes_(bytes), max_tables_(max_tables) {}

  // Recursion follows kProgramTable, so that it is four levels deep for any file.
  void table(const Table& type, uint64_t at, const Where* where) {
    if (++tables_ > max_tables_) {
      fail(Code::LimitExceeded, Stage::verify, path(where), "more than %u tables, the limit for a program of %zu bytes",
           max_tables_, bytes_.size());
    }
    const int64_t vtable = static_cast<int64_t>(at) - load<int32_t>(at, where, "table");
    if (vtable < 0) bad(where, "its vtable lies outside of the program");
    const auto start = static_cast<uint64_t>(vtable);
    const uint64_t size = load<uint16_t>(start, where, "vtable");
    if (size < 4 || size % 2 != 0 || size > bytes_.size() - start) bad(where, "its vtable is damaged");
    for (const Field& field : type.fields) {
      const Where here{where, field.name};
      const uint64_t offset = field.slot + 2u <= size ? load<uint16_t>(start + field.slot, &here, "vtable") : 0;
      if (offset != 0)
        check_field(field, at + offset, here);
      else if (field.required)
        bad(&here, "is required and missing");
    }
  }

  uint64_t follow(uint64_t at, const Where* where) {
    const uint64_t offset = load<uint32_t>(at, where, "offset");
    if (offset == 0 || offset >= bytes_.size() - at) bad(where, "its offset leads outside of the program");
    return at + offset;
  }

 private:
  static std::string path(const Where* where) { return where == nullptr ? "program" : where->text(); }
  [[noreturn]] static void bad(const Where* where, const char* text) {
    fail(Code::BadSchema, Stage::verify, path(where), "%s", text);
  }

  template <class T>
  T load(uint64_t at, const Where* where, const char* what) const {
    if (at % sizeof(T) != 0) fail(Code::BadSchema, Stage::verify, path(where), "%s is not aligned", what);
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) {
      fail(Code::BadSchema, Stage::verify, path(where), "%s lies outside of the program", what);
    }
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

  uint64_t vector(uint64_t at, uint64_t item_size, const Where& where) const {
    const uint64_t count = load<uint32_t>(at, &where, "length");
    if (count > (bytes_.size() - at - 4) / item_size) bad(&where, "its items reach beyond the program");
    return count;
  }

  void string(uint64_t at, const Where& where) const {
    const uint64_t end = at + 4 + vector(at, 1, where);
    if (end >= bytes_.size() || bytes_[end] != std::byte{0}) bad(&where, "the text has no zero byte at its end");
  }

  void check_field(const Field& field, uint64_t at, const Where& here) {
    if (field.kind == Kind::scalar) {
      if (at % field.size != 0 || at > bytes_.size() || bytes_.size() - at < field.size)
        bad(&here, "lies outside of the program");
      return;
    }
    const uint64_t target = follow(at, &here);
    if (field.kind == Kind::string) return string(target, here);
    const uint64_t count = vector(target, field.kind == Kind::scalars ? field.size : 4, here);
    if (field.kind == Kind::scalars) return;
    for (uint64_t i = 0; i < count; i++) {
      const Where item{here.up, here.field, static_cast<int64_t>(i)};
      const uint64_t place = follow(target + 4 + 4 * i, &item);
      if (field.kind == Kind::strings)
        string(place, item);
      else
        table(*field.table, place, &item);
    }
  }

  std::span<const std::byte> bytes_;
  uint32_t max_tables_, tables_ = 0;
};

// Why the verifier refused.
[[noreturn]] void locate(std::span<const std::byte> bytes, uint32_t max_tables) {
  Locator locator(bytes, max_tables);
  locator.table(kProgramTable, locator.follow(0, nullptr), nullptr);
  fail(Code::BadSchema, Stage::verify, "program", "is not a FlatBuffer of this schema (file identifier or layout)");
}

}  // namespace

void verify(std::span<const std::byte> bytes, const Limits& limits) {
  // A table takes at least 8 bytes of its own; more tables than that are shared ones, which cost time and no bytes.
  const auto max_tables = static_cast<uint32_t>(std::min<uint64_t>(limits.max_tables, bytes.size() / 8));
  flatbuffers::Verifier::Options options;
  options.max_depth = limits.max_depth;
  options.max_tables = max_tables;
  options.check_nested_flatbuffers = false;
  if (bytes.size() >= options.max_size) {
    fail(Code::LimitExceeded, Stage::verify, "program", "has %zu bytes, FlatBuffers end at %zu", bytes.size(),
         options.max_size);
  }
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), options);
  if (!fb::VerifyProgramBuffer(verifier)) locate(bytes, max_tables);
}

}  // namespace pumice::engine
