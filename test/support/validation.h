// SPDX-License-Identifier: Apache-2.0
// Every test of a program that links test/support/main.cpp fails when Vulkan's validation layer reports something about
// it.
#pragma once

#include <cstdint>

namespace pumice::engine::test {

// Messages of the layer while this lives are expected.
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
