// SPDX-License-Identifier: Apache-2.0
// For tests of what must fail: the error a call throws.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace pumice::engine::test {

// Runs `call` and hands over the error it throws; none at all is a failure.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(Code::Ok, Stage::api, "", "");
}

}  // namespace pumice::engine::test
