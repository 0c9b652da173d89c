// SPDX-License-Identifier: Apache-2.0
// Which of the kernels that multiply 8-bit integers computes a linear at which shape. Pure functions.
#pragma once

#include "ops/linear/kernels.h"

namespace pumice::engine {

// Null where none is better than the kernels for floats, which read the integers as whole numbers.
const LinearKernel* pick_integers(const LinearShape& shape, const Features& features);
// As pick_matrix_tail, of kernels that multiply matrices of integers.
const LinearKernel* pick_tail(const LinearKernel& kernel, const LinearShape& shape, const Features& features);

}  // namespace pumice::engine
