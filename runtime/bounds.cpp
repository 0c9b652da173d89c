// SPDX-License-Identifier: Apache-2.0
#include "runtime/bounds.h"

#include <algorithm>
#include <limits>

namespace pumice::engine {
namespace {

using Wide = __int128;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

int64_t narrow(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, kMin, kMax));
}

Wide floordiv(Wide a, Wide b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

template <class F>
Bounds corners(Bounds a, Bounds b, const F& f) {
  const Wide values[] = {f(a.min, b.min), f(a.min, b.max), f(a.max, b.min), f(a.max, b.max)};
  return {narrow(*std::min_element(values, values + 4)), narrow(*std::max_element(values, values + 4))};
}

Bounds apply(ExprOp op, Bounds a, Bounds b) {
  switch (op) {
    case ExprOp::add:
      return {narrow(Wide{a.min} + b.min), narrow(Wide{a.max} + b.max)};
    case ExprOp::sub:
      return {narrow(Wide{a.min} - b.max), narrow(Wide{a.max} - b.min)};
    case ExprOp::mul:
      return corners(a, b, [](Wide x, Wide y) { return x * y; });
    case ExprOp::floordiv:
      if (b.min > 0 || b.max < 0) return corners(a, b, [](Wide x, Wide y) { return floordiv(x, y); });
      break;
    case ExprOp::mod:
      if (b.min > 0 && a.min >= 0 && a.max < b.min) return a;
      if (b.min > 0) return {0, b.max - 1};
      break;
    case ExprOp::min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case ExprOp::max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case ExprOp::constant:
    case ExprOp::symbol:
      break;
  }
  return {kMin, kMax};
}

}  // namespace

std::vector<Bounds> bounds(const Method& method) {
  std::vector<Bounds> exprs;
  for (const Expr& e : method.exprs) {
    if (e.op == ExprOp::constant) {
      exprs.push_back({e.a, e.a});
    } else if (e.op == ExprOp::symbol) {
      const Symbol& s = method.symbols[static_cast<size_t>(e.a)];
      exprs.push_back({s.min, s.max});
    } else {
      exprs.push_back(apply(e.op, exprs[static_cast<size_t>(e.a)], exprs[static_cast<size_t>(e.b)]));
    }
  }
  return exprs;
}

Bounds bounds(const std::vector<Bounds>& exprs, SymInt size) {
  const Bounds found = size.is_expr ? exprs[static_cast<size_t>(size.value)] : Bounds{size.value, size.value};
  return {std::max<int64_t>(found.min, 0), std::max<int64_t>(found.max, 0)};
}

const Symbol* symbol(const Method& method, SymInt size) {
  if (!size.is_expr || method.exprs[static_cast<size_t>(size.value)].op != ExprOp::symbol) return nullptr;
  return &method.symbols[static_cast<size_t>(method.exprs[static_cast<size_t>(size.value)].a)];
}

}  // namespace pumice::engine
