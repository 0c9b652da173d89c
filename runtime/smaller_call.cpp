// SPDX-License-Identifier: Apache-2.0
#include "runtime/smaller_call.h"

#include <algorithm>
#include <initializer_list>

namespace pumice::engine {
namespace {

// A row or column of the output stands for `stride` of x; transposed, one of x for `stride` of the output.
void crop(const OneCall& call, Shape& x, Shape& out, int64_t most) {
  const bool transposed = call.integer("transposed") != 0;
  const size_t first = call.is_channels_last() ? 1 : 2;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t stride = call.arg("stride")->list.at(i);
    int64_t &fine = (transposed ? out : x).at(first + i), &coarse = (transposed ? x : out).at(first + i);
    const int64_t less = std::min(std::max<int64_t>(coarse - most, 0), (fine - 1) / stride);
    coarse -= less;
    fine -= less * stride;
  }
}

// Fewer rows of a, of the output as well.
void make_small_product(const OneCall& call, std::vector<Shape>& shapes, int64_t most) {
  Shape &a = shapes.front(), &out = shapes.back();
  const std::vector<int64_t>& order = call.arg("a_perm")->list;
  int64_t& rows = a.at(order.empty() ? a.size() - 2 : static_cast<size_t>(order.at(order.size() - 2)));
  rows = out.at(out.size() - 2) = std::min(rows, most);
}

}  // namespace

// Of sdpa one head of keys of one image: `most` rows, and keys for more than one block of any kernel's, the last of
// them not full.
void make_small(const OneCall& call, const std::vector<Param>& known, std::vector<Shape>& shapes,
                const std::vector<size_t>& params, int64_t most) {
  if (call.has_caches()) return;  // a head's rows follow from their sizes
  if (call.op(0) == "matmul") return make_small_product(call, shapes, most);
  const bool attention = call.knows("q"), conv = call.knows("kernel");
  const auto named = [&](size_t i, std::initializer_list<std::string_view> names) {
    return params[i] == known.size() || std::ranges::find(names, known[params[i]].name) != names.end();
  };
  constexpr int64_t kKeys = 150;
  int64_t shared = 1;  // query heads of a head of keys
  if (attention) {
    const auto heads = [&](size_t i, std::string_view flag) { return shapes[i].at(call.arg(flag)->i != 0 ? 2 : 1); };
    shared = heads(0, "q_blhd") / std::max<int64_t>(heads(1, "k_blhd"), 1);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    Shape& shape = shapes[i];
    if (shape.size() < 2 || !named(i, {"x", "residual", "q", "k", "v", "mask"})) continue;
    if (conv || attention) shape[0] = std::min<int64_t>(shape[0], 1);
    if (attention) {
      const bool of_keys = i == 1 || i == 2;
      const char* flags[] = {"q_blhd", "k_blhd", "v_blhd"};
      const bool mask = i == 3 && i + 1 < shapes.size();
      const char* flag = i + 1 == shapes.size() ? "out_blhd" : i < 3 ? flags[i] : nullptr;
      const bool rows_first = !mask && flag != nullptr && call.arg(flag)->i != 0;
      int64_t &heads = shape.at(rows_first ? 2 : 1), &rows = shape.at(rows_first ? 1 : 2);
      heads = std::min(heads, of_keys ? 1 : shared);
      rows = std::min(rows, of_keys ? std::max(most, kKeys) : most);
      if (mask) shape.at(3) = std::min(shape.at(3), std::max(most, kKeys));
    } else if (!conv) {
      int64_t rows = 1;
      for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d], shape[d] = 1;
      shape[shape.size() - 2] = std::min(rows, most);
    }
  }
  if (conv) crop(call, shapes.front(), shapes.back(), most);
}

}  // namespace pumice::engine
