// SPDX-License-Identifier: Apache-2.0
// What graphs of a program need to know of the bytes of its constants. Each fact is computed once and kept, so that a
// graph built after the load needs no bytes.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/thread_pool.h"
#include "graph/graph.h"
#include "serialization/constants.h"

namespace pumice::engine {

class ConstantFacts {
 public:
  // Up to `threads` threads share the bytes of a constant. What they find does not depend on how many there are.
  explicit ConstantFacts(size_t threads = 16) : threads_(threads) {}

  // The bytes of external constants, while the program is loaded. Without it their facts are unknown.
  ExternalData external;

  // As the functions of Graph, for constant `index`; half_exponents is for f16, bad_scale for f16 and f32.
  // Several threads may ask.
  bool is_zero(const Program& program, uint32_t index);
  std::optional<Graph::Exponents> half_exponents(const Program& program, uint32_t index);
  std::optional<Graph::Scale> bad_scale(const Program& program, uint32_t index, DType dtype);

  // The program is loaded: the bytes go, and threads end.
  void loaded() {
    const std::lock_guard lock(mutex_);
    external = {};
    pool_.reset();
  }

 private:
  bool has_bytes(const Program& program, uint32_t index) const;
  // work(first, count) for pieces of `bytes` bytes, each but the last a multiple of 4.
  void over_pieces(size_t bytes, const std::function<void(size_t first, size_t count)>& work);

  const size_t threads_;
  std::mutex mutex_;                  // of what follows
  std::unique_ptr<ThreadPool> pool_;  // made for the first constant of several pieces
  std::map<uint32_t, bool> zeros_;
  std::map<uint32_t, std::optional<Graph::Exponents>> exponents_;
  std::map<uint32_t, std::optional<Graph::Scale>> scales_;
};

}  // namespace pumice::engine
