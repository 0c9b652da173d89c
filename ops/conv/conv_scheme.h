// SPDX-License-Identifier: Apache-2.0
// What is quantized in a 2D convolution: the row of an operator of this family points at one, and the kernel bench
// makes its cases and their fp64 reference from it.
#pragma once

namespace pumice::engine {

struct ConvScheme {
  bool quantized;  // the weight is i8, a scale (and maybe a zero point) for each output channel
  bool x_bytes = false, out_bytes = false;
};

}  // namespace pumice::engine
