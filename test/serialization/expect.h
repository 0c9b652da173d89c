// SPDX-License-Identifier: Apache-2.0
// Checks that code throws the expected error.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace pumice::engine::test {

// `body` throws an Error with this code; returns its path and text as "path: text" for further checks.
template <class Body>
std::string expect_error(Code code, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string text = error.path() + ": " + error.what();
    EXPECT_STREQ(name(error.code()), name(code)) << text;
    return text;
  }
  ADD_FAILURE() << "nothing was thrown, expected " << name(code);
  return "";
}

template <class Body>
void expect_error(Code code, const std::string& path, const std::string& part, Body&& body) {
  const std::string text = expect_error(code, body);
  EXPECT_EQ(text.substr(0, path.size() + 1), path + ":") << text;
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace pumice::engine::test
