// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/epilogue.h"

#include <cinttypes>

#include "glsl/include/math/activation.glslh"
#include "ops/shared/shape.h"

namespace pumice::engine {

uint32_t activation(int64_t act, const char* op) {
  check(act >= 0 && act <= ACT_LAST, "%s: activation %" PRId64 " is not in 0..%u", op, act, ACT_LAST);
  return static_cast<uint32_t>(act);
}

void check_epilogue(const char* op, DType dtype, const Epilogue& epilogue) {
  activation(epilogue.act, op);
  if (epilogue.bias)
    check(epilogue.bias.dtype() == dtype && epilogue.bias.rank() == 1, "%s: the bias must be %s of rank 1", op,
          name(dtype));
  if (epilogue.residual)
    check(epilogue.residual.dtype() == dtype, "%s: the residual is %s, not %s", op, name(epilogue.residual.dtype()),
          name(dtype));
}

Shape linear_shape(const char* op, const Shape& x, const PackedWeight& weight, const Epilogue& epilogue) {
  Shape shape = x;
  check(shape.back() == weight.k, "%s: x has %" PRId64 " columns, the weight %u", op, shape.back(), weight.k);
  if (epilogue.bias)
    check(epilogue.bias.dim(0) == weight.n, "%s: the bias has %" PRId64 " elements, the weight %u rows", op,
          epilogue.bias.dim(0), weight.n);
  shape.back() = weight.n;
  if (epilogue.residual)
    check(epilogue.residual.shape() == shape, "%s: the residual has another shape than the output", op);
  u32(product(shape, 0, shape.size()));
  return shape;
}

}  // namespace pumice::engine
