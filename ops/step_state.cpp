// SPDX-License-Identifier: Apache-2.0
// What a step that chooses a token takes over from the step before and leaves to the next one: python/pumice/llm/
// step_state.py has the definition. Integers of one type; B sequences, R columns of made.
//   step_inputs:  tokens [B, 1], first [B], token [B, 1], step [1] -> step == 0 ? tokens : token [B, 1], first + step
//   [B] step_outputs: made [B, R], token [B, 1], step [1], chosen [B, 1], steps [1]
//     -> made with chosen in column step, chosen [B, 1], step + 1 < steps ? step + 1 : 0 [1]
// A step that is no column of made ends the run with an error.
#include "ops/reference/step_state.h"
#include "glsl/step_inputs.h"
#include "glsl/step_outputs.h"
#include "ops/op.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void check_integers(const char* op, const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    check(t.dtype() == DType::i64 || t.dtype() == DType::i32, "%s: a tensor of %s", op, name(t.dtype()));
}

void step_inputs(Graph& graph, Args args) {
  const Tensor tokens = args.tensor(0), first = args.tensor(1), token = args.tensor(2), step = args.tensor(3);
  const Tensor out = args.out(0), position = args.out(1);
  check_integers("step_inputs", {tokens, first, token, step, out, position});
  graph.dispatch({out, position}, {tokens, first, token, step}, [=](Launch& launch) {
    check(token.numel() == tokens.numel() && first.numel() == tokens.numel() && step.numel() == 1,
          "step_inputs: %lld tokens, %lld positions, %lld tokens of the step before, %lld step numbers",
          static_cast<long long>(tokens.numel()), static_cast<long long>(first.numel()),
          static_cast<long long>(token.numel()), static_cast<long long>(step.numel()));
    out.resize(tokens.shape());
    position.resize(first.shape());
    launch.over(vec4_groups(out));
    launch.params(glsl::step_inputs::Params{.count = vec4_groups(out)});
    launch.shader = &glsl::step_inputs::variant();
  });
}

void step_outputs(Graph& graph, Args args) {
  const Tensor made = args.tensor(0), token = args.tensor(1), step = args.tensor(2), chosen = args.tensor(3);
  const Tensor steps = args.tensor(4), new_made = args.out(0), new_token = args.out(1), new_step = args.out(2);
  check_integers("step_outputs", {made, token, step, chosen, steps, new_made, new_token, new_step});
  check(made.rank() == 2, "step_outputs: made of rank %u, not 2", made.rank());
  const uint32_t call = graph.call_id();
  graph.dispatch_in_place(
      {new_made, new_token, new_step, graph.status()}, {made, token, step, chosen, steps},
      [=](Launch& launch) {
        const int64_t rows = made.dim(0);
        check(token.numel() == rows && chosen.numel() == rows && step.numel() == 1 && steps.numel() == 1,
              "step_outputs: %lld rows of made, %lld tokens, %lld chosen, %lld and %lld step numbers",
              static_cast<long long>(rows), static_cast<long long>(token.numel()),
              static_cast<long long>(chosen.numel()), static_cast<long long>(step.numel()),
              static_cast<long long>(steps.numel()));
        new_made.resize(made.shape());
        new_token.resize(token.shape());
        new_step.resize(step.shape());
        // One workgroup: every invocation reads `step` before one of them writes it.
        launch.over(1, std::min(64u, launch.features.max_invocations));
        launch.params(glsl::step_outputs::Params{
            .rows = u32(rows), .columns = u32(made.dim(1)), .vec4s = vec4_groups(made), .call = call});
        launch.shader = &glsl::step_outputs::variant();
      },
      3);
}

}  // namespace

std::span<const Op> step_state_ops() {
  static constexpr Op kOps[] = {
      {{"step_inputs", 1, "Tensor tokens, Tensor first, Tensor token, Tensor step -> Tensor, Tensor"},
       step_inputs,
       {},
       {"tokens=i64[3,1]{0..99} first=i64[3]{0..99} token=i64[3,1]{0..99} step=i64[1]{0..0} -> i64[3,1] i64[3]; "
        "tokens=i32[9,1]{0..99} first=i32[9]{0..99} token=i32[9,1]{0..99} step=i32[1]{7..7} -> i32[9,1] i32[9]",
        "tokens=i64[8,1]{0..99} first=i64[8]{0..99} token=i64[8,1]{0..99} step=i64[1]{7..7} -> i64[8,1] i64[8]",
        reference::step_inputs}},
      {{"step_outputs", 1,
        "Tensor made, Tensor token, Tensor step, Tensor chosen, Tensor steps -> Tensor, Tensor, Tensor"},
       step_outputs,
       {},
       {"made=i64[3,7]{0..99} token=i64[3,1]{0..99} step=i64[1]{0..6} chosen=i64[3,1]{0..99} steps=i64[1]{7..7} "
        "-> i64[3,7] i64[3,1] i64[1]; "
        "made=i32[70,5]{0..99} token=i32[70,1]{0..99} step=i32[1]{0..6} chosen=i32[70,1]{0..99} steps=i32[1]{1..5} "
        "-> i32[70,5] i32[70,1] i32[1]",
        "made=i64[8,64]{0..99} token=i64[8,1]{0..99} step=i64[1]{9..9} chosen=i64[8,1]{0..99} steps=i64[1]{32..32} "
        "-> i64[8,64] i64[8,1] i64[1]",
        reference::step_outputs}}};
  return kOps;
}

}  // namespace pumice::engine
