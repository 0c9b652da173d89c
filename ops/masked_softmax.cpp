// SPDX-License-Identifier: Apache-2.0
// The softmax, over the last dimension, of
//   s = x * factor or x / divisor, then s + mask, then value where the condition is not `keep`
// for those of the arguments that are given; each step is rounded to the dtype. mask, condition and value broadcast to
// x.
#include "glsl/masked_softmax.h"

#include <algorithm>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/shared/host_call.h"
#include "ops/shared/rows.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

enum Argument : uint32_t { kX, kFactor, kDivisor, kMask, kCondition, kKeep, kValue };

// The tensors of masked_softmax: x, mask, condition, value; x where there is none.
std::vector<Tensor> reads_of(const Args& args) {
  const Tensor x = args.tensor(kX), mask = args.tensor(kMask), condition = args.tensor(kCondition);
  const Tensor value = args.has(kValue) ? args.operand(kValue).tensor : Tensor{};
  check(x.rank() > 0 && is_float(x.dtype()), "masked_softmax: x is %s of rank %u", name(x.dtype()), x.rank());
  for (const Tensor& other : {mask, value})
    check(!other || other.dtype() == x.dtype(), "masked_softmax: x is %s, another operand is not", name(x.dtype()));
  check(!condition || condition.dtype() == DType::boolean, "masked_softmax: the condition is not bool");
  check(static_cast<bool>(condition) == args.has(kValue), "masked_softmax: a condition and a value go together");
  check(!args.has(kFactor) || !args.has(kDivisor), "masked_softmax: a factor and a divisor");
  return {x, mask ? mask : x, condition ? condition : x, value ? value : x};
}

void masked_softmax(Graph& graph, Args args) {
  using namespace glsl::masked_softmax;
  const Tensor out = args.out();
  const std::vector<Tensor> reads = reads_of(args);
  const Tensor x = reads[kX];
  check(x.dtype() == out.dtype(), "masked_softmax: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  const bool adds = args.has(kMask), chooses = args.has(kCondition);
  const bool is_number = chooses && !args.operand(kValue).tensor;
  Params fixed{};
  const uint32_t scaled = args.has(kFactor) ? kFactor : kDivisor;
  const SCALE scale = args.has(kFactor) ? SCALE::multiply : args.has(kDivisor) ? SCALE::divide : SCALE::nothing;
  if (scale != SCALE::nothing) fixed.number = static_cast<float>(args.real(scaled));
  if (is_number) fixed.value = static_cast<float>(stored(args.operand(kValue).number, x.dtype()));
  const auto keep = static_cast<uint32_t>(args.boolean(kKeep));
  graph.dispatch({out}, reads, [=](Launch& launch) {
    out.resize(x.shape());
    if (out.numel() == 0) return;
    std::vector<const Shape*> shapes;
    for (const Tensor& each : reads) shapes.push_back(&each.shape());
    check(broadcast_shape(shapes, "masked_softmax") == x.shape(), "masked_softmax: x is smaller than a mask");
    const Broadcast shape = broadcast(out.shape(), shapes);
    Params params = fixed;
    put(params, shape, out);
    params.width = u32(x.dim(-1));
    params.rows = u32(x.numel()) / params.width;
    params.repeat_mask = shape.repeat[1];
    params.repeat_condition = shape.repeat[2];
    params.repeat_value = shape.repeat[3];
    launch.params(params);
    launch.shader = &variant(dtype(x.dtype()));
    launch_rows(launch, params.rows, params.width, lanes_of_row(params.width));
    launch.spec.insert(launch.spec.end(), {0u, static_cast<uint32_t>(scale), adds, chooses, keep, shape.mode[1],
                                           shape.mode[2], is_number ? BROADCAST_NUMBER : shape.mode[3]});
    launch.outer = x.rank() - 1;
  });
}

// The kernel's products and sums are those of IEEE 754, rounded to fp32 and then to the dtype. A quotient is up to 2.5
// ulp off, and may then be rounded to the other side: `error`.
double masked(const HostCall& call, size_t i, double& error) {
  const DType dtype = call.tensor(kX).dtype;
  const Shape at = coordinates(i, call.tensor(kX).shape);
  double s = call.tensor(kX).values[i];
  if (call.has(kFactor)) s = stored(in_f32(s * in_f32(call.real(kFactor))), dtype);
  if (call.has(kDivisor)) {
    const double quotient = s / in_f32(call.real(kDivisor)), off = 0x1p-21 * std::fabs(quotient);
    s = stored(quotient, dtype);
    if (off > 0) error = std::fabs(stored(quotient + off, dtype) - stored(quotient - off, dtype));
  }
  if (call.has(kMask)) {
    const double sum = s + broadcast_to(call.args[kMask], at);
    error += error > 0 ? std::fabs(sum) * (dtype == DType::f16 ? 0x1p-10 : 0x1p-23) : 0;
    s = stored(in_f32(sum), dtype);
  }
  if (!call.has(kCondition)) return s;
  if ((broadcast_to(call.args[kCondition], at) != 0) == (call.integer(kKeep) != 0)) return s;
  error = 0;
  return stored(broadcast_to(call.args[kValue], at), dtype);
}

// An error e of every s is one of e^2e - 1 of the result.
void reference(HostCall& call) {
  const auto width = static_cast<size_t>(call.tensor(kX).dim(-1));
  std::vector<double> s(width);
  for (size_t row = 0; row < call.tensor(kX).values.size(); row += width) {
    double error = 0, sum = 0;
    for (size_t k = 0; k < width; ++k) {
      double off = 0;
      s[k] = masked(call, row + k, off);
      if (std::isfinite(off)) error = std::max(error, off);
    }
    const double most = *std::max_element(s.begin(), s.end());
    for (const double each : s) sum += std::exp(each - most);
    for (const double each : s) {
      const double y = std::exp(each - most) / sum;
      call.out().push(y, (0x1p-15 + std::expm1(2 * error)) * std::fabs(y) + 0x1p-23);
    }
  }
}

}  // namespace

std::span<const Op> masked_softmax_ops() {
  static constexpr Op kOps[] = {
      {{"masked_softmax", 1,
        "Tensor x, float? factor, float? divisor, Tensor? mask, Tensor? condition, bool keep, "
        "operand? value -> Tensor"},
       masked_softmax,
       glsl::masked_softmax::axes,
       {"x=T[2,3,5,37] factor=0.3 mask=T[2,1,1,37]|T[5,37]|T[3,1,1] keep=1; "
        "x=T[2,3,5,8] divisor=3 mask=T[2,1,1,8]|T[3,5,8]|T[2,1,5,8] keep=1; "
        "x=T[2,3,5,6] divisor=8 condition=bool[5,6] keep=0|1 value=-10000|T[]|T[6]; "
        "x=T[2,3,5,12] condition=bool[2,1,1,12] keep=0|1 value=-3; "
        "x=T[3,600] factor=2 mask=T[600] condition=bool[3,600] keep=1 value=T[600]",
        "x=f16[1,12,512,512] divisor=8 mask=f16[1,1,1,512] keep=1; "
        "x=f16[1,12,512,512] divisor=8 condition=bool[512,512] keep=1 value=-10000",
        reference}}};
  return kOps;
}

}  // namespace pumice::engine
