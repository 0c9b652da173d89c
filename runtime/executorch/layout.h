// SPDX-License-Identifier: Apache-2.0
// Tensors of ExecuTorch whose dimensions are in another order in memory (channels_last); Pumice takes the usual order.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <cstddef>

namespace pumice::et {

bool has_usual_order(const executorch::aten::Tensor& tensor);

// The tensor's elements in the usual order, to or from `bytes` of tensor.nbytes().
void copy_out(const executorch::aten::Tensor& tensor, std::byte* bytes);
void copy_in(const std::byte* bytes, executorch::aten::Tensor& tensor);

}  // namespace pumice::et
