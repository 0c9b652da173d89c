// SPDX-License-Identifier: Apache-2.0
// Operators out = F(x), element by element, whose shaders include glsl/include/core/unary.glslh.
#pragma once

#include <cmath>

#include "ops/op.h"
#include "ops/shared/host_call.h"
#include "ops/shared/shape.h"
#include "ops/shared/textures.h"

namespace pumice::engine {

// Adds the node. `variant(dtype, storage)` gives the shader, for 0 (buffers) and 1 (textures); `spec`: its
// specialization constants. Params are those of the shader's header.
template <class Params, class Variant>
void unary(Graph& graph, const Args& args, const Variant& variant, const std::vector<uint32_t>& spec = {}) {
  Tensor x = args.tensor(0), out = args.out();
  check(out.dtype() == x.dtype(), "unary: the result must be %s like the input, not %s", name(x.dtype()),
        name(out.dtype()));
  if (take_textures(graph, x, out)) {
    const Shader& shader = variant(x.dtype(), 1);
    graph.dispatch({out}, {x}, [=, &shader](Launch& launch) {
      out.resize(x.shape());
      const Texels texels = texels_of(out);
      launch.over(texels.count);
      launch.params(Params{texels.count, texels.columns, texels.height});
      launch.shader = &shader;
      launch.spec.insert(launch.spec.end(), spec.begin(), spec.end());
    });
    return;
  }
  const Shader& shader = variant(x.dtype(), 0);
  graph.dispatch_in_place({out}, {x}, [=, &shader](Launch& launch) {
    out.resize(x.shape());
    launch.shader = &shader;
    launch.params(Params{.vec4_count = vec4_groups(out)});
    launch.over(vec4_groups(out));
    launch.outer = out.rank();
    launch.spec.insert(launch.spec.end(), spec.begin(), spec.end());
  });
}

inline constexpr std::string_view kUnaryParams = "Tensor x -> Tensor";

// Of the kernel bench. The bound is 32 ulp of fp32 and 2^-20: what Vulkan leaves of exp and log (test/budget.py).
inline constexpr std::string_view kUnaryCases = "x=T[3,5,37] storage=buffer|texture3d; x=T[9]{special}";
inline constexpr std::string_view kUnaryBench = "x=f16[1024,1024]";
template <double (*kFunction)(double)>
void unary_reference(HostCall& call) {
  for (const double x : call.tensor(0).values) {
    const double y = kFunction(x);
    call.out().push(y, std::isfinite(y) ? 0x1p-18 * std::fabs(y) + 0x1p-20 : 0);
  }
}
// Of functions that round once at most; integers wrap.
template <double (*kFunction)(double)>
void exact_unary_reference(HostCall& call) {
  const DType dtype = call.out().dtype;
  for (const double x : call.tensor(0).values) {
    const double y = kFunction(x);
    call.out().push(is_float(dtype) ? y : wrapped(static_cast<int64_t>(y), dtype));
  }
}

}  // namespace pumice::engine
