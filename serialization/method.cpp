// SPDX-License-Identifier: Apache-2.0
#include "serialization/method.h"

#include <algorithm>
#include <cinttypes>
#include <unordered_map>
#include <unordered_set>

#include "serialization/expr.h"

namespace pumice::engine {
namespace {

class MethodChecker {
 public:
  MethodChecker(Method& method, const Program& program, std::span<const Operator> operators, const Limits& limits,
                const Where& at)
      : method_(method), program_(program), operators_(operators), limits_(limits), at_(at) {}
  void run();

 private:
  Where here(const char* list, size_t i) const { return {&at_, list, static_cast<int64_t>(i)}; }

  // In the order in which they run.
  void symbols();
  void exprs();
  void values();
  void inputs();
  void updates();
  Shape shape(const Value& value, const Where& at);
  void bytes(const Value& value, const Shape& dims, int64_t constant, const Where& at);
  void ends(const char* field, ValueKind kind, std::span<const uint32_t> list);
  void names(const char* field, const char* what, std::span<const uint32_t> list);

  Method& method_;
  const Program& program_;
  std::span<const Operator> operators_;
  const Limits& limits_;
  const Where& at_;
  std::vector<int64_t> at_hint_;  // of every expression
  std::vector<bool> defined_;     // of every value, up to the call at hand
};

void MethodChecker::symbols() {
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < method_.symbols.size(); i++) {
    const Symbol& s = method_.symbols[i];
    const Where at = here("symbols", i);
    if (s.name.empty() || !seen.insert(s.name).second) {
      bad(Code::BadSchema, {&at, "name"}, "'" + printable(s.name) + "' is empty or there twice");
    }
    if (s.min < 0 || s.min > s.hint || s.hint > s.max || static_cast<uint64_t>(s.max) >= limits_.max_dim) {
      bad(Code::BadShape, at,
          format("symbol '%s' has min %" PRId64 ", hint %" PRId64 ", max %" PRId64
                 "; they must be 0 or more, in that order, and below %" PRIu64,
                 printable(s.name).c_str(), s.min, s.hint, s.max, limits_.max_dim));
    }
  }
}

void MethodChecker::exprs() {
  for (size_t i = 0; i < method_.exprs.size(); i++) {
    const Expr& e = method_.exprs[i];
    const Where at = here("exprs", i);
    if (e.op == ExprOp::constant) continue;
    if (e.op == ExprOp::symbol) {
      check_index(e.a, method_.symbols.size(), "symbols", {&at, "a"});
    } else {
      check_index(e.a, i, "earlier expressions", {&at, "a"});
      check_index(e.b, i, "earlier expressions", {&at, "b"});
    }
  }
  std::vector<int64_t> hints;
  for (const Symbol& s : method_.symbols) hints.push_back(s.hint);
  try {
    at_hint_ = evaluate(method_, hints);
  } catch (const Error& error) {
    throw Error(error.code(), Stage::semantics, at_.text() + "." + error.path(),
                error.what() + std::string(" at the symbols' hints"));
  }
}

// The sizes of a value at the symbols' hints.
Shape MethodChecker::shape(const Value& value, const Where& at) {
  Shape out;
  for (size_t d = 0; d < value.dims.size(); d++) {
    const SymInt dim = value.dims[d];
    const Where where{&at, "dims", static_cast<int64_t>(d)};
    if (dim.is_expr) {
      if (value.kind == ValueKind::constant || value.kind == ValueKind::state) {
        bad(Code::BadShape, where, format("is an expression; a %s has fixed sizes", name(value.kind)));
      }
      check_index(dim.value, method_.exprs.size(), "expressions", where);
    }
    out.push_back(dim.is_expr ? at_hint_[static_cast<size_t>(dim.value)] : dim.value);
    if (out.back() < 0 || static_cast<uint64_t>(out.back()) >= limits_.max_dim) {
      bad(Code::BadShape, where,
          format("got %" PRId64 ", a size is 0 or more and below max_dim, %" PRIu64, out.back(), limits_.max_dim));
    }
  }
  const auto count = checked_elements(out).value();
  if (!count || *count > limits_.max_elements) {
    bad(Code::LimitExceeded, {&at, "dims"},
        format("[%s] has more elements than max_elements, %" PRIu64, text(out).c_str(), limits_.max_elements));
  }
  return out;
}

// The bytes of constant `index` are those of a `value` of this shape.
void MethodChecker::bytes(const Value& value, const Shape& dims, int64_t constant, const Where& at) {
  const Constant& c = program_.constants[static_cast<size_t>(constant)];
  const auto want = checked_file_bytes(value.dtype, dims).value();
  if (!want || *want != c.size) {
    fail(Code::WeightsMismatch, Stage::semantics, at.text(), "constant '%s' has %" PRIu64 " bytes, %s[%s] has %" PRIu64,
         printable(c.key).c_str(), c.size, name(value.dtype), text(dims).c_str(), want.value_or(0));
  }
}

void MethodChecker::values() {
  std::vector<bool> state_seen(program_.states.size());
  for (size_t i = 0; i < method_.values.size(); i++) {
    const Value& v = method_.values[i];
    const Where at = here("values", i);
    const Shape dims = shape(v, at);
    if (v.dtype == DType::i4 && v.kind != ValueKind::constant) {
      bad(Code::BadDtype, {&at, "dtype"}, format("i4 is for constants, this is a %s", name(v.kind)));
    }
    const bool is_stored = v.kind == ValueKind::constant || v.kind == ValueKind::state;
    if ((v.storage == StorageType::texture3d && is_stored) ||
        (v.storage == StorageType::texture2d && v.kind != ValueKind::constant)) {
      bad(Code::BadSchema, {&at, "storage"}, format("a %s cannot be a %s", name(v.kind), name(v.storage)));
    }
    if (v.kind == ValueKind::constant) {
      check_index(v.ref, program_.constants.size(), "constants", {&at, "ref"});
      bytes(v, dims, v.ref, at);
    } else if (v.kind == ValueKind::state) {
      check_index(v.ref, program_.states.size(), "states", {&at, "ref"});
      if (state_seen[static_cast<size_t>(v.ref)])
        bad(Code::BadGraph, {&at, "ref"}, "this state is already a value of this method");
      state_seen[static_cast<size_t>(v.ref)] = true;
      const int32_t constant = program_.states[static_cast<size_t>(v.ref)].constant;
      if (constant >= 0) bytes(v, dims, constant, at);
    } else if (v.ref != -1) {
      bad(Code::BadIndex, {&at, "ref"}, format("got %d, a value of kind %s has none (-1)", v.ref, name(v.kind)));
    }
    defined_.push_back(v.kind == ValueKind::input || v.kind == ValueKind::constant || v.kind == ValueKind::state);
  }
}

// Every value of `kind` is in `list`, and nothing else is; an input only once.
void MethodChecker::ends(const char* field, ValueKind kind, std::span<const uint32_t> list) {
  std::vector<bool> listed(method_.values.size());
  for (size_t i = 0; i < list.size(); i++) {
    const Where at = here(field, i);
    check_index(list[i], method_.values.size(), "values", at);
    const Value& v = method_.values[list[i]];
    if (v.kind != kind)
      bad(Code::BadGraph, at, format("value %u is of kind %s, not %s", list[i], name(v.kind), name(kind)));
    if (listed[list[i]] && kind == ValueKind::input)
      bad(Code::BadGraph, at, format("value %u is there twice", list[i]));
    listed[list[i]] = true;
  }
  for (size_t i = 0; i < listed.size(); i++) {
    if (method_.values[i].kind == kind && !listed[i]) {
      bad(Code::BadGraph, here("values", i), format("is of kind %s, but not in %s", name(kind), field));
    }
  }
}

// Hosts find inputs and outputs by name, tools name files after them: no two values of `list` share a name.
void MethodChecker::names(const char* field, const char* what, std::span<const uint32_t> list) {
  std::unordered_map<std::string_view, uint32_t> first;
  for (size_t i = 0; i < list.size(); i++) {
    const std::string& name = method_.values[list[i]].name;
    if (!name.empty() && first.emplace(name, list[i]).first->second != list[i]) {
      bad(Code::BadSchema, here(field, i),
          format("another %s is named '%s', too; export the model again", what, printable(name).c_str()));
    }
  }
}

// Every symbol is the size of an input, from which it gets its value at run time.
void MethodChecker::inputs() {
  ends("inputs", ValueKind::input, method_.inputs);
  names("inputs", "input", method_.inputs);
  std::vector<bool> bound(method_.symbols.size());
  const auto forms = affine(method_);
  const auto& features = program_.required_features;
  const bool any_affine = std::find(features.begin(), features.end(), kAffineInputs) != features.end();
  for (size_t i = 0; i < method_.inputs.size(); i++) {
    const Value& v = method_.values[method_.inputs[i]];
    for (const SymInt dim : v.dims) {
      if (!dim.is_expr) continue;
      const auto& form = forms[static_cast<size_t>(dim.value)];
      if (form && form->symbol >= 0 && (any_affine || form->is_symbol()))
        bound[static_cast<size_t>(form->symbol)] = true;
    }
  }
  for (size_t i = 0; i < bound.size(); i++) {
    if (!bound[i]) {
      bad(Code::BadShape, here("symbols", i),
          "symbol '" + printable(method_.symbols[i].name) + "' is not the size of any input" +
              (any_affine ? ", alone or as factor * symbol + offset" : ""));
    }
  }
}

void MethodChecker::updates() {
  std::vector<bool> updated(method_.values.size());
  const auto& features = program_.required_features;
  const bool of_inputs = std::find(features.begin(), features.end(), kInputUpdates) != features.end();
  for (size_t i = 0; i < method_.updates.size(); i++) {
    const auto [state, value] = method_.updates[i];
    const Where at = here("updates", i);
    check_index(state, method_.values.size(), "values", {&at, "state"});
    check_index(value, method_.values.size(), "values", {&at, "value"});
    const Value &to = method_.values[state], &from = method_.values[value];
    if (to.kind != ValueKind::state && !(of_inputs && to.kind == ValueKind::input))
      bad(Code::BadGraph, {&at, "state"}, format("value %u is of kind %s", state, name(to.kind)));
    if (updated[state]) bad(Code::BadGraph, {&at, "state"}, format("value %u has an update already", state));
    updated[state] = true;
    if (to.dtype != from.dtype) {
      bad(Code::BadDtype, {&at, "value"},
          format("a %s cannot become the %s %s", name(from.dtype), name(to.dtype), name(to.kind)));
    }
    if (!same_dims(to, from))
      bad(Code::BadShape, {&at, "value"}, format("value %u has another shape than the %s", value, name(to.kind)));
  }
}

void MethodChecker::run() {
  symbols();
  exprs();
  values();
  inputs();
  ends("outputs", ValueKind::output, method_.outputs);
  names("outputs", "output", method_.outputs);
  CallChecker calls(method_, operators_, defined_);
  for (size_t i = 0; i < method_.ops.size(); i++) calls.run(method_.ops[i], here("ops", i));
  for (size_t i = 0; i < defined_.size(); i++) {
    if (!defined_[i]) bad(Code::BadGraph, here("values", i), "no operator writes it");
  }
  updates();
}

}  // namespace

void check_method(Method& method, const Program& program, std::span<const Operator> operators, const Limits& limits,
                  const Where& at) {
  MethodChecker(method, program, operators, limits, at).run();
}

}  // namespace pumice::engine
