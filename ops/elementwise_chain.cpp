// SPDX-License-Identifier: Apache-2.0
// Several elementwise operators as one: out = f7(... f1(f0(x, ...)) ...). `steps` has four integers for each: a
// function of glsl/elementwise_chain.glsl and its operands a, b, c, which are
//   0 ..   the result of a step before          CHAIN_X ..       a tensor of `x`, broadcast to the output
//   CHAIN_CONDITION   the tensor `condition`    CHAIN_NUMBER ..  one of the numbers n0 .. n7
// and 0 where a function has fewer. Results of comparisons, and `condition`, are for the first operand of `where`
// alone. Numbers are fp32. The export makes these calls of what no other pattern takes
// (python/pumice/fusion/elementwise_chain.py).
#include "glsl/elementwise_chain.h"

#include <cinttypes>

#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/reference/elementwise_chain.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using glsl::elementwise_chain::FUNCTION;

constexpr const char* kOp = "elementwise_chain";
constexpr uint32_t kNumbers = 3;  // the argument n0

bool is_comparison(int64_t function) {
  return function >= static_cast<int64_t>(FUNCTION::eq);
}

int64_t operands_of(int64_t function) {
  if (function < static_cast<int64_t>(FUNCTION::add)) return 1;
  return function == static_cast<int64_t>(FUNCTION::clamp) || function == static_cast<int64_t>(FUNCTION::where) ? 3 : 2;
}

// Whether an operand is a truth value; refuses one that is not there.
bool check_operand(const Args& args, const std::vector<int64_t>& steps, int64_t step, int64_t at, size_t tensors) {
  const bool is_step = at >= 0 && at < step;
  const bool is_tensor = at >= CHAIN_X && at < CHAIN_X + static_cast<int64_t>(tensors);
  const bool is_condition = at == CHAIN_CONDITION && args.has(1);
  const bool is_number = at >= CHAIN_NUMBER && at < CHAIN_NUMBER + int64_t{CHAIN_NUMBERS} &&
                         args.has(kNumbers + static_cast<uint32_t>(at - CHAIN_NUMBER));
  check(is_step || is_tensor || is_condition || is_number, "%s: step %" PRId64 " has no operand %" PRId64, kOp, step,
        at);
  return is_condition || (is_step && is_comparison(steps[static_cast<size_t>(at) * 4]));
}

void check_steps(const Args& args, const std::vector<int64_t>& steps, size_t tensors) {
  check(!steps.empty() && steps.size() % 4 == 0 && steps.size() <= size_t{CHAIN_STEPS} * 4,
        "%s: %zu integers are not 1 to %u steps of four", kOp, steps.size(), CHAIN_STEPS);
  const auto count = static_cast<int64_t>(steps.size() / 4);
  for (int64_t step = 0; step < count; ++step) {
    const int64_t function = steps[static_cast<size_t>(step) * 4];
    check(function >= 0 && function <= static_cast<int64_t>(FUNCTION::ge), "%s: there is no function %" PRId64, kOp,
          function);
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t at = steps[static_cast<size_t>(step * 4 + k + 1)];
      if (k >= operands_of(function)) {  // the kernel takes them apart all the same
        check(at == 0, "%s: step %" PRId64 " has an operand too many", kOp, step);
        continue;
      }
      const bool truth = check_operand(args, steps, step, at, tensors);
      const bool chooses = function == static_cast<int64_t>(FUNCTION::where) && k == 0;
      check(truth == chooses, "%s: operand %" PRId64 " of step %" PRId64 " is %s truth value", kOp, k, step,
            truth ? "a" : "no");
    }
  }
  check(!is_comparison(steps[steps.size() - 4]), "%s: the result is a truth value", kOp);
}

