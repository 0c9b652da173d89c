// SPDX-License-Identifier: Apache-2.0
// The operands of operators of two, elementwise with broadcasting (glsl/include/core/broadcast.glslh).
#pragma once

#include <vector>

#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

// Both operands of a call. Where one is a number, the tensor of the other fills its binding, which is not read.
struct Operands {
  Tensor a, b;
  bool a_is_number = false, b_is_number = false;
  double number = 0;
  DType dtype;

  Operands(const Args& args, const char* op) {
    const Operand left = args.operand(0), right = args.operand(1);
    a_is_number = !left.tensor;
    b_is_number = !right.tensor;
    check(!(a_is_number && b_is_number), "%s: one operand must be a tensor", op);
    a = a_is_number ? right.tensor : left.tensor;
    b = b_is_number ? left.tensor : right.tensor;
    number = a_is_number ? left.number : right.number;
    dtype = a.dtype();
    check(dtype == b.dtype(), "%s: operands are %s and %s, one dtype is needed", op, name(dtype), name(b.dtype()));
  }

  // Resizes `out`, fills what Params of such shaders share.
  template <class Params>
  void launch(Launch& launch, Params& params, uint32_t code, Tensor out, const char* op) const {
    static const Shape kNumber;
    const Shape& a_shape = a_is_number ? kNumber : a.shape();
    const Shape& b_shape = b_is_number ? kNumber : b.shape();
    out.resize(broadcast_shape({&a_shape, &b_shape}, op));
    const Broadcast shape = broadcast(out.shape(), {&a_shape, &b_shape});
    put(params, shape, out);
    params.repeat_a = shape.repeat[0];
    params.repeat_b = shape.repeat[1];
    launch.over(vec4_groups(out));
    launch.outer = out.rank();
    launch.spec.insert(launch.spec.end(), {code, a_is_number ? BROADCAST_NUMBER : shape.mode[0],
                                           b_is_number ? BROADCAST_NUMBER : shape.mode[1]});
  }
};

}  // namespace pumice::engine
