// SPDX-License-Identifier: Apache-2.0
#include <climits>

#include "base/checked.h"
#include "serialization/affine.h"
#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

int64_t apply(ExprOp op, int64_t a, int64_t b) {
  Method method;
  method.symbols = {{"a", 0, 9, 0}};
  method.exprs = {{ExprOp::symbol, 0, 0}, {ExprOp::constant, b, 0}, {op, 0, 1}};
  return evaluate(method, std::vector<int64_t>{a}).back();
}

TEST(Expr, RoundsAsPythonDoes) {
  // (a, b, a // b, a % b), from Python
  const int64_t rows[][4] = {{7, 2, 3, 1},
                             {-7, 2, -4, 1},
                             {7, -2, -4, -1},
                             {-7, -2, 3, -1},
                             {6, 3, 2, 0},
                             {-6, 3, -2, 0},
                             {0, 5, 0, 0},
                             {1, 5, 0, 1},
                             {-1, 5, -1, 4},
                             {5, -1, -5, 0},
                             {INT64_MAX, 2, 4611686018427387903, 1},
                             {INT64_MIN, 2, -4611686018427387904, 0}};
  for (const auto& [a, b, quotient, remainder] : rows) {
    EXPECT_EQ(apply(ExprOp::floordiv, a, b), quotient) << a << " // " << b;
    EXPECT_EQ(apply(ExprOp::mod, a, b), remainder) << a << " % " << b;
  }
}

TEST(Expr, Rest) {
  EXPECT_EQ(apply(ExprOp::add, 3, -4), -1);
  EXPECT_EQ(apply(ExprOp::sub, 3, -4), 7);
  EXPECT_EQ(apply(ExprOp::mul, 3, -4), -12);
  EXPECT_EQ(apply(ExprOp::min, 3, -4), -4);
  EXPECT_EQ(apply(ExprOp::max, 3, -4), 3);
  EXPECT_EQ(apply(ExprOp::mod, INT64_MIN, -1), 0);
}

TEST(Expr, NothingWraps) {
  const auto bad = [](ExprOp op, int64_t a, int64_t b) {
    expect_error(Code::BadShape, "exprs[2]", "", [&] { apply(op, a, b); });
  };
  bad(ExprOp::add, INT64_MAX, 1);
  bad(ExprOp::sub, INT64_MIN, 1);
  bad(ExprOp::mul, int64_t{1} << 62, 2);
  bad(ExprOp::floordiv, INT64_MIN, -1);
  bad(ExprOp::floordiv, 4, 0);
  bad(ExprOp::mod, 4, 0);
}

TEST(Expr, AffineInOneSymbol) {
  Method method;
  method.symbols = {{"s", 0, 9, 0}, {"t", 0, 9, 0}};
  const Expr s{ExprOp::symbol, 0, 0}, t{ExprOp::symbol, 1, 0}, sixteen{ExprOp::constant, 16, 0};
  const Expr huge{ExprOp::constant, INT64_MAX, 0};
  const auto form = [&](std::vector<Expr> exprs) {
    method.exprs = std::move(exprs);
    return affine(method).back();
  };
  const auto is = [](const std::optional<Affine>& got, int64_t symbol, int64_t factor, int64_t offset) {
    ASSERT_TRUE(got);
    EXPECT_EQ(got->symbol, symbol);
    EXPECT_EQ(got->factor, factor);
    EXPECT_EQ(got->offset, offset);
  };
  is(form({t}), 1, 1, 0);
  is(form({s, sixteen, {ExprOp::mul, 1, 0}, {ExprOp::sub, 2, 1}, {ExprOp::sub, 3, 0}}), 0, 15, -16);
  is(form({s, sixteen, {ExprOp::sub, 1, 0}, {ExprOp::mul, 2, 1}}), 0, -16, 256);
  is(form({s, sixteen, {ExprOp::sub, 0, 0}, {ExprOp::mul, 2, 0}, {ExprOp::add, 3, 1}}), -1, 0, 16);
  EXPECT_FALSE(form({s, t, {ExprOp::add, 0, 1}}));
  EXPECT_FALSE(form({s, {ExprOp::mul, 0, 0}}));
  EXPECT_FALSE(form({s, sixteen, {ExprOp::floordiv, 0, 1}, {ExprOp::mul, 2, 1}}));
  EXPECT_FALSE(form({s, huge, {ExprOp::mul, 0, 1}, {ExprOp::add, 2, 2}}));
  EXPECT_FALSE(form({s, huge, {ExprOp::add, 0, 1}, {ExprOp::add, 2, 1}}));
}

TEST(Expr, SolvesForTheSymbol) {
  EXPECT_EQ(solve({0, 16, 3}, 35), 2);
  EXPECT_EQ(solve({0, 16, 3}, 3), 0);
  EXPECT_EQ(solve({0, -2, 7}, 1), 3);
  EXPECT_EQ(solve({0, 16, 3}, -13), -1);
  EXPECT_FALSE(solve({0, 16, 3}, 34));
  EXPECT_FALSE(solve({0, 16, INT64_MIN}, 1));      // the difference does not fit
  EXPECT_FALSE(solve({0, -1, 1}, INT64_MIN + 1));  // the quotient does not
  EXPECT_EQ(solve({0, INT64_MIN, 0}, INT64_MIN), 1);
  EXPECT_FALSE(solve({0, INT64_MIN, 0}, 5));
}

TEST(Checked, RemembersAnOverflow) {
  EXPECT_EQ((CheckedU64(3) * 4 + 5 - 1).value(), 16u);
  EXPECT_FALSE((CheckedU64(UINT64_MAX) + 1 - 1).value());
  EXPECT_FALSE((CheckedU64(0) - 1).ok());
  EXPECT_FALSE((CheckedU64(uint64_t{1} << 32) * (uint64_t{1} << 32) * 0).ok());
  EXPECT_FALSE((CheckedI64(INT64_MIN) - 1).ok());
}

TEST(FileBytes, OfEveryDType) {
  const std::vector<int64_t> dims{3, 5};
  const std::pair<DType, uint64_t> sizes[] = {{DType::f32, 60},  {DType::f16, 30},     {DType::i32, 60},
                                              {DType::i64, 120}, {DType::boolean, 15}, {DType::u8, 15},
                                              {DType::i8, 15},   {DType::i4, 9}};
  for (const auto& [dtype, size] : sizes) EXPECT_EQ(file_bytes(dtype, dims), size) << name(dtype);
  EXPECT_EQ(file_bytes(DType::f32, {}), 4u);
  EXPECT_EQ(file_bytes(DType::i4, {}), 1u);
  EXPECT_EQ(file_bytes(DType::f32, std::vector<int64_t>{0, 7}), 0u);
}

TEST(FileBytes, NothingWraps) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{int64_t{1} << 32, int64_t{1} << 32},
                                           {int64_t{1} << 62},
                                           {-1, 4},
                                           {0, int64_t{1} << 40, int64_t{1} << 40},
                                           {4, -1}}) {
    expect_error(Code::LimitExceeded, [&] { file_bytes(DType::i64, dims); });
  }
  expect_error(Code::LimitExceeded,
               [] { file_bytes(DType::i4, std::vector<int64_t>{int64_t{1} << 40, int64_t{1} << 40}); });
}

}  // namespace
}  // namespace pumice::engine::test
