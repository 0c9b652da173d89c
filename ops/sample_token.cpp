// SPDX-License-Identifier: Apache-2.0
// Draws a token from each row of logits [B, V]; python/pumice/llm/sampling.py defines which. options [B, 4], f32:
// temperature, top_p, min_p, repeat_penalty; counts [B, 4], i32: top_k, repeat_last, low and high word of the seed.
// token [B, 1] is at position [B], the new one comes after it. The tokens up to there: the last `step` [1] of them are
// the first of a row of made [B, R], those before are text [B, S], by position. Results: made with the new tokens in
// column `step`, they alone, position + 1, step + 1. An option out of its range, a row without a number, a token that
// is not in the vocabulary and a step that is no column end the run with an error. Exact: all that decides is integers.
#include "glsl/sample_token.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/divide.h"
#include "glsl/include/core/modes.glslh"
#include "glsl/sample_token_bins.h"
#include "glsl/sample_token_split.h"
#include "ops/op.h"
#include "ops/reference/sample_token.h"
#include "ops/shared/phases.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "sample_token";

struct Sampled {
  Tensor logits, options, counts, text, made, token, position, step;
  uint32_t rows() const { return u32(logits.dim(0)); }
  uint32_t tokens() const { return u32(logits.dim(1)); }
  uint32_t parts() const { return u32(ceil_div(logits.dim(1), SAMPLE_PART)); }
  int64_t stride() const { return 4 * ceil_div(logits.dim(1), 4); }  // of a row of keys
};

void check_sizes(const Sampled& s) {
  const int64_t rows = s.logits.dim(0);
  check(s.logits.dim(1) >= 1 && s.logits.dim(1) <= int64_t{1} << 24, "%s: a vocabulary of %lld tokens", kOp,
        static_cast<long long>(s.logits.dim(1)));
  for (const Tensor& t : {s.options, s.counts})
    check(t.dim(0) == rows && t.dim(1) == 4, "%s: options and counts of [%lld, %lld], not [%lld, 4]", kOp,
          static_cast<long long>(t.dim(0)), static_cast<long long>(t.dim(1)), static_cast<long long>(rows));
  check(s.text.dim(0) == rows && s.made.dim(0) == rows && s.token.numel() == rows && s.position.numel() == rows &&
            s.step.numel() == 1,
        "%s: text, made, token and position of other than %lld rows, or step of other than one number", kOp,
        static_cast<long long>(rows));
}

uint32_t lanes_of(const Features& features) {
  return std::min(256u, std::bit_floor(features.max_invocations));
}

Sampled read(const Args& args) {
  const Sampled s{.logits = args.tensor(0),
                  .options = args.tensor(1),
                  .counts = args.tensor(2),
                  .text = args.tensor(3),
                  .made = args.tensor(4),
                  .token = args.tensor(5),
                  .position = args.tensor(6),
                  .step = args.tensor(7)};
  check(is_float(s.logits.dtype()), "%s: logits of %s", kOp, name(s.logits.dtype()));
  check(s.options.dtype() == DType::f32 && s.counts.dtype() == DType::i32, "%s: options of %s, counts of %s", kOp,
        name(s.options.dtype()), name(s.counts.dtype()));
  for (const Tensor& t : {s.logits, s.options, s.counts, s.text, s.made})
    check(t.rank() == 2, "%s: a tensor of rank %u, not 2", kOp, t.rank());
  for (const Tensor& t :
       {s.text, s.made, s.token, s.position, s.step, args.out(0), args.out(1), args.out(2), args.out(3)})
    check(t.dtype() == DType::i64 || t.dtype() == DType::i32, "%s: tokens or positions of %s", kOp, name(t.dtype()));
  return s;
}