void elementwise_chain(Graph& graph, Args args) {
  const std::vector<Tensor> x = args.tensors(0);
  const Tensor condition = args.tensor(1), out = args.out();
  const std::vector<int64_t> steps = args.ints(2);
  check(!x.empty() && x.size() <= CHAIN_MOST_X, "%s: %zu tensors; 1 to %u are taken", kOp, x.size(), CHAIN_MOST_X);
  for (const Tensor& each : x)
    check(is_float(out.dtype()) && each.dtype() == out.dtype(), "%s: a tensor is %s, the output %s", kOp,
          name(each.dtype()), name(out.dtype()));
  check(!condition || condition.dtype() == DType::boolean, "%s: the condition is not bool", kOp);
  check_steps(args, steps, x.size());
  glsl::elementwise_chain::Params numbers{};
  for (uint32_t k = 0; k < CHAIN_NUMBERS; ++k)
    if (args.has(kNumbers + k)) numbers.number[k] = static_cast<float>(args.real(kNumbers + k));
  std::vector<Tensor> reads = x;
  reads.resize(CHAIN_MOST_X, x[0]);
  reads.push_back(condition ? condition : x[0]);
  const bool has_condition = static_cast<bool>(condition);
  graph.dispatch({out}, reads, [=, count = x.size()](Launch& launch) {
    std::vector<const Shape*> shapes;
    for (const Tensor& each : reads) shapes.push_back(&each.shape());
    out.resize(broadcast_shape(shapes, kOp));
    const Broadcast shape = broadcast(out.shape(), shapes);
    glsl::elementwise_chain::Params params = numbers;
    put(params, shape, out);
    std::copy(shape.repeat.begin(), shape.repeat.end(), params.repeat);
    launch.params(params);
    launch.shader = &glsl::elementwise_chain::variant(glsl::elementwise_chain::dtype(out.dtype()));
    launch.over(vec4_groups(out));
    launch.outer = out.rank();
    launch.spec.push_back(u32(static_cast<int64_t>(steps.size() / 4)));
    for (size_t k = 0; k < reads.size(); ++k) {
      const bool given = k < CHAIN_MOST_X ? k < count : has_condition;
      launch.spec.push_back(given ? shape.mode[k] : BROADCAST_NUMBER);
    }
    for (size_t k = 0; k < CHAIN_STEPS * 4; k += 4) {
      const auto part = [&](size_t at) { return k < steps.size() ? static_cast<uint32_t>(steps[k + at]) : 0u; };
      launch.spec.push_back(part(0) | part(1) << 8 | part(2) << 16 | part(3) << 24);
    }
  });
}

}  // namespace

std::span<const Op> elementwise_chain_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1,
        "Tensors x, Tensor? condition, ints steps, float? n0, float? n1, float? n2, float? n3, float? n4, float? n5, "
        "float? n6, float? n7 -> Tensor"},
       elementwise_chain,
       glsl::elementwise_chain::axes,
       {"x=T[5,37] steps=[21,8,16,0,25,8,17,0,21,1,18,0,19,8,2,0,21,3,19,0,2,4,0,0,19,5,20,0,21,0,6,0] n0=0.5 n1=3 "
        "n2=0.044715 n3=0.7978845608 n4=1; "
        "x=T[3,37] steps=[0,8,0,0,1,0,0,0,2,1,0,0,3,2,0,0,4,3,0,0,12,4,0,0]; "
        "x=T[3,37]{0.5..1} steps=[6,8,0,0,5,0,0,0,7,1,0,0,9,2,0,0,10,3,0,0,8,4,0,0,11,5,0,0,18,6,0,0]; "
        "x=T[3,37] steps=[13,8,0,0,16,0,0,0,14,1,0,0,17,2,0,0,15,3,0,0]; "
        "x=T[2,3,5]+T[5]+T[3,1]+T[2,1,1] "
        "steps=[19,8,9,0,21,0,10,0,20,1,11,0,22,2,16,0,23,3,9,0,24,4,10,0,26,5,17,0,27,6,18,0] n0=3 n1=0.25 n2=0.5; "
        "x=T[2,3,8]+T[8]+T[3,1]+T[2,1,8] "
        "steps=[19,8,9,0,21,0,10,0,20,1,11,0,22,2,16,0,23,3,9,0,24,4,10,0,26,5,17,0,27,6,18,0] n0=3 n1=0.25 n2=0.5; "
        "x=T[7]+T[1] steps=[28,8,9,0,25,0,16,0,29,1,17,18] n0=2 n1=-0.5 n2=0.75; "
        "x=T[5,9]+T[9] steps=[35,8,9,0,34,8,16,0,30,0,8,9,30,1,2,17] n0=0.5 n1=-2; "
        "x=T[5,9]{special}+T[9] steps=[33,8,9,0,36,8,16,0,30,0,8,17,30,1,2,9] n0=0.5 n1=-2; "
        "x=T[5,12]+T[12] condition=bool[5,1] steps=[32,8,9,0,30,12,8,9,31,8,16,0,30,2,17,1,30,0,3,17] n0=0.5 n1=-2; "
        "x=T[9]{special} steps=[15,8,0,0,16,0,0,0,29,1,16,17,21,2,8,0] n0=-0.5 n1=0.75",
        "x=f16[1024,1024] steps=[21,8,16,0,25,8,17,0,21,1,18,0,19,8,2,0,21,3,19,0,2,4,0,0,19,5,20,0,21,0,6,0] n0=0.5 "
        "n1=3 n2=0.044715 n3=0.7978845608 n4=1; "
        "x=f16[1,256,64,64]+f16[1,256,1,1]+f16[1,256,1,1] steps=[21,8,9,0,19,0,10,0,4,1,0,0]",
        reference::elementwise_chain}}};
  return kOps;
}

}  // namespace pumice::engine
