// SPDX-License-Identifier: Apache-2.0
// What is quantized in a linear operator, and how: the row of an operator of this family points at one, and the kernel
// bench makes its cases and their fp64 reference from it.
#pragma once

#include "ops/linear/kernels.h"

namespace pumice::engine {

enum class ScalePer : uint8_t { none, row, group };

// How x becomes 8-bit integers: not at all, by parameters chosen for each row, by numbers; or x and the result are i8,
// with numbers, or with parameters given for each row.
enum class Rows : uint8_t { floats, chosen, numbers, bytes, given };

struct LinearScheme {
  WeightType weight;  // f32: as x
  ScalePer scales;
  Rows rows = Rows::floats;
};

}  // namespace pumice::engine
