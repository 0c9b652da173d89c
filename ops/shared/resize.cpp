// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/resize.h"

namespace pumice::engine {

Resize resize(const Args& args, const char* op) {
  Resize r{.op = op,
           .x = args.tensor(0),
           .out = args.out(),
           .size = args.sizes(1),
           .scale_h = args.has(2) ? args.real(2) : 0,
           .scale_w = args.has(3) ? args.real(3) : 0};
  check(r.x.rank() >= 2 && r.size.size() == 2, "%s: rank %u to %zu sizes", op, r.x.rank(), r.size.size());
  check(r.x.dtype() == r.out.dtype(), "%s: x is %s, the output %s", op, name(r.x.dtype()), name(r.out.dtype()));
  for (const double scale : {r.scale_h, r.scale_w}) {
    check(scale == 0 || (scale >= 0x1p-20 && scale <= 0x1p20), "%s: the scale %g", op, scale);
  }
  return r;
}

float resize_step(const Resize& resize, int64_t in, int64_t out, double scale) {
  if (in == out) return 1;
  if (resize.nearest && out == 2 * in) return 0.5F;
  if (resize.aligned) return out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0;
  return scale > 0 ? static_cast<float>(1.0 / scale) : static_cast<float>(in) / static_cast<float>(out);
}

}  // namespace pumice::engine
