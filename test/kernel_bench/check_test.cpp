// SPDX-License-Identifier: Apache-2.0
// The comparison in kernel_bench: a right result passes; a result with one element slightly outside of its bound fails.
// Without a device: results are made on the host.
#include "tools/kernel_bench/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/shared/shape.h"
#include "tools/kernel_bench/call_data.h"

namespace pumice::engine::kernel_bench {
namespace {

std::unique_ptr<CaseData> make(const std::string& text) {
  const Case c = parse(text)[0];
  return bench_op(c.op).make(c, 1);
}

std::vector<Expected> all(const CaseData& case_data) {
  std::vector<uint64_t> indices(static_cast<size_t>(case_data.shape().outputs()));
  std::iota(indices.begin(), indices.end(), uint64_t{0});
  return case_data.expect(0, indices);
}

// The exact answer, rounded to the output's type.
Bytes rounded(const CaseData& case_data) {
  const std::vector<Expected> expected = all(case_data);
  const bool half = case_data.outputs()[0].dtype == DType::f16;
  Bytes bytes(expected.size() * (half ? 2 : 4));
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<float>(expected[i].want);
    const uint16_t bits = half_bits(value);
    std::memcpy(&bytes[i * (half ? 2 : 4)], half ? static_cast<const void*>(&bits) : &value, half ? 2 : 4);
  }
  return bytes;
}

const Bound kBound = {{.fixed = 26}};

TEST(Check, TheRoundedAnswerIsRight) {
  for (const char* text : {"m=5,n=7,k=96,bias=1", "m=5,n=7,k=96,dtype=f16,zero=random", "m=4,n=6,k=95,g=0,act=gelu",
                           "op=linear,m=3,n=5,k=33,dtype=f16", "op=linear_q8csw,m=4,n=9,k=40,values=special",
                           "m=3,n=5,k=64,values=huge,zero=random", "m=3,n=5,k=64,values=equal,zero=random",
                           "op=conv2d,b=2,c=6,o=4,h=5,w=7,g=2,bias=1,act=hardswish",
                           "op=conv2d_q8csw,c=3,o=5,h=6,w=5,k=2,s=2,p=0,dtype=f16,values=special"}) {
    const auto case_data = make(text);
    const ExpectedOutput expected_output(*case_data, 0, {}, 1);
    EXPECT_FALSE(expected_output.sampled());
    const Checked checked = expected_output.compare(rounded(*case_data), case_data->shape().m, kBound);
    EXPECT_FALSE(checked.first) << text << ": got " << checked.first->got << ", want " << checked.first->want;
    EXPECT_EQ(checked.checked, static_cast<uint64_t>(case_data->shape().outputs())) << text;
    EXPECT_LE(checked.worst, 1);
  }
}

TEST(Check, OneElementALittleOffIsFound) {
  const auto case_data = make("m=5,n=7,k=96,bias=1");
  const ExpectedOutput expected_output(*case_data, 0, {}, 1);
  const std::vector<Expected> expected = all(*case_data);
  for (size_t i = 0; i < expected.size(); ++i) {
    Bytes bytes = rounded(*case_data);
    const double limit = allowed(expected[i], DType::f32, kBound);
    const auto inside = static_cast<float>(expected[i].want + 0.9 * limit);
    const auto outside = static_cast<float>(expected[i].want - 1.1 * limit);
    std::memcpy(&bytes[4 * i], &inside, 4);
    EXPECT_FALSE(expected_output.compare(bytes, 5, kBound).first) << i;
    std::memcpy(&bytes[4 * i], &outside, 4);
    const Checked checked = expected_output.compare(bytes, 5, kBound);
    ASSERT_TRUE(checked.first) << i;
    EXPECT_EQ(checked.wrong, 1u);
    EXPECT_EQ(checked.first->where, "[" + std::to_string(i / 7) + ", " + std::to_string(i % 7) + "]");
  }
}

// What any order of a sum may be off is allowed to kernels that have any, not to others.
TEST(Check, AnyOrderIsForKernelsThatHaveIt) {
  for (const char* text : {"op=scatter_add self=f32[2,3] index=i32[2,50]{0..2} src=f32[2,50] dim=1 include_self=1",
                           "op=index_add self=f32[2,3] index=i32[50]{0..1} values=f32[50,3] dim=0"}) {
    const auto case_data = make(text);
    const ExpectedOutput expected_output(*case_data, 0, {}, 1);
    const std::vector<uint64_t> indices = {0, 1, 2, 3, 4, 5};
    const std::vector<Expected> expected = case_data->expect(0, indices);
    Bytes bytes(4 * expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_GT(expected[i].in_any_order, 2 * expected[i].slack) << text;
      const auto off = static_cast<float>(expected[i].want + expected[i].in_any_order);
      std::memcpy(&bytes[4 * i], &off, 4);
    }
    EXPECT_TRUE(expected_output.compare(bytes, 1, {}).first) << text;
    EXPECT_FALSE(expected_output.compare(bytes, 1, {.any_order = true}).first) << text;
  }
}

TEST(Check, NaNAndInfinityMustBeWhereTheyBelong) {
  const auto case_data = make("m=4,n=3,k=64,values=special");
  const ExpectedOutput expected_output(*case_data, 0, {}, 1);
  const Bytes right = rounded(*case_data);
  EXPECT_TRUE(std::isnan(all(*case_data)[0].want));
  EXPECT_TRUE(std::isinf(all(*case_data)[3].want));
  EXPECT_TRUE(std::isfinite(all(*case_data)[9].want));
  for (const size_t at : {size_t{0}, size_t{3}, size_t{6}, size_t{9}}) {
    for (const float value : {1.0f, 3e38f, -3e38f}) {
      Bytes bytes = right;
      std::memcpy(&bytes[4 * at], &value, 4);
      EXPECT_TRUE(expected_output.compare(bytes, 4, kBound).first) << at << " " << value;
    }
  }
  Bytes bytes = right;
  const float nan = NAN;
  std::memcpy(&bytes[4 * 9], &nan, 4);
  EXPECT_TRUE(expected_output.compare(bytes, 4, kBound).first);
}

// A weight equal to its zero point adds nothing for every x, also for a huge one.
TEST(Check, ATermThatIsNothingHasNoBudget) {
  const auto case_data = make("m=2,n=4,k=64,values=huge,zero=random");
  for (const Expected& e : all(*case_data)) EXPECT_LT(e.size, 1e3);
}

TEST(Check, LargeProductsAreSampledWithTheirEdges) {
  const auto case_data = make("m=512,n=1000,k=256");
  const std::vector<int64_t> edges = {1, 33, 512};
  const ExpectedOutput expected_output(*case_data, 0, edges, 1);
  EXPECT_TRUE(expected_output.sampled());
  const Bytes nothing(static_cast<size_t>(512 * 1000) * 4);  // all zeros: wrong nearly everywhere
  for (const int64_t m : edges) {
    const Checked checked = expected_output.compare(nothing, m, kBound);
    EXPECT_GT(checked.checked, 20u) << m;
    EXPECT_GT(checked.wrong, checked.checked * 9 / 10) << m;
  }
}

// The fp64 references in operator files, compared with numbers computed by hand.
TEST(Check, ReferencesOfCalls) {
  const auto first = [](const char* text, size_t output = 0) {
    const auto case_data = make(text);
    const uint64_t index = 0;
    return case_data->expect(output, std::span(&index, 1)).at(0).want;
  };
  EXPECT_DOUBLE_EQ(first("op=softmax T=f32 x=T[1,4]{0.5..0.5} dim=1"), 0.25);
  EXPECT_DOUBLE_EQ(first("op=log_softmax T=f32 x=T[1,4]{0.5..0.5} dim=1"), std::log(0.25));
  EXPECT_DOUBLE_EQ(first("op=atan T=f16 x=T[1]{1..1}"), std::atan(1.0));
  EXPECT_DOUBLE_EQ(first("op=hardswish T=f16 x=T[1]{1..1}"), 4.0 / 6);
  EXPECT_EQ(first("op=quantize x=f32[1,1]{1..1} scale=f32[1]{0.25..0.25} zero=i8[1]{3..3} block=[1,-1] qmin=-128 "
                  "qmax=127 steps=0 round_last=0 -> i8[1,1]"),
            7);
}

// A convolution of ones counts the elements of the kernel inside of the image; an error names four indices.
TEST(Check, PatchesAreThoseOfTheDefinition) {
  const auto case_data = make("op=conv2d_q8ta_q8csw,b=2,c=1,o=1,h=4,w=4,s=2,values=high");
  const std::vector<Expected> expected = all(*case_data);
  ASSERT_EQ(expected.size(), 8u);
  EXPECT_NEAR(expected[1].want / expected[0].want, 6.0 / 4, 1e-9);
  EXPECT_NEAR(expected[3].want / expected[0].want, 9.0 / 4, 1e-9);
  const ExpectedOutput expected_output(*case_data, 0, {}, 1);
  Bytes bytes = rounded(*case_data);
  EXPECT_FALSE(expected_output.compare(bytes, 2, kBound).first);
  bytes[4 * 6 + 2] ^= std::byte{1};
  EXPECT_EQ(expected_output.compare(bytes, 2, kBound).first->where, "[1, 0, 1, 0]");
}

TEST(Check, EqualSeedsGiveEqualData) {
  const Case c = parse("m=3,n=5,k=64,zero=random,bias=1")[0];
  const auto a = bench_op(c.op).make(c, 7)->arguments(), b = bench_op(c.op).make(c, 7)->arguments(),
             d = bench_op(c.op).make(c, 8)->arguments();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].data.bytes, b[i].data.bytes) << a[i].name;
  EXPECT_NE(a[0].data.bytes, d[0].data.bytes);
  Case wide = c;
  wide.m = 9;  // rows of x do not depend on how many there are
  const Data x = bench_op(c.op).make(wide, 7)->arguments()[0].data;
  EXPECT_TRUE(std::equal(a[0].data.bytes.begin(), a[0].data.bytes.end(), x.bytes.begin()));
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
