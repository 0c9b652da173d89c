// SPDX-License-Identifier: Apache-2.0
// F09 and F10: flipped bits, with the old hashes and with hashes that were computed again.
#include <random>

#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

constexpr int kFlips = 10'000;

TEST(Flip, F09_IsNeverLoaded) {
  const Bytes good = file(sample());
  std::mt19937 random(9);
  for (int i = 0; i < kFlips; i++) {
    const size_t bit = random() % (good.size() * 8);
    Bytes bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      read_file(bad);
      FAIL() << "bit " << bit;
    } catch (const Error& error) {
      const bool magic = bit / 8 >= 4 && bit / 8 < 8;
      EXPECT_EQ(error.code(), magic ? Code::BadHeader : Code::ChecksumMismatch)
          << "bit " << bit << ": " << error.what();
    }
  }
}

// Whether the file loads. Any exception but Error fails the test.
bool loads(const Bytes& bytes) {
  try {
    read_file(bytes, false);
    return true;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::Internal) << error.path() << ": " << error.what();
    EXPECT_FALSE(error.path().empty()) << error.what();
    return false;
  }
}

TEST(Flip, F10_ResealedIsAnErrorOrALoad) {
  const Bytes good = file(sample());
  std::mt19937 random(10);
  int loaded = 0;
  for (int i = 0; i < kFlips; i++) {
    Bytes bad = good;
    for (uint32_t flips = 1 + random() % 3; flips > 0; flips--) {
      const size_t bit = random() % (good.size() * 8);
      bad[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    reseal(bad);
    loaded += loads(bad);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kFlips);
}

// Fields of the program with values where arithmetic may overflow.
TEST(Flip, F10_WordsAtTheirLimits) {
  const Bytes good = file(sample());
  const size_t end = 64 + get(good, 24, 8);
  for (size_t at = 64; at + 4 <= end; at += 4) {
    for (const uint64_t word :
         {uint64_t{0}, uint64_t{1}, uint64_t{0x7fffffff}, uint64_t{0x80000000}, uint64_t{0xffffffff}}) {
      Bytes bad = good;
      put(bad, at, word, 4);
      reseal(bad);
      loads(bad);
    }
  }
}

}  // namespace
}  // namespace pumice::engine::test
