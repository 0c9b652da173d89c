// SPDX-License-Identifier: Apache-2.0
#include "serialization/decode.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "serialization/schema_generated.h"
#include "serialization/text.h"
#include "serialization/where.h"

namespace pumice::engine {
namespace {

static_assert(static_cast<int>(fb::DType_MAX) == static_cast<int>(DType::i4));
static_assert(static_cast<int>(fb::ValueKind_MAX) == static_cast<int>(ValueKind::scratch));
static_assert(static_cast<int>(fb::Storage_MAX) == static_cast<int>(StorageType::texture2d));
static_assert(static_cast<int>(fb::Precision_MAX) == static_cast<int>(Precision::fp16));
static_assert(static_cast<int>(fb::ExprOp_MAX) == static_cast<int>(ExprOp::max));
static_assert(static_cast<int>(fb::ArgKind_MAX) == static_cast<int>(ArgKind::values));

template <class T>
using Vector = flatbuffers::Vector<T>;
template <class T>
using Tables = Vector<flatbuffers::Offset<T>>;

// The host memory that a program's structs may take.
uint64_t most_host_bytes(uint64_t program_bytes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  return program_bytes + std::min(program_bytes, 32 * kMiB) + 16 * kMiB;
}

class Decoder {
 public:
  Decoder(const Limits& limits, uint64_t program_bytes)
      : limits_(limits), program_bytes_(program_bytes), budget_(most_host_bytes(program_bytes)) {}

  Program program(const fb::Program* in, std::vector<OpName>& op_names) {
    known(in, fb::Program::VT_PRECISION, nullptr);
    Program out;
    out.producer = string(in->producer(), limits_.max_name_bytes, {nullptr, "producer"});
    each(in->required_features(), limits_.max_name_bytes, "max_name_bytes", {nullptr, "required_features"},
         out.required_features,
         [&](const flatbuffers::String* s, const Where& at) { return string(s, limits_.max_name_bytes, at); });
    each(in->op_names(), limits_.max_ops, "max_ops", {nullptr, "op_names"}, op_names,
         [&](const fb::OpName* n, const Where& at) {
           known(n, fb::OpName::VT_VERSION, &at);
           return OpName{string(n->name(), limits_.max_name_bytes, {&at, "name"}), n->version()};
         });
    each(in->constants(), limits_.max_constants, "max_constants", {nullptr, "constants"}, out.constants,
         [&](const fb::Constant* c, const Where& at) {
           known(c, fb::Constant::VT_EXTERNAL, &at);
           return Constant{string(c->key(), limits_.max_name_bytes, {&at, "key"}), c->offset(), c->size(), c->hash(),
                           c->external()};
         });
    each(in->states(), limits_.max_constants, "max_constants", {nullptr, "states"}, out.states,
         [&](const fb::State* s, const Where& at) {
           known(s, fb::State::VT_CONSTANT, &at);
           return State{string(s->key(), limits_.max_name_bytes, {&at, "key"}), s->constant()};
         });
    each(in->methods(), limits_.max_methods, "max_methods", {nullptr, "methods"}, out.methods,
         [&](const fb::Method* m, const Where& at) { return method(m, at); });
    out.precision = enumerator<Precision>(in->precision(), fb::Precision_MAX, {nullptr, "precision"});
    return out;
  }