// Whether rows of options ask for the most probable token and nothing else: then all steps of a call may be one
// dispatch (glsl/decoder_layers.glsl).
bool is_plain(std::span<const std::byte> options) {
  std::array<float, 4> row;
  for (size_t at = 0; at + sizeof row <= options.size(); at += sizeof row) {
    std::memcpy(row.data(), &options[at], sizeof row);
    if (row[0] != 0 || row[3] != 1) return false;
  }
  return true;
}

void sample_token(Graph& graph, Args args) {
  const Sampled s = read(args);
  graph.steps_suit(s.options, is_plain);
  const Tensor made = args.out(0), token = args.out(1), position = args.out(2), step = args.out(3);
  const Tensor keys = graph.scratch(DType::i32, 1), peaks = graph.scratch(DType::i32, 1);
  const Tensor words = graph.scratch(DType::i32, 1), list = graph.scratch(DType::i32, 1);
  const Tensor bests = graph.scratch(DType::i32, 1);
  const uint32_t call = graph.call_id();
  const auto over_parts = [=](Launch& launch) {
    launch.over_groups(uint64_t{s.rows()} * s.parts(), lanes_of(launch.features));
  };
  const auto phase = std::make_shared<SamplePhase>();
  phase->logits = s.logits, phase->options = s.options, phase->counts = s.counts;
  phase->made = s.made, phase->token = s.token, phase->position = s.position, phase->step = s.step;
  phase->new_made = made, phase->new_token = token, phase->new_position = position, phase->new_step = step;
  phase->call = call;
  const auto set_phase = [=](Launch& launch) {
    if (s.rows() == 1) launch.phase = phase;
  };

  graph.dispatch({keys, peaks, words, graph.counters(SAMPLE_ROWS), graph.status()},
                 {s.options, s.counts, s.logits, s.text, s.made, s.position, s.step}, [=](Launch& launch) {
                   check_sizes(s);
                   words.resize({s.rows() * int64_t{SAMPLE_WORDS}});
                   keys.resize({s.rows() * s.stride()});
                   peaks.resize({s.rows() * int64_t{2} * s.parts()});
                   for (uint32_t first = 0; first < s.rows(); first += SAMPLE_ROWS) {
                     if (first != 0) launch.next_dispatch();
                     const uint64_t rows = std::min(SAMPLE_ROWS, s.rows() - first);
                     launch.over_groups(rows * s.parts(), lanes_of(launch.features));
                     launch.spec.push_back(s.tokens() % 4 == 0);
                     launch.params(glsl::sample_token::Params{.rows = s.rows(),
                                                              .first = first,
                                                              .tokens = s.tokens(),
                                                              .parts = s.parts(),
                                                              .text = u32(s.text.dim(1)),
                                                              .made = u32(s.made.dim(1)),
                                                              .call = call});
                     launch.shader = &glsl::sample_token::variant(glsl::sample_token::dtype(s.logits.dtype()));
                     set_phase(launch);
                   }
                 });
  graph.dispatch({words}, {keys, s.options, s.counts}, [=](Launch& launch) {
    words.resize({s.rows() * int64_t{SAMPLE_WORDS}});
    over_parts(launch);
    launch.params(glsl::sample_token_bins::Params{.rows = s.rows(), .tokens = s.tokens(), .parts = s.parts()});
    launch.shader = &glsl::sample_token_bins::variant();
    set_phase(launch);
  });
  graph.dispatch_in_place(
      {made, token, position, step, list, bests, words, graph.status()},
      {s.made, s.token, s.position, s.step, keys, s.options, s.counts},
      [=](Launch& launch) {
        made.resize(s.made.shape());
        token.resize(s.token.shape());
        position.resize(s.position.shape());
        step.resize(s.step.shape());
        words.resize({s.rows() * int64_t{SAMPLE_WORDS}});
        list.resize({s.rows() * 2 * s.stride()});
        bests.resize({s.rows() * int64_t{2} * s.parts()});
        over_parts(launch);
        launch.params(glsl::sample_token_split::Params{
            .rows = s.rows(), .tokens = s.tokens(), .parts = s.parts(), .made = u32(s.made.dim(1)), .call = call});
        launch.shader = &glsl::sample_token_split::variant();
        set_phase(launch);
      },
      4);
}

