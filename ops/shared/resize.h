// SPDX-License-Identifier: Apache-2.0
// Resizing of the last two dimensions: what the operators of floats and of integers share.
#pragma once

#include "ops/shared/args.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

struct Resize {
  const char* op;
  Tensor x, out;
  std::vector<SymInt> size;
  double scale_h, scale_w;  // output elements for each of the input; 0: the quotient of the sizes
  bool nearest = false, aligned = false;
};

// Arguments x, size, scale_h, scale_w.
Resize resize(const Args& args, const char* op);

// Input elements for each of the output, as PyTorch has them: equal sizes are copied, and the given scale is ignored.
float resize_step(const Resize& resize, int64_t in, int64_t out, double scale);

// Resizes the output for the live shapes; whether anything is left to compute, with the sizes in `params` then.
template <class Params>
bool put_sizes(Params& params, const Resize& r, Launch& launch) {
  Shape shape = r.x.shape();
  int64_t* size = &shape[shape.size() - 2];
  params.in_h = u32(size[0]);
  params.in_w = u32(size[1]);
  for (size_t axis = 0; axis < 2; ++axis) {
    size[axis] = launch.size(r.size[axis]);
    check(size[axis] >= 0, "%s: a negative size", r.op);
  }
  params.out_h = u32(size[0]);
  params.out_w = u32(size[1]);
  r.out.resize(shape);
  if (r.out.numel() == 0) return false;
  check(r.x.numel() != 0, "%s: an empty image", r.op);
  u32(r.x.numel());
  params.count = u32(r.out.numel());
  params.scale_h = resize_step(r, params.in_h, params.out_h, r.scale_h);
  params.scale_w = resize_step(r, params.in_w, params.out_w, r.scale_w);
  launch.over(vec4_groups(r.out));
  return true;
}

}  // namespace pumice::engine