 private:
  Method method(const fb::Method* in, const Where& at) {
    known(in, fb::Method::VT_OUT_SPEC, &at);
    Method out;
    out.name = string(in->name(), limits_.max_name_bytes, {&at, "name"});
    each(in->symbols(), limits_.max_symbols, "max_symbols", {&at, "symbols"}, out.symbols,
         [&](const fb::Symbol* s, const Where& w) {
           known(s, fb::Symbol::VT_HINT, &w);
           return Symbol{string(s->name(), limits_.max_name_bytes, {&w, "name"}), s->min(), s->max(), s->hint()};
         });
    exprs(in->exprs(), {&at, "exprs"}, out.exprs);
    each(in->values(), limits_.max_values, "max_values", {&at, "values"}, out.values,
         [&](const fb::Value* v, const Where& w) { return value(v, w); });
    each(in->ops(), limits_.max_ops, "max_ops", {&at, "ops"}, out.ops,
         [&](const fb::OpCall* c, const Where& w) { return call(c, w); });
    scalars(in->inputs(), limits_.max_values, "max_values", {&at, "inputs"}, out.inputs);
    scalars(in->outputs(), limits_.max_values, "max_values", {&at, "outputs"}, out.outputs);
    each(in->updates(), limits_.max_values, "max_values", {&at, "updates"}, out.updates,
         [&](const fb::Update* u, const Where& w) {
           known(u, fb::Update::VT_VALUE, &w);
           return Update{u->state(), u->value()};
         });
    out.in_spec = string(in->in_spec(), limits_.max_spec_bytes, {&at, "in_spec"}, Lines::many);
    out.out_spec = string(in->out_spec(), limits_.max_spec_bytes, {&at, "out_spec"}, Lines::many);
    return out;
  }

  Value value(const fb::Value* in, const Where& at) {
    known(in, fb::Value::VT_STORAGE, &at);
    Value out{};
    out.kind = enumerator<ValueKind>(in->kind(), fb::ValueKind_MAX, {&at, "kind"});
    out.dtype = enumerator<DType>(in->dtype(), fb::DType_MAX, {&at, "dtype"});
    std::vector<int64_t> dims;
    scalars(in->dims(), limits_.max_rank, "max_rank", {&at, "dims"}, dims, Code::BadShape);
    charge(dims.size() * sizeof(SymInt), at);
    out.dims.reserve(dims.size());
    for (const int64_t dim : dims)
      out.dims.push_back(dim >= 0 ? SymInt{false, dim} : SymInt{true, ~dim});  // ~d == -(d + 1)
    out.ref = in->ref();
    out.name = string(in->name(), limits_.max_name_bytes, {&at, "name"});
    out.storage = enumerator<StorageType>(in->storage(), fb::Storage_MAX, {&at, "storage"});
    return out;
  }

  OpCall call(const fb::OpCall* in, const Where& at) {
    known(in, fb::OpCall::VT_SOURCE, &at);
    OpCall out{};
    out.op = in->op();
    each(in->args(), limits_.max_args, "max_args", {&at, "args"}, out.args,
         [&](const fb::Arg* a, const Where& w) { return arg(a, w); });
    scalars(in->outputs(), limits_.max_list, "max_list", {&at, "outputs"}, out.outputs);
    out.source = string(in->source(), limits_.max_name_bytes, {&at, "source"}, Lines::many);
    return out;
  }

  Arg arg(const fb::Arg* in, const Where& at) {
    known(in, fb::Arg::VT_LIST, &at);
    Arg out;
    out.kind = enumerator<ArgKind>(in->kind(), fb::ArgKind_MAX, {&at, "kind"});
    out.i = in->i();
    out.f = in->f();
    scalars(in->list(), limits_.max_list, "max_list", {&at, "list"}, out.list);
    const bool lists = out.kind == ArgKind::ints || out.kind == ArgKind::exprs || out.kind == ArgKind::values;
    if (!lists && !out.list.empty()) {
      fail(Code::BadSchema, Stage::semantics, Where{&at, "list"}.text(), "got %zu items, a %s has no list",
           out.list.size(), name(out.kind));
    }
    const bool real = out.kind == ArgKind::real, integer = !lists && !real && out.kind != ArgKind::none;
    if (!integer && out.i != 0)
      fail(Code::BadSchema, Stage::semantics, Where{&at, "i"}.text(), "got %" PRId64 ", a %s has no integer", out.i,
           name(out.kind));
    if (!real && out.f != 0)
      fail(Code::BadSchema, Stage::semantics, Where{&at, "f"}.text(), "got %g, a %s has no real number", out.f,
           name(out.kind));
    if (out.kind == ArgKind::boolean) enumerator<bool>(out.i, 1, {&at, "i"});
    if (out.kind == ArgKind::dtype) enumerator<DType>(out.i, fb::DType_MAX, {&at, "i"});
    return out;
  }

