// SPDX-License-Identifier: Apache-2.0
// The references of operators: every operator has one, each says what its definition says, and the comparison tells
// operators with the same arguments apart. No device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "glsl/include/core/modes.glslh"
#include "ops/shared/shape.h"
#include "tools/kernel_bench/call_data.h"
#include "tools/kernel_bench/check.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

using testing::ElementsAre;

// Operators that are compared with nothing, and why. An operator that is in no other way checked must be here.
const std::map<std::string_view, std::string_view> kWithoutReference = {};

std::vector<Case> cases_of(std::string_view op) {
  Options options;
  options.ops = {std::string(op)};
  options.full = true;
  return choose(options, Purpose::test, true);
}

std::vector<Expected> expected(const CaseData& data, size_t output = 0) {
  std::vector<uint64_t> indices(
      static_cast<size_t>(product(data.outputs()[output].shape, 0, data.outputs()[output].shape.size())));
  std::iota(indices.begin(), indices.end(), uint64_t{0});
  return data.expect(output, indices);
}

std::vector<double> values(const char* text, size_t output = 0) {
  const Case c = parse(text).at(0);
  std::vector<double> all;
  for (const Expected& each : expected(*bench_op(c.op).make(c, 1), output)) all.push_back(each.want);
  return all;
}

std::vector<HostReport> reports(const char* text) {
  const Case c = parse(text).at(0);
  return bench_op(c.op).make(c, 1)->reports();
}

// The answers as a device would write them.
Bytes encoded(std::span<const Expected> answers, DType dtype) {
  Bytes bytes(answers.size() * device_bytes(dtype));
  for (size_t i = 0; i < answers.size(); ++i) {
    const double y = answers[i].want;
    std::byte* at = bytes.data() + i * device_bytes(dtype);
    const auto real = static_cast<float>(y);
    const uint16_t half = half_bits(real);
    const auto whole = std::abs(y) < 0x1p62 ? static_cast<int32_t>(static_cast<int64_t>(y)) : 0;  // of integers
    if (dtype == DType::f32)
      std::memcpy(at, &real, 4);
    else if (dtype == DType::f16)
      std::memcpy(at, &half, 2);
    else
      std::memcpy(at, &whole, device_bytes(dtype));
  }
  return bytes;
}

TEST(Reference, EveryOperatorHasOne) {
  for (const Op& op : op_table()) {
    const OpCases& cases = op.cases;
    const bool is_checked = cases.reference != nullptr || cases.linear != nullptr || cases.conv != nullptr;
    EXPECT_NE(is_checked, kWithoutReference.contains(op.signature.name))
        << op.signature.name << ": give its row a reference (ops/reference/), or a reason in kWithoutReference";
  }
}

// Of every output of every case, and its own answer is right.
TEST(Reference, GivesEveryOutput) {
  for (const BenchOp& op : bench_ops()) {
    if (!op.is_call()) continue;
    for (const Case& c : cases_of(op.op)) {
      const auto data = op.make(c, 1);
      ASSERT_TRUE(data->has_reference()) << op.op;
      for (size_t i = 0; i < data->outputs().size() && data->reports().empty(); ++i) {
        const std::vector<Expected> all = expected(*data, i);
        const Checked checked = ExpectedOutput(*data, i, {}, 1).compare(encoded(all, data->outputs()[i].dtype), 1, {});
        EXPECT_EQ(checked.checked, all.size());
        EXPECT_FALSE(checked.first) << text(c) << " at " << checked.first->where << ": " << checked.first->got << ", "
                                    << checked.first->want;
      }
    }
  }
}

// A bound that is wide lets a wrong formula pass: of floats it is below 2^-9 of the largest result, beside one
// rounding; of bytes one step.
TEST(Reference, BoundsAreNarrow) {
  for (const BenchOp& op : bench_ops()) {
    if (!op.is_call()) continue;
    for (const Case& c : cases_of(op.op)) {
      const auto data = op.make(c, 1);
      for (size_t i = 0; i < data->outputs().size(); ++i) {
        const bool floats = is_float(data->outputs()[i].dtype);
        double largest = 0, slack = 0;
        for (const Expected& each : expected(*data, i)) {
          if (!std::isfinite(each.want)) continue;
          largest = std::max(largest, std::fabs(each.want));
          slack = std::max(slack, each.slack);
        }
        const bool may_be_next = op.op == "div_trunc";  // of floats: a quotient next to a whole number
        const double narrow = op.op == "elementwise_chain" ? 0x1p-6 : 0x1p-9;  // each of its eight steps rounds
        EXPECT_LE(slack, floats && !may_be_next ? narrow * largest : 1) << text(c);
      }
    }
  }
}

