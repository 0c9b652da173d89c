// SPDX-License-Identifier: Apache-2.0
// Padding. `pads` as in torch.nn.functional.pad: before and after the last dimension, then the one before it, and so
// on; negative ones cut off. pad puts a number there; pad_reflect, pad_replicate and pad_circular elements of x.
#include "glsl/pad.h"

#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using glsl::pad::MODE;

constexpr const char* kNames[] = {"pad", "pad_reflect", "pad_replicate", "pad_circular"};

// Whether the elements of a dimension of `size` give those that `mode` puts at its ends.
bool can_pad(MODE mode, int64_t size, int64_t before, int64_t after) {
  const int64_t most = std::max(before, after);
  if (mode == MODE::reflect) return most < size;
  if (mode == MODE::circular) return most <= size && std::min(before, after) >= 0;
  return mode == MODE::constant || size > 0;
}

void pad(Graph& graph, const Args& args, MODE mode) {
  const char* const op = kNames[static_cast<size_t>(mode)];
  const Tensor x = args.tensor(0), out = args.out();
  const std::vector<SymInt> pads = args.sizes(1);
  const uint32_t rank = x.rank();
  check(pads.size() % 2 == 0 && pads.size() / 2 <= rank, "%s: %zu pads for rank %u", op, pads.size(), rank);
  check(x.dtype() == out.dtype(), "%s: input is %s, output %s", op, name(x.dtype()), name(out.dtype()));
  const uint32_t value = mode == MODE::constant ? element_bits(args.real(2), out.dtype(), op) : 0;
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    Shape shape = x.shape(), before(rank, 0);
    for (size_t k = 0; k < pads.size() / 2; ++k) {
      const size_t d = rank - 1 - k;
      before[d] = launch.size(pads[2 * k]);
      const int64_t after = launch.size(pads[2 * k + 1]);
      shape[d] += before[d] + after;
      check(shape[d] >= 0, "%s: dimension %zu gets the size %lld", op, d, static_cast<long long>(shape[d]));
      check((before[d] == 0 && after == 0) || can_pad(mode, x.dim(d), before[d], after),
            "%s: dimension %zu has the size %lld, too small for %lld and %lld elements at its ends", op, d,
            static_cast<long long>(x.dim(d)), static_cast<long long>(before[d]), static_cast<long long>(after));
    }
    out.resize(shape);
    glsl::pad::Params params{.count = u32(out.numel()), .rank = 0, .value = value};
    bool last_padded = false;
    for (uint32_t d = 0; d < rank; ++d) {
      const bool padded = before[d] != 0 || shape[d] != x.dim(d);
      // A dimension without padding merges into the one before it: all three numbers scale. The other modes do not read
      // what is outside, and what is inside of a merged dimension is another element.
      if (!padded && params.rank > 0 && (mode == MODE::constant || !last_padded)) {
        const int64_t size = shape[d];
        const uint32_t last = params.rank - 1;
        params.size[last] = u32(params.size[last] * size);
        params.in_size[last] = u32(params.in_size[last] * size);
        params.before[last] = static_cast<int32_t>(u32(params.before[last] * size));
        continue;
      }
      check(params.rank < kMaxRank, "%s: more than %u separate dimensions", op, kMaxRank);
      params.size[params.rank] = u32(shape[d]);
      params.in_size[params.rank] = u32(x.dim(d));
      params.before[params.rank++] = static_cast<int32_t>(u32(before[d]));
      last_padded = padded;
    }
    launch.params(params);
    launch.shader = &glsl::pad::variant(bits<glsl::pad::BITS>(out.dtype()));
    launch.over(vec4_groups(out));
    launch.spec.push_back(static_cast<uint32_t>(mode));
    while (launch.outer < rank && shape[launch.outer] == x.dim(launch.outer) && before[launch.outer] == 0)
      ++launch.outer;
  });
}

template <MODE mode>
void build(Graph& graph, Args args) {
  pad(graph, args, mode);
}

template <MODE mode>
void reference_of(HostCall& call) {
  reference::pad_from_inside(call, static_cast<int>(mode));
}

template <MODE mode>
constexpr Op row() {
  return {{kNames[static_cast<size_t>(mode)], 1, "Tensor x, sizes pads -> Tensor"},
          build<mode>,
          glsl::pad::axes,
          {"x=T[3,5] pads=[1,2,2,1] -> T[6,8]; x=T[2,3,7,4] pads=[0,0,2,3] -> T[2,3,12,4]; "
           "x=i64[3] pads=[1,2] -> i64[6]; x=i8[2,9] pads=[3,4] -> i8[2,16]",
           "x=f16[64,64,256] pads=[1,1] -> f16[64,64,258]", reference_of<mode>},
          mode == MODE::circular ? "" : "bool"};
}

}  // namespace

std::span<const Op> pad_ops() {
  static constexpr Op kOps[] = {
      {{"pad", 1, "Tensor x, sizes pads, float value -> Tensor"},
       build<MODE::constant>,
       glsl::pad::axes,
       {"x=T[3,5] pads=[1,2,0,1] value=0.5 -> T[4,8]; "
        "x=T[2,3,4] pads=[0,0,-1,2] value=-1 -> T[2,4,4]; x=i64[3] pads=[1,1] value=-9 -> i64[5]; "
        "x=i8[2,9] pads=[3,-2] value=1 -> i8[2,10]",
        "", reference::pad}},
      row<MODE::reflect>(),
      row<MODE::replicate>(),
      row<MODE::circular>(),
  };
  return kOps;
}

}  // namespace pumice::engine
