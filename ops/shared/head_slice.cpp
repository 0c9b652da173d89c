// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/head_slice.h"

#include <cinttypes>

namespace pumice::engine {

std::array<int64_t, 3> HeadSlice::strides() const {
  const int64_t all = heads + others;
  return {all * rows * size, blhd ? size : rows * size, blhd ? all * size : size};
}

int64_t HeadSlice::begin() const {
  return first * strides()[1];
}

int64_t HeadSlice::elements() const {
  return batch * strides()[0];
}

HeadSlice all_heads(const Tensor& t, bool blhd) {
  return {t.dim(0), t.dim(blhd ? 2 : 1), t.dim(blhd ? 1 : 2), t.dim(3), blhd};
}

HeadSlice some_heads(const Tensor& t, bool blhd, int64_t first, int64_t heads) {
  HeadSlice slice = all_heads(t, blhd);
  check(first >= 0 && heads >= 1 && heads <= slice.heads && first <= slice.heads - heads,
        "%" PRId64 " heads from number %" PRId64 " on, of a tensor of %" PRId64, heads, first, slice.heads);
  slice.first = first;
  slice.others = slice.heads - heads;
  slice.heads = heads;
  return slice;
}

}  // namespace pumice::engine
