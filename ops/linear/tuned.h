// SPDX-License-Identifier: Apache-2.0
// Kernels of linear layers that were measured on the user's device (`pumice tune`), in place of the table of
// ops/linear/pick.cpp, which was measured on others.
#pragma once

#include "ops/linear/kernels.h"
#include "vulkan/tuned_kernels.h"

namespace pumice::engine {

// All that a product's choice depends on but its rows, as a case of the kernel bench: "op=linear_q4gsw,n=4096,k=4096,
// g=32,dtype=f16,scale=f16,storage=buffer". Products of floats have it by their weight, whichever operator they are of.
// "": no case stands for it, so that it cannot be tuned.
std::string product_text(const LinearShape& shape);
// Changes when one of these kernels or of their shaders does.
uint64_t linear_kernels_version();
// Whether a kernel may be kept for it on that device: it can run, and graphs have nodes for what it reads.
bool can_tune(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// The kernel that Features::tuned has for a shape, where it is known and can run; else null.
const LinearKernel* tuned_linear(const LinearShape& shape, const Features& features);

}  // namespace pumice::engine