  void exprs(const Vector<const fb::Expr*>* in, const Where& at, std::vector<Expr>& out) {
    if (in == nullptr) return;
    reserve(out, in->size(), limits_.max_exprs, "max_exprs", at);
    for (uint32_t i = 0; i < in->size(); i++) {
      fb::Expr e;  // copied: the verifier does not check the alignment of elements of 8 bytes
      std::memcpy(static_cast<void*>(&e), in->Data() + size_t{i} * sizeof e, sizeof e);
      const Where here{at.up, at.field, i};
      out.push_back({enumerator<ExprOp>(e.op(), fb::ExprOp_MAX, {&here, "op"}), e.a(), e.b()});
    }
  }

  template <class T, class Out, class F>
  void each(const Vector<T>* in, uint32_t limit, const char* limit_name, const Where& at, std::vector<Out>& out,
            F&& item) {
    if (in == nullptr) return;
    reserve(out, in->size(), limit, limit_name, at);
    for (uint32_t i = 0; i < in->size(); i++) out.push_back(item(in->Get(i), Where{at.up, at.field, i}));
  }

  template <class T>
  void scalars(const Vector<T>* in, uint32_t limit, const char* limit_name, const Where& at, std::vector<T>& out,
               Code code = Code::LimitExceeded) {
    if (in == nullptr || in->size() == 0) return;
    reserve(out, in->size(), limit, limit_name, at, code);
    out.resize(in->size());
    std::memcpy(out.data(), in->Data(), out.size() * sizeof(T));
  }

  template <class T>
  void reserve(std::vector<T>& out, uint64_t count, uint64_t limit, const char* limit_name, const Where& at,
               Code code = Code::LimitExceeded) {
    if (count > limit) {
      fail(code, Stage::semantics, at.text(), "got %" PRIu64 " items, %s is %" PRIu64, count, limit_name, limit);
    }
    charge(count * sizeof(T), at);
    out.reserve(count);
  }

  std::string string(const flatbuffers::String* in, uint32_t limit, const Where& at, Lines lines = Lines::one) {
    if (in == nullptr) return {};
    const std::string_view text = in->string_view();
    if (text.size() > limit) {
      fail(Code::LimitExceeded, Stage::semantics, at.text(), "got %zu bytes of text, the limit is %u", text.size(),
           limit);
    }
    if (const char* why = text_problem(text, lines)) {
      fail(Code::BadSchema, Stage::semantics, at.text(), "'%s' %s", printable(text).c_str(), why);
    }
    charge(text.size(), at);
    return std::string(text);
  }

  template <class T>
  T enumerator(int64_t value, int64_t last, const Where& at) {
    if (value < 0 || value > last) {
      fail(Code::BadSchema, Stage::semantics, at.text(), "got %" PRId64 ", the last one is %" PRId64, value, last);
    }
    return static_cast<T>(value);
  }

  // A field after `last` belongs to a newer schema; it could change the meaning of all others.
  template <class T>
  void known(const T* table, uint16_t last, const Where* at) {
    const auto* plain = reinterpret_cast<const flatbuffers::Table*>(table);
    const auto size = flatbuffers::ReadScalar<uint16_t>(plain->GetVTable());
    if (size > last + 2) {
      fail(Code::UnsupportedVersion, Stage::semantics, at == nullptr ? "program" : at->text(),
           "has field %d, this library knows %d; use a newer library", (size - 4) / 2, (last - 2) / 2);
    }
  }

  // A hostile file may refer to one vector or text many times, and each reference takes host memory here. The sum is
  // bounded by the size of the file.
  void charge(uint64_t bytes, const Where& at) {
    if (bytes > budget_) {
      fail(Code::LimitExceeded, Stage::semantics, at.text(),
           "the program takes more than %" PRIu64 " bytes of host memory, the limit for its %" PRIu64 " bytes",
           most_host_bytes(program_bytes_), program_bytes_);
    }
    budget_ -= bytes;
  }

  const Limits& limits_;
  uint64_t program_bytes_, budget_;
};

}  // namespace

Program decode(std::span<const std::byte> bytes, const Limits& limits, std::vector<OpName>& op_names) {
  return Decoder(limits, bytes.size()).program(fb::GetProgram(bytes.data()), op_names);
}

}  // namespace pumice::engine
