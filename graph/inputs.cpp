// SPDX-License-Identifier: Apache-2.0
// Inputs against what the file says of them.
#include <cinttypes>

#include "graph/execute.h"

namespace pumice::engine {

InputRules::InputRules(const Program& program, uint32_t method) : method_(program.methods[method]) {
  std::vector<bool> bound(method_.symbols.size(), false);
  for (const uint32_t input : method_.inputs) {
    std::vector<Dim>& dims = dims_.emplace_back();
    for (const SymInt& size : method_.values[input].dims)
      dims.push_back({size.is_expr ? Dim::Rule::expr : Dim::Rule::fixed, size.value, {}});
  }
  const auto forms = affine(method_);
  for (const bool alone : {true, false}) {  // a symbol that is a size by itself is learned there
    for (std::vector<Dim>& dims : dims_) {
      for (Dim& dim : dims) {
        if (dim.rule != Dim::Rule::expr) continue;
        const auto& form = forms[static_cast<size_t>(dim.value)];
        if (!form || form->symbol < 0 || form->is_symbol() != alone || bound[static_cast<size_t>(form->symbol)])
          continue;
        bound[static_cast<size_t>(form->symbol)] = true;
        dim.rule = Dim::Rule::binds;
        dim.binds = *form;
      }
    }
  }
  for (size_t s = 0; s < bound.size(); ++s) {
    if (!bound[s])
      fail(Code::BadShape, Stage::plan, format("methods[%u].symbols[%zu]", method, s),
           "no dimension of an input is '%s'", printable(method_.symbols[s].name).c_str());
  }
}

std::string InputRules::path(size_t input) const {
  const std::string& given = method_.values[method_.inputs[input]].name;
  return given.empty() ? format("input %zu", input) : "input '" + printable(given) + "'";
}

void InputRules::check_tensor(size_t index, const InputView& input) const {
  const Value& value = method_.values[method_.inputs[index]];
  if (input.dtype != value.dtype)
    fail(Code::InvalidArgument, Stage::input, path(index), "dtype is %s, expected %s", name(input.dtype),
         name(value.dtype));
  if (input.dims.size() != value.dims.size())
    fail(Code::InvalidArgument, Stage::input, path(index), "rank is %zu, expected %zu", input.dims.size(),
         value.dims.size());
}

// What dimension `d` says of its symbol.
int64_t InputRules::symbol_of(size_t input, size_t d, int64_t got) const {
  const Affine& form = dims_[input][d].binds;
  const Symbol& symbol = method_.symbols[static_cast<size_t>(form.symbol)];
  const auto value = solve(form, got);
  if (value && *value >= symbol.min && *value <= symbol.max) return *value;
  const std::string name = "'" + printable(symbol.name) + "'";
  if (form.is_symbol())
    fail(Code::InvalidArgument, Stage::input, path(input),
         "dimension %zu (%s) is %" PRId64 ", allowed are %" PRId64 " to %" PRId64, d, name.c_str(), got, symbol.min,
         symbol.max);
  const std::string offset = form.offset == 0 ? "" : format(" + %" PRId64, form.offset);
  fail(Code::InvalidArgument, Stage::input, path(input),
       "dimension %zu is %" PRId64 ", expected %" PRId64 " * %s%s with %s from %" PRId64 " to %" PRId64, d, got,
       form.factor, name.c_str(), offset.c_str(), name.c_str(), symbol.min, symbol.max);
}

void InputRules::bind(std::span<const InputView> inputs, std::vector<int64_t>& symbols) const {
  if (inputs.size() != dims_.size())
    fail(Code::InvalidArgument, Stage::input, "", "%zu inputs given, the method '%s' takes %zu", inputs.size(),
         printable(method_.name).c_str(), dims_.size());
  symbols.assign(method_.symbols.size(), 0);
  bool has_exprs = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(i, inputs[i]);
    for (size_t d = 0; d < dims_[i].size(); ++d) {
      const int64_t got = inputs[i].dims[d];
      const Dim& dim = dims_[i][d];
      if (dim.rule == Dim::Rule::fixed && got != dim.value)
        fail(Code::InvalidArgument, Stage::input, path(i), "dimension %zu is %" PRId64 ", expected %" PRId64, d, got,
             dim.value);
      has_exprs |= dim.rule == Dim::Rule::expr;
      if (dim.rule == Dim::Rule::binds) symbols[static_cast<size_t>(dim.binds.symbol)] = symbol_of(i, d, got);
    }
  }
  if (has_exprs) {
    const std::vector<int64_t> exprs = evaluate(method_, symbols);
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t d = 0; d < dims_[i].size(); ++d) {
        if (dims_[i][d].rule != Dim::Rule::expr) continue;
        const int64_t want = exprs[static_cast<size_t>(dims_[i][d].value)];
        if (inputs[i].dims[d] != want)
          fail(Code::InvalidArgument, Stage::input, path(i),
               "dimension %zu is %" PRId64 ", the other dimensions given ask for %" PRId64, d, inputs[i].dims[d], want);
      }
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t want = file_bytes(inputs[i].dtype, inputs[i].dims);
    if (inputs[i].bytes != want)
      fail(Code::InvalidArgument, Stage::input, path(i), "has %" PRIu64 " bytes, its shape asks for %" PRIu64,
           inputs[i].bytes, want);
    if (inputs[i].data == nullptr && want != 0) fail(Code::InvalidArgument, Stage::input, path(i), "has no data");
  }
}

}  // namespace pumice::engine