// Whether some case of `op` fails when the answers are those of `other`.
bool told_apart(const BenchOp& op, const BenchOp& other) {
  for (const Case& c : cases_of(op.op)) {
    Case changed = c;
    changed.op = std::string(other.op);
    const auto right = op.make(c, 1), wrong = other.make(changed, 1);
    if (right->reports().size() != wrong->reports().size()) return true;
    if (!right->reports().empty()) continue;
    const DType dtype = right->outputs()[0].dtype;
    if (ExpectedOutput(*right, 0, {}, 1).compare(encoded(expected(*wrong), dtype), 1, {}).first) return true;
  }
  return false;
}

// An operator whose kernel computes another operator's formula fails its cases: all pairs with the same arguments, but
// for those whose outputs have other shapes.
TEST(Reference, AnotherFormulaIsFound) {
  const std::set<std::string_view> other_shapes = {"permute", "flip", "expand", "view", "index_select", "gather"};
  size_t pairs = 0;
  for (const BenchOp& op : bench_ops()) {
    for (const BenchOp& other : bench_ops()) {
      if (op.op == other.op || !op.is_call() || op.row->signature.params != other.row->signature.params) continue;
      if (other_shapes.contains(op.op) || other_shapes.contains(other.op)) continue;
      // One formula for weights of two dtypes; of a bool the integer parts of these are 1 and 0, too.
      const std::set<std::string_view> inverts = {"cos", "acos", "erfc"};
      if (op.op.starts_with("embedding_q") || (op.op == "logical_not" && inverts.contains(other.op))) continue;
      // Of floats there is no bitwise operator.
      const bool ints = op.op.starts_with("bitwise") || other.op.starts_with("bitwise");
      if (ints && !(op.op.starts_with("bitwise") && other.op.starts_with("bitwise"))) continue;
      ++pairs;
      EXPECT_TRUE(told_apart(op, other)) << op.op << " may be computed as " << other.op;
    }
  }
  EXPECT_GT(pairs, 900u);
}

// Against numbers worked out by hand.
TEST(Reference, Moves) {
  EXPECT_THAT(values("op=permute T=f32 x=T[2,2]{1..1} dims=[1,0]"), ElementsAre(1, 1, 1, 1));
  const std::vector<double> x = values("op=view x=i32[2,3] shape=[2,3]");
  EXPECT_THAT(values("op=permute x=i32[2,3] dims=[1,0] -> i32[3,2]"), ElementsAre(x[0], x[3], x[1], x[4], x[2], x[5]));
  EXPECT_THAT(values("op=flip x=i32[2,3] dims=[-1]"), ElementsAre(x[2], x[1], x[0], x[5], x[4], x[3]));
  EXPECT_THAT(values("op=slice x=i32[2,3] dim=1 start=-2 end=9 step=2 -> i32[2,1]"), ElementsAre(x[1], x[4]));
  EXPECT_THAT(values("op=select x=i32[2,3] dim=0 index=-1 -> i32[3]"), ElementsAre(x[3], x[4], x[5]));
  EXPECT_THAT(values("op=pad x=i32[2,3] pads=[-1,1] value=9 -> i32[2,3]"), ElementsAre(x[1], x[2], 9, x[4], x[5], 9));
  EXPECT_THAT(values("op=triu x=i32[2,3] diagonal=1"), ElementsAre(0, x[1], x[2], 0, 0, x[5]));
  EXPECT_THAT(values("op=tril x=i32[2,3] diagonal=-1"), ElementsAre(0, 0, 0, x[3], 0, 0));
  EXPECT_THAT(values("op=arange start=5 step=-2 count=3 -> i64[3]"), ElementsAre(5, 3, 1));
}

