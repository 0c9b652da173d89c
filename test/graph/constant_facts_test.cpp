// SPDX-License-Identifier: Apache-2.0
// What is known of the bytes of constants is the same however many threads look at them.
#include "graph/constant_facts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace pumice::engine::test {
namespace {

// Of one constant with these words.
template <class Word>
struct OneConstant {
  explicit OneConstant(const std::vector<Word>& words) : bytes(words.size() * sizeof(Word)) {
    if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
    program.data = bytes;
    Constant constant{};
    constant.key = "scale";
    constant.size = bytes.size();
    program.constants.push_back(constant);
  }
  std::vector<std::byte> bytes;
  Program program;
};

template <class Word>
std::vector<Word> scales(size_t count) {
  std::mt19937 random(7);
  std::vector<Word> words(count);
  for (Word& each : words)
    each = static_cast<Word>(sizeof(Word) == 2 ? 0x1400 + random() % 0x1000 : 0x38000000 + random() % 0x01000000);
  return words;
}

template <class Word>
void bad_scale_is_the_first(DType dtype, Word infinity) {
  constexpr size_t kMinusZero = size_t{1} << (8 * sizeof(Word) - 1);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{131'072}, size_t{131'073}, size_t{2'000'003}}) {
    std::mt19937 random(static_cast<uint32_t>(count));
    for (uint32_t bad = 0; bad < 6; ++bad) {
      std::vector<Word> words = scales<Word>(count);
      if (count != 0) words[count / 2] = static_cast<Word>(kMinusZero);  // no bad one
      size_t first = count;
      for (uint32_t i = 0; i < bad && count != 0; ++i) {
        const size_t at = i == 0 ? count - 1 : random() % count;
        words[at] = static_cast<Word>(infinity + i);
        first = std::min(first, at);
      }
      const OneConstant<Word> constant(words);
      for (const size_t threads : {1, 2, 7, 16}) {
        const auto found = ConstantFacts(threads).bad_scale(constant.program, 0, dtype);
        ASSERT_EQ(found.has_value(), first != count) << count << " scales, " << bad << " bad, " << threads;
        if (!found) continue;
        ASSERT_EQ(found->index, first) << count << " scales, " << bad << " bad, " << threads;
        ASSERT_EQ(found->bits, words[first]);
      }
    }
  }
}

TEST(ConstantFacts, TheFirstBadScaleIsFound) {
  bad_scale_is_the_first<uint16_t>(DType::f16, 0x7c00);
  bad_scale_is_the_first<uint32_t>(DType::f32, 0x7f800000);
}

// Threads find theirs at about the same time.
TEST(ConstantFacts, TheFirstOfManyBadScalesIsFound) {
  std::vector<uint16_t> words = scales<uint16_t>(1'000'000);
  for (size_t at = 100'000; at < words.size(); at += 1000) words[at] = 0x7c00;
  const OneConstant<uint16_t> constant(words);
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(ConstantFacts(16).bad_scale(constant.program, 0, DType::f16)->index, 100'000u);
}

TEST(ConstantFacts, ExponentsAreThoseOfAllElements) {
  for (const size_t at : {size_t{0}, size_t{700'000}, size_t{1'999'999}}) {
    std::vector<uint16_t> words = scales<uint16_t>(2'000'000);
    words[at] = 0x7bff;                                            // the largest number
    words[words.size() - 1 - at] = static_cast<uint16_t>(0x8400);  // -2^-14
    const OneConstant<uint16_t> constant(words);
    for (const size_t threads : {1, 2, 16}) {
      const auto found = ConstantFacts(threads).half_exponents(constant.program, 0);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->low, -14);
      EXPECT_EQ(found->high, 15);
    }
    words[at] = 1;  // subnormal
    EXPECT_FALSE(ConstantFacts(16).half_exponents(OneConstant<uint16_t>(words).program, 0));
  }
}

TEST(ConstantFacts, OneBitIsNotZero) {
  for (const size_t count : {size_t{0}, size_t{3}, size_t{262'145}, size_t{3'000'001}}) {
    std::vector<uint8_t> bytes(count, 0);
    for (const size_t threads : {1, 2, 16})
      EXPECT_TRUE(ConstantFacts(threads).is_zero(OneConstant<uint8_t>(bytes).program, 0));
    for (const size_t at : {size_t{0}, count / 2, count - 1}) {
      if (count == 0) continue;
      bytes[at] = 0x80;
      const OneConstant<uint8_t> constant(bytes);
      for (const size_t threads : {1, 2, 16}) EXPECT_FALSE(ConstantFacts(threads).is_zero(constant.program, 0)) << at;
      bytes[at] = 0;
    }
  }
}

// After the load nothing needs the bytes, nor a thread.
TEST(ConstantFacts, FactsAreKeptWhenTheProgramIsLoaded) {
  std::vector<uint16_t> words = scales<uint16_t>(1'000'000);
  words[900'000] = 0x7e00;
  OneConstant<uint16_t> constant(words);
  ConstantFacts facts;
  ASSERT_EQ(facts.bad_scale(constant.program, 0, DType::f16)->index, 900'000u);
  facts.loaded();
  constant.program.data = {};
  EXPECT_EQ(facts.bad_scale(constant.program, 0, DType::f16)->index, 900'000u);
}

}  // namespace
}  // namespace pumice::engine::test
