// SPDX-License-Identifier: Apache-2.0
// Inputs against what the file says of them.
#include <cinttypes>

#include "graph/execute.h"

namespace pumice {

InputRules::InputRules(const Program& program, uint32_t method) : method_(program.methods[method]) {
  std::vector<bool> bound(method_.symbols.size(), false);
  for (const uint32_t input : method_.inputs) {
    std::vector<Dim>& dims = dims_.emplace_back();
    for (const SymInt& size : method_.values[input].dims) {
      if (!size.is_expr) {
        dims.push_back({Dim::Rule::fixed, size.value});
        continue;
      }
      const Expr& expr = method_.exprs[static_cast<size_t>(size.value)];
      const bool binds = expr.op == ExprOp::symbol && !bound[static_cast<size_t>(expr.a)];
      if (binds) bound[static_cast<size_t>(expr.a)] = true;
      dims.push_back({binds ? Dim::Rule::binds : Dim::Rule::expr, binds ? expr.a : size.value});
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
      if (dim.rule != Dim::Rule::binds) continue;
      const Symbol& symbol = method_.symbols[static_cast<size_t>(dim.value)];
      if (got < symbol.min || got > symbol.max)
        fail(Code::InvalidArgument, Stage::input, path(i),
             "dimension %zu ('%s') is %" PRId64 ", allowed are %" PRId64 " to %" PRId64, d,
             printable(symbol.name).c_str(), got, symbol.min, symbol.max);
      symbols[static_cast<size_t>(dim.value)] = got;
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

}  // namespace pumice
