// SPDX-License-Identifier: Apache-2.0
// Steps of quantization as eager PyTorch takes them, and references of the operators that are these steps. "Bit for
// bit" means each step rounded to fp32 or fp16 in the order of the operator's header comment.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

// clamp(round(real / scale) + zero, low, high): how a real number becomes a byte.
struct ToByte {
  double inverse, zero, low, high;
  // Arguments from `first` on: out_scale, out_zero, qmin, qmax.
  ToByte(const HostCall& call, size_t first);
  double operator()(double real) const;
  // Where `real` is off by `error`, the integers on both sides are right.
  HostResult within(double real, double error) const;
};

void quantize(HostCall& call);
void dequantize(HostCall& call);
void choose_qparams(HostCall& call);
void q8ta_add(HostCall& call);
void q8ta_mul(HostCall& call);

}  // namespace pumice::engine::reference
