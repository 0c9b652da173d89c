// SPDX-License-Identifier: Apache-2.0
#include "serialization/semantics.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <unordered_set>

#include "serialization/expr.h"
#include "serialization/method.h"

namespace pumice::engine {
namespace {

// Features that change how version 1 is read; a file lists those it needs.
constexpr std::array kFeatures{kAffineInputs, kInputUpdates};

// The keys of `items` (as `key` gives them) are there, and no two are equal.
template <class Items, class Key>
void check_keys(const Items& items, const char* list, const char* field, Key&& key) {
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < items.size(); i++) {
    const std::string_view text = key(items[i]);
    if (text.empty()) fail(Code::BadSchema, Stage::semantics, format("%s[%zu].%s", list, i, field), "is empty");
    if (!seen.insert(text).second) {
      fail(Code::BadSchema, Stage::semantics, format("%s[%zu].%s", list, i, field), "'%s' is there twice",
           printable(text).c_str());
    }
  }
}

Operator find(const OpName& wanted, std::span<const Signature> signatures, const Where& at) {
  const Signature* other = nullptr;
  for (uint32_t i = 0; i < signatures.size(); i++) {
    if (signatures[i].name != wanted.name) continue;
    if (signatures[i].version == wanted.version) return {i, signatures[i].name, parse(signatures[i])};
    other = &signatures[i];
  }
  if (other != nullptr) {
    fail(Code::UnknownOp, Stage::semantics, at.text(), "got operator '%s' version %u, this library has version %u",
         printable(wanted.name).c_str(), wanted.version, other->version);
  }
  fail(Code::UnknownOp, Stage::semantics, at.text(),
       "this library has no operator '%s' (version %u); use a newer one, or export again",
       printable(wanted.name).c_str(), wanted.version);
}

std::vector<Operator> find_all(std::span<const OpName> names, std::span<const Signature> signatures) {
  std::vector<Operator> operators;
  std::vector<bool> seen(signatures.size());
  operators.reserve(std::min(names.size(), signatures.size()));
  for (size_t i = 0; i < names.size(); i++) {
    const Where at{nullptr, "op_names", static_cast<int64_t>(i)};
    operators.push_back(find(names[i], signatures, at));
    if (seen[operators.back().index]) {
      fail(Code::BadSchema, Stage::semantics, at.text(), "'%s' version %u is there twice",
           printable(names[i].name).c_str(), names[i].version);
    }
    seen[operators.back().index] = true;
  }
  return operators;
}

// Methods share their states, so they must agree on what a state is.
void check_states(const Program& program) {
  std::vector<const Value*> first(program.states.size());
  for (size_t m = 0; m < program.methods.size(); m++) {
    const Method& method = program.methods[m];
    for (size_t v = 0; v < method.values.size(); v++) {
      const Value& value = method.values[v];
      if (value.kind != ValueKind::state) continue;
      const Value*& other = first[static_cast<size_t>(value.ref)];
      if (other == nullptr) other = &value;
      if (other->dtype != value.dtype || !same_dims(*other, value)) {
        fail(Code::BadGraph, Stage::semantics, format("methods[%zu].values[%zu]", m, v),
             "is state %d as %s, but another method has it with another shape or as %s", value.ref, name(value.dtype),
             name(other->dtype));
      }
    }
  }
}

}  // namespace

void check_semantics(Program& program, std::span<const OpName> op_names, std::span<const Signature> signatures,
                     const Limits& limits) {
  for (size_t i = 0; i < program.required_features.size(); i++) {
    const std::string& feature = program.required_features[i];
    if (std::find(kFeatures.begin(), kFeatures.end(), feature) == kFeatures.end()) {
      fail(Code::UnsupportedVersion, Stage::semantics, format("required_features[%zu]", i),
           "this library does not know the feature '%s'; use a newer one", printable(feature).c_str());
    }
  }
  check_keys(program.constants, "constants", "key", [](const Constant& c) -> std::string_view { return c.key; });
  check_keys(program.states, "states", "key", [](const State& s) -> std::string_view { return s.key; });
  check_keys(program.methods, "methods", "name", [](const Method& m) -> std::string_view { return m.name; });
  if (program.methods.empty())
    fail(Code::BadSchema, Stage::semantics, "methods", "is empty, a program has at least one method");
  for (size_t i = 0; i < program.states.size(); i++) {
    const int64_t constant = program.states[i].constant;
    if (constant < -1 || constant >= static_cast<int64_t>(program.constants.size())) {
      fail(Code::BadIndex, Stage::semantics, format("states[%zu].constant", i),
           "got %" PRId64 ", there are %zu constants (-1: zeros)", constant, program.constants.size());
    }
  }
  const std::vector<Operator> operators = find_all(op_names, signatures);
  for (size_t i = 0; i < program.methods.size(); i++) {
    check_method(program.methods[i], program, operators, limits, {nullptr, "methods", static_cast<int64_t>(i)});
  }
  check_states(program);
}

}  // namespace pumice::engine
