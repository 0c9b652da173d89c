// SPDX-License-Identifier: Apache-2.0
// Every test of a program that links test/support/main.cpp fails when Vulkan's validation layer says something about
// it.
#pragma once

#include <cstdint>

namespace pumice::engine::test {

// What the layer says while this lives was provoked on purpose.
struct Provoked {
  Provoked();
  ~Provoked();
  Provoked(const Provoked&) = delete;
  Provoked& operator=(const Provoked&) = delete;
  uint64_t count() const;  // messages so far

 private:
  uint64_t before_;
};

}  // namespace pumice::engine::test
