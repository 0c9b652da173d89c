// SPDX-License-Identifier: Apache-2.0
#include "pumice/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using pumice::Half;

TEST(Half, EveryNumberGoesToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(half);
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      continue;
    }
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const float fraction = static_cast<float>(bits & 0x3ff);
    float want = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) want = std::numeric_limits<float>::infinity();
    EXPECT_EQ(value, bits & 0x8000 ? -want : want) << bits;
    EXPECT_EQ(Half(value).bits, bits);
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    Half low, high;
    low.bits = static_cast<uint16_t>(bits);
    high.bits = static_cast<uint16_t>(bits + 1);
    const float a = static_cast<float>(low), b = static_cast<float>(high), middle = (a + b) / 2;  // exact in fp32
    EXPECT_EQ(Half(middle).bits, bits % 2 ? bits + 1 : bits);
    EXPECT_EQ(Half(std::nextafter(middle, a)).bits, bits);
    EXPECT_EQ(Half(std::nextafter(middle, b)).bits, bits + 1);
    EXPECT_EQ(Half(-middle).bits, 0x8000 | (bits % 2 ? bits + 1 : bits));
  }
  EXPECT_EQ(Half(65519.99f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()).bits, 0);
}

}  // namespace