TEST(Reference, Reductions) {
  EXPECT_THAT(values("op=sum x=i32[2,3]{4..4} dims=[1] keepdim=0 -> i64[2]"), ElementsAre(12, 12));
  EXPECT_THAT(values("op=prod x=i32[2,3]{4..4} dims=[1] keepdim=0 -> i32[2]"), ElementsAre(64, 64));
  EXPECT_THAT(values("op=norm T=f32 x=T[4]{3..3} dims=[] keepdim=0 -> T[]"), ElementsAre(6));
  EXPECT_THAT(values("op=var T=f32 x=T[4]{3..3} dims=[] keepdim=0 correction=1 -> T[]"), ElementsAre(0));
  EXPECT_THAT(values("op=argmax T=f32 x=T[4]{3..3} dims=[] keepdim=0 -> i64[]"), ElementsAre(0)) << "the first";
  EXPECT_THAT(values("op=argmax x=f32[5]{0,4,9} dims=[] keepdim=0 -> i64[]"), ElementsAre(2)) << "numbers in turn";
  EXPECT_THAT(values("op=argmin T=f32 x=T[9]{special} dims=[0] keepdim=0 -> i64[]"), ElementsAre(0)) << "the NaN";
  EXPECT_THAT(values("op=cumsum x=i64[4]{3..3} dim=0"), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(values("op=rms_norm T=f32 x=T[2]{3..3} count=1 eps=7"), ElementsAre(0.75, 0.75));
  EXPECT_THAT(values("op=layer_norm T=f32 x=T[2]{3..3} count=1 bias=T[2]{5..5} eps=1"), ElementsAre(5, 5));
}

// Of one row of logits 1, 5, 5, after a text of "1".
std::vector<double> drawn(const std::string& options, const std::string& counts) {
  const std::string text =
      "op=sample_token logits=f32[1,3]{1,5,5} options=f32[1,4]{" + options + "} counts=i32[1,4]{" + counts +
      "} text=i64[1,2]{1,9} made=i64[1,1] token=i64[1,1] position=i64[1]{0..0} step=i64[1]{0..0} -> "
      "i64[1,1] i64[1,1] i64[1] i64[1]";
  return values(text.c_str());
}

TEST(Reference, SampleToken) {
  EXPECT_THAT(drawn("0,1,0,1", "0,0,1,0"), ElementsAre(1)) << "the first of the largest";
  EXPECT_THAT(drawn("0,1,0,2", "0,8,1,0"), ElementsAre(2)) << "1 is repeated";
  EXPECT_THAT(drawn("1,1,0,2", "1,8,1,0"), ElementsAre(2)) << "and top_k leaves one";
  EXPECT_THAT(drawn("9,0.4,0,1", "0,0,1,0"), ElementsAre(1)) << "top_p leaves one";
  EXPECT_THAT(drawn("0.01,1,0,0.5", "0,8,1,0"), ElementsAre(1)) << "twice as large, nearly always";
}

TEST(Reference, Products) {
  EXPECT_THAT(values("op=matmul T=f32 a=T[1,3]{2..2} b=T[3,1]{-5..-5} bias=T[1]{7..7} a_perm=[] b_perm=[] act=1 -> "
                     "T[1,1]"),
              ElementsAre(0));
  // Equal scores: the mean of the values that are seen, here one row of ones for each of two keys.
  const char* sdpa =
      "op=sdpa T=f32 q=T[1,1,2,4] k=T[1,1,2,4]{1..1} v=T[1,1,2,1]{3..3} causal=1 scale=0.5 q_blhd=0 k_blhd=0 v_blhd=0 "
      "out_blhd=0 -> T[1,1,2,1]";
  EXPECT_THAT(values(sdpa), ElementsAre(3, 3));
}

TEST(Reference, Divisions) {
  EXPECT_THAT(values("op=remainder a=i32[1]{-7..-7} b=3"), ElementsAre(2));
  EXPECT_THAT(values("op=fmod a=i32[1]{-7..-7} b=3"), ElementsAre(-1));
  EXPECT_THAT(values("op=div_floor a=i32[1]{-7..-7} b=3"), ElementsAre(-3));
  EXPECT_THAT(values("op=div_trunc a=i32[1]{-7..-7} b=3"), ElementsAre(-2));
  EXPECT_THAT(values("op=remainder T=f32 a=T[1]{7..7} b=-3"), ElementsAre(-2));
  EXPECT_THAT(values("op=div_floor T=f32 a=T[1]{7..7} b=-3"), ElementsAre(-3));
}

TEST(Reference, Images) {
  EXPECT_THAT(values("op=avg_pool T=f32 x=T[2,2]{6..6} kernel=[2,2] stride=[2,2] pads=[1,1,0,0] dilation=[1,1] "
                     "ceil_mode=0 count_padding=1 -> T[1,1]"),
              ElementsAre(1.5));
  EXPECT_THAT(values("op=upsample2d T=f32 x=T[1,2]{4..4} size=[1,4] mode=1 -> T[1,4]"), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(values("op=q8ta_adaptive_avg_pool x=i8[1,2]{13..13} size=[1,1] x_scale=0.5 x_zero=3 out_scale=2 "
                     "out_zero=-1 qmin=-128 qmax=127 -> i8[1,1]"),
              ElementsAre(1))
      << "5 / 2 rounds to 2";
}

TEST(Reference, Quantization) {
  const char* asymmetric =
      "op=choose_qparams x=f32[1,2]{510..510} block=[1,-1] mapping=0 qmin=-128 qmax=127 eps=0.001 steps=0 -> f32[1,1] "
      "i32[1,1]";
  EXPECT_THAT(values(asymmetric), ElementsAre(2));
  EXPECT_THAT(values(asymmetric, 1), ElementsAre(-128));
  EXPECT_THAT(values("op=dequantize x=i8[1]{13..13} scale=0.5 zero=3 block=[-1] steps=0 integers=0 -> f32[1]"),
              ElementsAre(5));
  EXPECT_THAT(values("op=q8ta_mul a=i8[1]{13..13} b=i8[1]{7..7} a_scale=0.5 a_zero=3 b_scale=0.5 b_zero=3 act=0 "
                     "out_scale=4 out_zero=10 qmin=-128 qmax=127"),
              ElementsAre(12))
      << "10 / 4 rounds to 2";
}

TEST(Reference, WhatMustBeReported) {
  const auto limits = [](const char* text) {
    std::vector<int32_t> all;
    for (const HostReport& each : reports(text)) all.push_back(each.limit);
    return all;
  };
  EXPECT_THAT(limits("op=gather x=i32[3] index=i64[2]{-3..2} dim=0 -> i32[2]"), ElementsAre());
  EXPECT_THAT(limits("op=gather x=i32[3] index=i64[2]{3..3} dim=0 -> i32[2]"), ElementsAre(3, 3));
  EXPECT_THAT(limits("op=embedding weight=const:f32[3,2] index=i64[1]{-1..-1} -> f32[1,2]"), ElementsAre(3));
  EXPECT_THAT(limits("op=add a=i64[1]{2147483647..2147483647} b=1 alpha=1"), ElementsAre(STATUS_LEAVES_32_BITS));
  EXPECT_THAT(limits("op=add a=i32[1]{2147483647..2147483647} b=1 alpha=1"), ElementsAre());
  EXPECT_THAT(values("op=add a=i32[1]{2147483647..2147483647} b=1 alpha=1"), ElementsAre(-2147483648.0));
  EXPECT_THAT(limits("op=fmod a=u8[1] b=0"), ElementsAre(STATUS_DIVIDES_BY_ZERO));
  EXPECT_THAT(limits("op=sample_token logits=f32[1,3] options=f32[1,4]{-1,1,0,1} counts=i32[1,4]{0,-1,0,0} "
                     "text=i64[1,1] made=i64[1,1] token=i64[1,1] position=i64[1]{0..0} step=i64[1]{0..0} -> "
                     "i64[1,1] i64[1,1] i64[1] i64[1]"),
              ElementsAre(STATUS_BAD_OPTION, STATUS_BAD_OPTION));
  EXPECT_THAT(limits("op=sum x=i64[2]{2000000000..2000000000} dims=[] keepdim=0 -> i64[]"),
              ElementsAre(STATUS_LEAVES_32_BITS));
  EXPECT_THAT(limits("op=cast x=f32[1]{3000000000..3000000000} dtype=i64 -> i64[1]"),
              ElementsAre(STATUS_LEAVES_32_BITS));
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
