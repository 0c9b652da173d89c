// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

#include <gtest/gtest.h>

#include <vector>

namespace pumice::engine {
namespace {

constexpr SipKey kKey{0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull};

std::vector<uint8_t> counting(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}

TEST(SipHash, ThePapersExample) {  // Aumasson and Bernstein, appendix A
  EXPECT_EQ(SipHash(kKey).add(counting(15)).finish(), 0xa129ca6149be45e5ull);
}

TEST(SipHash, PartsAreOneText) {
  const std::vector<uint8_t> bytes = counting(45);
  const std::span all(bytes);
  const uint64_t whole = SipHash(kKey).add(all).finish();
  EXPECT_EQ(SipHash(kKey).add(all.first(16)).add(all.subspan(16)).finish(), whole);
  EXPECT_NE(SipHash({1, 2}).add(all).finish(), whole);
  EXPECT_NE(SipHash(kKey).add(all.first(44)).finish(), whole);
}

}  // namespace
}  // namespace pumice::engine
