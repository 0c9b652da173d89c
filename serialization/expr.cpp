// SPDX-License-Identifier: Apache-2.0
// Sizes that are expressions over symbolic dimensions: one pass over the nodes in order, since a node refers to earlier
// ones only.
#include <algorithm>
#include <cinttypes>
#include <limits>

#include "serialization/affine.h"
#include "serialization/types.h"

namespace pumice::engine {
namespace {

// Rounded towards minus infinity, as Python's // does.
CheckedI64 floordiv(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return CheckedI64::none();
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// The remainder that belongs to floordiv: it has the sign of b.
CheckedI64 floormod(int64_t a, int64_t b) {
  if (b == 0) return CheckedI64::none();
  if (b == -1) return 0;  // INT64_MIN % -1 is undefined in C++
  const int64_t remainder = a % b;
  return (remainder != 0 && (remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

CheckedI64 apply(ExprOp op, int64_t a, int64_t b) {
  switch (op) {
    case ExprOp::add:
      return CheckedI64(a) + b;
    case ExprOp::sub:
      return CheckedI64(a) - b;
    case ExprOp::mul:
      return CheckedI64(a) * b;
    case ExprOp::floordiv:
      return floordiv(a, b);
    case ExprOp::mod:
      return floormod(a, b);
    case ExprOp::min:
      return a < b ? a : b;
    case ExprOp::max:
      return a < b ? b : a;
    case ExprOp::constant:
    case ExprOp::symbol:
      break;
  }
  return CheckedI64::none();
}

std::optional<Affine> apply(ExprOp op, const Affine& a, const Affine& b) {
  const bool adds = op == ExprOp::add || op == ExprOp::sub, has_two = a.symbol >= 0 && b.symbol >= 0;
  if ((!adds && op != ExprOp::mul) || (has_two && (a.symbol != b.symbol || !adds))) return std::nullopt;
  const CheckedI64 by = op == ExprOp::sub ? -1 : 1;
  const auto factor =
      (adds ? a.factor + by * b.factor : CheckedI64(a.factor) * b.offset + CheckedI64(b.factor) * a.offset).value();
  const auto offset = (adds ? a.offset + by * b.offset : CheckedI64(a.offset) * b.offset).value();
  if (!factor || !offset) return std::nullopt;
  return Affine{*factor == 0 ? -1 : std::max(a.symbol, b.symbol), *factor, *offset};
}

const char* sign(ExprOp op) {
  constexpr const char* kSigns[] = {"constant", "symbol", "+", "-", "*", "//", "%", "min", "max"};
  return kSigns[static_cast<size_t>(op)];
}

}  // namespace

std::vector<int64_t> evaluate(const Method& method, std::span<const int64_t> symbols) {
  if (symbols.size() != method.symbols.size()) {
    fail(Code::Internal, Stage::plan, "", "evaluate got %zu symbol values, the method has %zu", symbols.size(),
         method.symbols.size());
  }
  std::vector<int64_t> values(method.exprs.size());
  for (size_t i = 0; i < values.size(); i++) {
    const Expr& e = method.exprs[i];
    if (e.op == ExprOp::constant) {
      values[i] = e.a;
    } else if (e.op == ExprOp::symbol) {
      values[i] = symbols[static_cast<size_t>(e.a)];
    } else {
      const int64_t a = values[static_cast<size_t>(e.a)], b = values[static_cast<size_t>(e.b)];
      const auto result = apply(e.op, a, b).value();
      if (!result) {
        fail(Code::BadShape, Stage::plan, format("exprs[%zu]", i), "%" PRId64 " %s %" PRId64 " %s", a, sign(e.op), b,
             b == 0 ? "divides by zero" : "does not fit 64 bits");
      }
      values[i] = *result;
    }
  }
  return values;
}

std::vector<std::optional<Affine>> affine(const Method& method) {
  std::vector<std::optional<Affine>> forms;
  forms.reserve(method.exprs.size());
  for (const Expr& e : method.exprs) {
    if (e.op == ExprOp::constant) {
      forms.push_back(Affine{-1, 0, e.a});
    } else if (e.op == ExprOp::symbol) {
      forms.push_back(Affine{e.a, 1, 0});
    } else {
      const auto &a = forms[static_cast<size_t>(e.a)], &b = forms[static_cast<size_t>(e.b)];
      forms.push_back(a && b ? apply(e.op, *a, *b) : std::nullopt);
    }
  }
  return forms;
}

std::optional<int64_t> solve(const Affine& expr, int64_t size) {
  const auto product = (CheckedI64(size) - expr.offset).value();
  if (!product || expr.factor == 0 || floormod(*product, expr.factor).value() != 0) return std::nullopt;
  return floordiv(*product, expr.factor).value();
}

}  // namespace pumice::engine
