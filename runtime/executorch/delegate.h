// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <cstddef>
#include <mutex>
#include <vector>

#include "pumice/pumice.h"
#include "runtime/executorch/options.h"

namespace pumice::et {

// One partition of a program: a model with one session of its own, since the session holds the partition's state.
class Delegate {
 public:
  Delegate() = default;
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;
  ~Delegate();

  // `weights`: the constants that are outside of the blob; null when there are none.
  executorch::runtime::Error load(const void* blob, size_t bytes, const Options& options,
                                  const executorch::runtime::NamedDataMap* weights);

  // `args`: the inputs in the order of the file, with integers for sizes among them (ignored), then the outputs.
  // `tracer`: gets every dispatch, or null. Threads wait for one another, from the first input to the last output.
  executorch::runtime::Error run(executorch::runtime::Span<executorch::runtime::EValue*> args,
                                 executorch::runtime::EventTracer* tracer);

 private:
  pumice_status run_session(executorch::runtime::EventTracer* tracer);
  const void* in_usual_order(const executorch::aten::Tensor& tensor, size_t index);
  executorch::runtime::Error read(uint32_t index, executorch::runtime::EValue& value);

  std::mutex running_;
  pumice_model model_{};
  pumice_session session_{};
  uint32_t num_inputs_ = 0;
  uint32_t num_outputs_ = 0;
  bool profile_ = true;
  std::vector<pumice_tensor> inputs_;              // of the call that runs
  std::vector<std::vector<std::byte>> reordered_;  // copies of its tensors whose dimensions are in another order
};

}  // namespace pumice::et
