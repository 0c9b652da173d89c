// SPDX-License-Identifier: Apache-2.0
// What an operator takes, from the axes of its row. That it runs: test/ops/test_closure.py.
#include "ops/shared/accepted.h"

#include <gtest/gtest.h>

namespace pumice::engine {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kWords[] = {"f32", "i32", "u8"}, kWide[] = {"i32", "i64", "boolean"},
                           kBits[] = {"b32", "b8"};
constexpr std::string_view kBoth[] = {"buffer", "texture3d"};
constexpr Axis kFromTo[] = {{"IN", kWords}, {"OUT", kWide}, {"STORAGE", kBoth}};
constexpr Axis kMoves[] = {{"BITS", kBits}}, kRows[] = {{"DTYPE", kWords}, {"X_STORAGE", kBoth}};

Accepted of(std::span<const Axis> axes, std::string_view never = {}) {
  return accepted({.signature = {"op", 1, "Tensor x -> Tensor"}, .build = nullptr, .variants = axes, .never = never});
}

TEST(Accepted, I64IsI32UnlessItIsListedAndBoolIsListed) {
  const Accepted found = of(kFromTo);
  EXPECT_EQ(found.at("tensors"), (Names{"f32", "i32", "i64", "u8"}));
  EXPECT_EQ(found.at("results"), (Names{"i32", "i64", "bool"}));
  EXPECT_EQ(found.at("storage"), (Names{"buffer", "texture3d"}));
  EXPECT_EQ(found.at("result_storage"), found.at("storage"));
}

TEST(Accepted, WhatItsFunctionDoesNotTakeIsNotAccepted) {
  EXPECT_EQ(of(kRows, "i64").at("tensors"), (Names{"f32", "i32", "u8"}));
}

TEST(Accepted, WhatIsMovedHasTheDtypeOfTheResult) {
  const Accepted found = of(kMoves);
  EXPECT_FALSE(found.contains("tensors"));
  EXPECT_EQ(found.at("results"), (Names{"f32", "i32", "i64", "u8", "bool", "i8"}));
  EXPECT_EQ(of({}).at("results").size(), 7u);
}

TEST(Accepted, OnlyTheFirstTensorIsATexture) {
  const Accepted found = of(kRows);
  EXPECT_EQ(found.at("storage"), (Names{"buffer", "texture3d"}));
  EXPECT_EQ(found.at("result_storage"), (Names{"buffer"}));
  EXPECT_FALSE(found.contains("weight_storage") || found.contains("scheme"));
}

}  // namespace
}  // namespace pumice::engine