// Everything that follows the logits.
#define REST(B)                                                                                    \
  " text=i64[" #B ",40]{0..6} made=i64[" #B ",9]{0..6} token=i64[" #B ",1]{0..6} position=i64[" #B \
  "]{3..20} step=i64[1]{3..3} -> i64[" #B ",9] i64[" #B ",1] i64[" #B "] i64[1]"
#define COUNTS(B) " counts=i32[" #B ",4]{0,64,5,7}|i32[" #B ",4]{3,64,6,7}|i32[" #B ",4]{600,4,6,-7}"
#define SOME_OPTIONS(B)                                                                           \
  " options=f32[" #B ",4]{0,1,0,1.5}|f32[" #B ",4]{1,1,0,1}|f32[" #B ",4]{0.8,0.9,0,1.1}|f32[" #B \
  ",4]{1.5,1,0.1,0.7}|f32[" #B ",4]{2.5,0.5,0.02,1}"
#define ONE " text=i64[1,3] made=i64[1,2] token=i64[1,1] position=i64[1]{0..0} "
#define ONE_OUT " -> i64[1,2] i64[1,1] i64[1] i64[1]"
#define BENCH                                                                                                     \
  " text=i64[1,4096]{0..99} made=i64[1,64]{0..99} token=i64[1,1] position=i64[1]{500..500} step=i64[1]{9..9} -> " \
  "i64[1,64] i64[1,1] i64[1] i64[1]"

}  // namespace

std::span<const Op> sample_token_ops() {
  static constexpr Op kOps[] = {
      {{"sample_token", 1,
        "Tensor logits, Tensor options, Tensor counts, Tensor text, Tensor made, Tensor token, Tensor position, "
        "Tensor step -> Tensor, Tensor, Tensor, Tensor"},
       sample_token,
       glsl::sample_token::axes,
       {// Small rows, odd ones, several parts; ties, then rows with NaN and infinities, then bad numbers of every kind.
        "logits=T[2,7]{-3..3}|T[2,7]{1..1}" SOME_OPTIONS(2) COUNTS(2)
            REST(2) "; "
                    "logits=T[3,5001]{-9..9}|T[3,5001]{special}" SOME_OPTIONS(3) COUNTS(3)
                        REST(3) "; "
                                "logits=T[1,1] options=f32[1,4]{1,0.5,0.5,1} counts=i32[1,4]{1,0,1,1}" ONE
                                "step=i64[1]{0..0}" ONE_OUT "; "
                                "logits=f32[1,9] "
                                "options=f32[1,4]{-1,1,0,1}|f32[1,4]{1,0,0,1}|f32[1,4]{1,1,2,1}|f32[1,4]{1,1,0,0} "
                                "counts=i32[1,4]{0,0,1,1}" ONE "step=i64[1]{0..0}" ONE_OUT "; "
                                "logits=f32[1,9] options=f32[1,4]{1,1,0,2} counts=i32[1,4]{0,2,1,1} "
                                "text=i64[1,3]{0..9} made=i64[1,2]{9..9} "
                                "token=i64[1,1] position=i64[1]{1..5} step=i64[1]{1..2}" ONE_OUT,
        "logits=f16[1,131072]{-9..9} options=f32[1,4]{0,1,0,1}|f32[1,4]{0.8,1,0,1}|f32[1,4]{0.8,0.9,0.05,1.1} "
        "counts=i32[1,4]{40,64,1,1}" BENCH "; "
        "logits=f16[1,131072]{-9..9}|f16[1,131072]{1..1} options=f32[1,4]{0.8,0.9,0,1} counts=i32[1,4]{0,64,1,1}" BENCH,
        reference::sample_token}}};
  return kOps;
}

}  // namespace pumice::engine
