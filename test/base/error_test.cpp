// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

namespace pumice::engine {
namespace {

TEST(Error, CarriesCodeStagePathAndText) {
  try {
    fail(Code::BadShape, Stage::semantics, "values[3].dims[1]", "got %d, limit %s", 9, "eight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadShape);
    EXPECT_EQ(error.stage(), Stage::semantics);
    EXPECT_EQ(error.path(), "values[3].dims[1]");
    EXPECT_STREQ(error.what(), "got 9, limit eight");
  }
}

TEST(Error, EveryCodeAndStageHasAName) {
  for (const uint32_t code :
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 35, 64, 65, 66, 67, 68, 96}) {
    EXPECT_STRNE(name(static_cast<Code>(code)), "Unknown") << code;
  }
  EXPECT_STREQ(name(static_cast<Code>(999)), "Unknown");
  for (uint8_t stage = 0; stage <= static_cast<uint8_t>(Stage::api); stage++) {
    EXPECT_STRNE(name(static_cast<Stage>(stage)), "unknown");
  }
}

TEST(Error, FormatHoldsTextOfAnyLength) {
  EXPECT_EQ(format("%s", std::string(5000, 'x').c_str()).size(), 5000u);
  EXPECT_EQ(format("%%n %d", 1), "%n 1");
  EXPECT_EQ(format("%s", ""), "");
}

TEST(Error, CheckThrowsBadGraph) {
  check(true, "never");
  try {
    check(1 > 2, "softmax: dim %d is outside of rank %u", 5, 2u);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadGraph);
    EXPECT_STREQ(error.what(), "softmax: dim 5 is outside of rank 2");
  }
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("\x1b[31m\n"), "\\x1b[31m\\x0a");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("caf\xc3\xa9 \\"), "caf\\xc3\\xa9 \\\\");
}

TEST(Printable, IsCutAt256Bytes) {
  EXPECT_EQ(printable(std::string(256, 'a')), std::string(256, 'a'));
  EXPECT_EQ(printable(std::string(257, 'a')), std::string(253, 'a') + "...");
  const std::string escaped = printable(std::string(1000, '\x01'));
  EXPECT_LE(escaped.size(), 256u);
  EXPECT_EQ(escaped.substr(escaped.size() - 7), "\\x01...");  // an escape is never cut in half
}

}  // namespace
}  // namespace pumice::engine
