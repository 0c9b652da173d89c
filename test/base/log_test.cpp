// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace pumice::engine {
namespace {

TEST(Log, TakesWhatReachesTheThreshold) {
  std::vector<std::string> texts;
  set_log([&](LogLevel level, const std::string& text) { texts.push_back(std::string(name(level)) + " " + text); },
          LogLevel::info);
  log(LogLevel::debug, "no");
  log(LogLevel::info, "%d of %s", 1, "two");
  log(LogLevel::error, "%s", std::string(5000, 'x').c_str());
  set_log({});
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0], "info 1 of two");
  EXPECT_EQ(texts[1].size(), 5006u);
}

TEST(Log, AThrowingOrReenteringFunctionIsHarmless) {  // R11
  set_log([](LogLevel, const std::string&) -> void { throw std::runtime_error("no"); });
  EXPECT_NO_THROW(log(LogLevel::error, "text"));
  int depth = 0;
  set_log([&](LogLevel, const std::string&) {
    if (++depth < 3) log(LogLevel::error, "again");
  });
  log(LogLevel::error, "text");
  set_log({});
  EXPECT_EQ(depth, 3);
}

TEST(Log, EnvironmentSetsTheThreshold) {
  setenv("PUMICE_LOG", "off", 1);
  set_log({});
  EXPECT_FALSE(log_enabled(LogLevel::error));
  setenv("PUMICE_LOG", "debug", 1);
  set_log({});
  EXPECT_TRUE(log_enabled(LogLevel::debug));
  unsetenv("PUMICE_LOG");
  set_log({});
  EXPECT_FALSE(log_enabled(LogLevel::info));
  EXPECT_TRUE(log_enabled(LogLevel::warning));
}

}  // namespace
}  // namespace pumice::engine
