// SPDX-License-Identifier: Apache-2.0
// out = x as `dtype`, like tensor.to(dtype). Between i64 and i32 nothing runs: both are 32 bits on the device.
#include "glsl/cast.h"

#include "ops/op.h"
#include "ops/reference/pointwise.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

DType stored(DType dtype) {
  return dtype == DType::i64 ? DType::i32 : dtype;
}

void cast(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  check(out.dtype() == args.dtype(1), "cast: the result is %s, the argument says %s", name(out.dtype()),
        name(args.dtype(1)));
  if (stored(x.dtype()) == stored(out.dtype()))
    return graph.view(out, x, [=](const Launch&) { out.resize(x.shape()); });
  const Shader& shader = glsl::cast::variant(glsl::cast::in(x.dtype()), glsl::cast::out(out.dtype()));

  const uint32_t call = graph.call_id();
  graph.dispatch(reporting(graph, out, out.dtype() == DType::i64), {x}, [=, &shader](Launch& launch) {
    out.resize(x.shape());
    launch.shader = &shader;
    launch.params(glsl::cast::Params{.count = u32(out.numel()), .call = call});
    launch.over(vec4_groups(out));
    launch.writes_once = true;
    launch.outer = out.rank();
  });
}

}  // namespace

std::span<const Op> cast_ops() {
  static constexpr Op kOps[] = {{{"cast", 1, "Tensor x, dtype dtype -> Tensor"},
                                 cast,
                                 glsl::cast::axes,
                                 {"x=f32[5,37] dtype=f16 -> f16[5,37]; "
                                  "x=f16[5,37] dtype=f32 -> f32[5,37]; "
                                  "x=i32[37] dtype=f32 -> f32[37]; "
                                  "x=f32[37]{0..100} dtype=u8 -> u8[37]; "
                                  "x=bool[5,7] dtype=f32 -> f32[5,7]; "
                                  "x=f32[37]{-3..3} dtype=i64 -> i64[37]; "
                                  "x=f32[37]{-3..3}|f32[37]{special} dtype=bool -> bool[37]; "
                                  "x=i32[37]{-400..400} dtype=i8 -> i8[37]; "
                                  "x=i64[37] dtype=i32 -> i32[37]; "
                                  "x=f32[9]{3000000000..4000000000} dtype=i32 -> i32[9]; "
                                  "x=f32[9]{3000000000..4000000000} dtype=i64 -> i64[9]",
                                  "x=f32[1024,1024] dtype=f16 -> f16[1024,1024]", reference::cast}}};
  return kOps;
}

}  // namespace pumice::engine
