// SPDX-License-Identifier: Apache-2.0
// out = condition ? a : b, elementwise with broadcasting; a and b may be numbers. masked_fill is lowered to it.
#include "glsl/where.h"

#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void where(Graph& graph, Args args) {
  const Tensor condition = args.tensor(0), out = args.out();
  const Operand a = args.operand(1), b = args.operand(2);
  const DType dtype = out.dtype();
  check(condition.dtype() == DType::boolean, "where: condition is %s, must be bool", name(condition.dtype()));
  uint32_t numbers[2] = {0, 0};
  Tensor tensors[2];
  for (int k = 0; k < 2; ++k) {
    const Operand& side = k == 0 ? a : b;
    if (side.tensor) {
      check(side.tensor.dtype() == dtype, "where: an operand is %s, the output %s", name(side.tensor.dtype()),
            name(dtype));
    } else {
      numbers[k] = element_bits(side.number, dtype, "where");
    }
    tensors[k] = side.tensor ? side.tensor : condition;  // a number's binding is not read
  }
  graph.dispatch({out}, {condition, tensors[0], tensors[1]}, [=](Launch& launch) {
    static const Shape kNumber;
    const Shape& a_shape = a.tensor ? a.tensor.shape() : kNumber;
    const Shape& b_shape = b.tensor ? b.tensor.shape() : kNumber;
    out.resize(broadcast_shape({&condition.shape(), &a_shape, &b_shape}, "where"));
    const Broadcast shape = broadcast(out.shape(), {&condition.shape(), &a_shape, &b_shape});
    glsl::where::Params params{};
    put(params, shape, out);
    params.repeat_condition = shape.repeat[0];
    params.repeat_a = shape.repeat[1];
    params.repeat_b = shape.repeat[2];
    params.number_a = numbers[0];
    params.number_b = numbers[1];
    launch.params(params);
    launch.shader = &glsl::where::variant(bits<glsl::where::BITS>(dtype));
    launch.over(vec4_groups(out));
    launch.outer = out.rank();
    launch.spec.insert(launch.spec.end(), {shape.mode[0], a.tensor ? shape.mode[1] : BROADCAST_NUMBER,
                                           b.tensor ? shape.mode[2] : BROADCAST_NUMBER});
  });
}

}  // namespace

std::span<const Op> where_ops() {
  static constexpr Op kOps[] = {
      {{"where", 1, "Tensor condition, operand a, operand b -> Tensor"},
       where,
       glsl::where::axes,
       {"condition=bool[5,1] a=T[5,37] b=T[37]|0.5 -> T[5,37]; "
        "condition=bool[5,37] a=-1 b=i64[5,37] -> i64[5,37]; "
        "condition=bool[37] a=u8[37] b=9 -> u8[37]",
        "condition=bool[1024,1024] a=f16[1024,1024] b=0.5 -> f16[1024,1024]", reference::where}}};
  return kOps;
}

}  // namespace pumice::engine
