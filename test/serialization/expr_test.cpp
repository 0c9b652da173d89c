// SPDX-License-Identifier: Apache-2.0
#include <climits>

#include "serialization/checked.h"
#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::test {
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
}  // namespace pumice::test
