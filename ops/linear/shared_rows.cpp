// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/shared_rows.h"

#include <string_view>

#include "base/divide.h"

namespace pumice::engine {

// Where workgroups that share rows of x among their columns are as many as multiprocessors, or a little fewer: so many
// run at once, and each reads its rows of the weight once for 16 rows of x. H200, us of the others and of
// (split_)gemvf16x6, (split_)gemvf16x8 and (split_)gemvf16x12:
//   fp32 weights, 197 x 384 -> 1152    9.0       8.3  9.2
//                 197 x 384 -> 1536   10.0      13.1  9.4
//     with the layer norm of x inside 11.2      10.0             to 1152, in ViT-small
//                                     14.6           11.2        to 1536
//   int4, fp32,   128 x 384 -> 1152    8.6  6.3  6.5  7.4
//                 128 x 384 -> 1536    7.8  6.4  6.6  7.5
//   fp16, with the layer norm inside   8.0  8.3   7.3            197 x 384 -> 1152, in ViT-small
//                                      8.8      11.1  8.2        197 x 384 -> 1536
// int4 in fp16 with norms, MiniLM at 1 x 128: 0.200 ms, 0.199 by gemvf16x6 and gemvf16x8, so not picked.
static constexpr int64_t kLeastSharedColumns = 256;  // of x: fewer were not measured

const LinearKernel* pick_shared_rows(bool split, const LinearShape& s, const Features& features) {
  if (s.k < kLeastSharedColumns) return nullptr;
  for (const std::string_view name : {"split_gemvf16x6", "split_gemvf16x8", "split_gemvf16x12"}) {
    const LinearKernel& kernel = linear_kernel(name.substr(split ? 0 : std::string_view("split_").size()));
    const int64_t groups = ceil_div(s.m, kernel.rows) * ceil_div(s.n, int64_t{16} * kernel.panels);
    const bool fills = groups <= features.units() && groups >= features.filling(92);
    if (fills && unsupported_reason(kernel, s, features).empty()) return &kernel;
  }
  return nullptr;
}

}  // namespace pumice::engine
