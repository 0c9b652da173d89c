// SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions: sum, mean, amax, amin, prod, any, all, var, norm (Euclidean), argmax, argmin. An
// empty list of dims means all. Sums of floats are fp32. Sums of integers are i64: one
// that 32 bits cannot hold is an error of the run. A sum as i32, sum(dtype=int32), wraps.
//
// Error of floats, n elements, of which each goes through s additions, n below 64 and ceil(n / 64) + 7 from there on:
//   sum, mean    |err| <= u |y| + 2^-24 * s * sum|x|, of mean (s + 3) * mean|x|
//   prod         (u + 2^-24 * n) |y|
//   norm         (u + 2^-24 * (s / 2 + 8)) |y|
//   var          (u + 2^-24 * (s + 8)) |y| + n / (n - correction) * d^2, d = 2^-24 * (s + 2) * mean|x|
// and at most 2^-18 of the largest result. The others choose: exact.
#include "glsl/reduce.h"

#include <algorithm>
#include <bit>

#include "glsl/include/core/modes.glslh"
#include "ops/conv/depthwise_mean.h"
#include "ops/conv/image_pooling.h"
#include "ops/op.h"
#include "ops/reference/reductions.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using glsl::reduce::WORK;

struct Reduction {
  const char* op;
  uint32_t code;
  std::vector<bool> over;  // for each dimension
  bool keep;
  double correction = 0;  // of var
  uint32_t call = 0;      // the operator call that reports an overflow
};

// From this many elements on, a workgroup reduces together what one invocation would reduce alone; neighbours sooner,
// as it reads them faster (H200: 49 of each of 1,152 outputs 21 -> 4 us; but 20 of each of 100,000 11 -> 19).
constexpr uint32_t kTogether = 64, kNeighboursTogether = 32;
// Vec4 groups of outputs of which a GPU has few: there a workgroup reduces as little together as of neighbours.
constexpr int64_t kFewOutputs = 4096;

// Lanes of a workgroup that reduces `count` neighbours of each of four outputs: each lane has two vec4 groups of an
// output, or more. A CPU driver runs all lanes one after another.
uint32_t lanes_by_rows(const Features& features, uint32_t count) {
  const uint32_t most = features.cpu ? 32 : std::min(512U, std::bit_floor(features.max_invocations));
  return std::clamp(std::bit_ceil((count + 7) / 8) * 4, 32U, most);
}

// The dtype of a sum or a product of integers.
bool is_exact(uint32_t code, DType in, DType out) {
  return (code == REDUCE_SUM || code == REDUCE_PROD) && !is_float(in) && out == DType::i64;
}

glsl::reduce::RESULT result_axis(uint32_t code, DType in, DType out, const char* op) {
  using glsl::reduce::RESULT;
  if (is_exact(code, in, out)) return RESULT::i64;
  if (in == out) return RESULT::same;
  if (out == DType::boolean) return RESULT::boolean;
  check(out == DType::i64 || out == DType::i32, "%s: no kernel from %s to %s", op, name(in), name(out));
  return RESULT::i32;
}

void launch(Launch& launch, const Reduction& reduction, Tensor out, Tensor in) {
  const Shape strides = contiguous_strides(in.shape());
  Shape shape, kept_sizes, kept_strides, sizes, steps;
  for (size_t d = 0; d < in.rank(); ++d) {
    const bool over = reduction.over[d];
    (over ? sizes : kept_sizes).push_back(in.dim(d));
    (over ? steps : kept_strides).push_back(strides[d]);
    if (!over || reduction.keep) shape.push_back(over ? 1 : in.dim(d));
  }
  out.resize(shape);
  if (out.numel() == 0) return;
  const Walk outer = collapse(kept_sizes, kept_strides), reduced = collapse(sizes, steps);
  check(outer.rank + reduced.rank <= kMaxRank, "%s: %u separate dimensions, the limit is %u", reduction.op,
        outer.rank + reduced.rank, kMaxRank);
  glsl::reduce::Params params{};
  params.count = u32(out.numel());
  params.reduced = u32(product(sizes, 0, sizes.size()));
  check(params.reduced > 0 || reduction.code < REDUCE_ARGMAX, "%s: nothing to choose from", reduction.op);
  params.kept_rank = outer.rank;
  params.rank = outer.rank + reduced.rank;
  params.call = reduction.call;
  params.divisor = static_cast<float>(std::max(0.0, params.reduced - reduction.correction));
  std::copy_n(reduced.size.begin(), reduced.rank, std::copy_n(outer.size.begin(), outer.rank, params.size));
  std::copy_n(reduced.stride.begin(), reduced.rank, std::copy_n(outer.stride.begin(), outer.rank, params.stride));
  launch.params(params);

  uint32_t offsets = 0;  // all strides but that between neighbouring outputs
  for (uint32_t d = 0; d + 1 < outer.rank; ++d) offsets |= outer.stride[d];
  for (uint32_t d = 0; d < reduced.rank; ++d) offsets |= reduced.stride[d];
  bool whole_vec4s =
      outer.rank > 0 && outer.stride[outer.rank - 1] == 1 && outer.size[outer.rank - 1] % 4 == 0 && offsets % 4 == 0;
  const bool few = !launch.features.cpu && vec4_groups(out) <= launch.features.filling(kFewOutputs);
  WORK work = params.reduced >= (few ? kNeighboursTogether : kTogether) ? WORK::by_lanes : WORK::by_one;
  uint32_t lanes = params.reduced >= 512 ? 128 : 64;
  if (reduced.rank == 1 && reduced.stride[0] == 1 && params.reduced >= kNeighboursTogether) {
    work = WORK::by_rows;
    lanes = lanes_by_rows(launch.features, params.reduced);
    uint32_t begins = params.reduced;  // of rows
    for (uint32_t d = 0; d < outer.rank; ++d) begins |= outer.stride[d];
    whole_vec4s = begins % 4 == 0;
  }
  launch.over(uint64_t{vec4_groups(out)} * (work == WORK::by_one ? 1 : lanes), lanes);
  launch.spec.insert(launch.spec.end(), {reduction.code, static_cast<uint32_t>(work), whole_vec4s});
  const auto first = std::find(reduction.over.begin(), reduction.over.end(), true);
  const bool rows = std::find(first, reduction.over.end(), false) == reduction.over.end();  // of the last dimensions
  if (rows) launch.outer = static_cast<uint32_t>(first - reduction.over.begin());
  const auto result = result_axis(reduction.code, in.dtype(), out.dtype(), reduction.op);
  launch.shader = &glsl::reduce::variant(glsl::reduce::dtype(in.dtype()), result);
}

void reduce(Graph& graph, const Args& args, Reduction reduction) {
  const Tensor in = args.tensor(0), out = args.out();
  const DType from = in.dtype();
  const std::vector<int64_t> dims = args.ints(1);
  reduction.over.assign(in.rank(), dims.empty());
  for (const int64_t d : dims) reduction.over[axis(d, in.rank(), reduction.op)] = true;
  reduction.keep = args.boolean(2);
  DType to = from;
  switch (reduction.code) {
    case REDUCE_SUM:
    case REDUCE_PROD:
      to = is_float(from) ? from : DType::i64;
      break;
    case REDUCE_ANY:
    case REDUCE_ALL:
      to = DType::boolean;
      break;
    case REDUCE_ARGMAX:
    case REDUCE_ARGMIN:
      to = DType::i64;
      break;
    case REDUCE_MEAN:
    case REDUCE_VAR:
    case REDUCE_NORM:
      check(is_float(from), "%s: needs floats, got %s", reduction.op, name(from));
      break;
    default:
      break;
  }
  check(out.dtype() == to || (to == DType::i64 && out.dtype() == DType::i32), "%s: %s gives %s, the output is %s",
        reduction.op, name(from), name(to), name(out.dtype()));
  const std::vector<bool> pixels = {false, false, true, true};
  if (reduction.code == REDUCE_MEAN && reduction.over == pixels &&
      (try_depthwise_mean(graph, in, out) || try_image_mean(graph, reduction.op, in, out)))
    return;
  reduction.call = graph.call_id();
  const bool exact = is_exact(reduction.code, from, out.dtype());
  graph.dispatch(reporting(graph, out, exact), {in}, [=](Launch& l) { launch(l, reduction, out, in); });
}

// In the order of the codes.
constexpr const char* kNames[] = {"sum", "mean", "amax", "amin",   "prod",  "any",
                                  "all", "var",  "norm", "argmax", "argmin"};
static_assert(std::size(kNames) == REDUCE_ARGMIN + 1);

template <uint32_t kCode>
void reduce(Graph& graph, Args args) {
  reduce(graph, args, {.op = kNames[kCode], .code = kCode, .over = {}, .keep = false, .correction = 0});
}

void var(Graph& graph, Args args) {
  reduce(graph, args, {.op = "var", .code = REDUCE_VAR, .over = {}, .keep = false, .correction = args.real(3)});
}

// The dtypes that an operator takes are a range of the shader's axis.
static_assert(glsl::reduce::kDTYPE[1] == "f16" && glsl::reduce::kDTYPE[2] == "i32");
constexpr Axis kFloats[] = {{"DTYPE", std::span(glsl::reduce::kDTYPE).first(2)}};
static_assert(glsl::reduce::kDTYPE[5] == "boolean");
constexpr Axis kNumbers[] = {{"DTYPE", std::span(glsl::reduce::kDTYPE).first(5)}};
constexpr Axis kAll[] = {{"DTYPE", glsl::reduce::kDTYPE}};

// Of the kernel bench: inside of a row, over many elements by a workgroup, to one number.
#define FLOAT_CASES(RANGE)                                           \
  "x=T[5,37]" RANGE " dims=[1] keepdim=0 -> T[5]; x=T[3,80,7]" RANGE \
  " dims=[0,1] keepdim=1 -> T[1,1,7]; "                              \
  "x=T[9]" RANGE " dims=[] keepdim=0 -> T[]; x=T[4,700]" RANGE " dims=[-1] keepdim=0 -> T[4]"
#define SUM_CASES                                                                                                \
  "; x=i32[5,7]{-9..9} dims=[1] keepdim=0 -> i64[5]; x=u8[5,7] dims=[0] keepdim=0 -> i32[7]; "                   \
  "x=i64[3,9]{1000000000..2000000000} dims=[1] keepdim=0 -> i64[3]; x=bool[9,90] dims=[1] keepdim=0 -> i64[9]; " \
  "x=bool[9,90] dims=[1] keepdim=0 -> i32[9]"
constexpr std::string_view cases_of(uint32_t code) {
  switch (code) {
    case REDUCE_ANY:
    case REDUCE_ALL:
      return "x=i32[5,37]{0..1} dims=[1] keepdim=0 -> bool[5]; x=bool[3,80,7] dims=[0,1] keepdim=1 -> bool[1,1,7]; "
             "x=i64[9,2]{-1..1} dims=[1] keepdim=0 -> bool[9]";
    case REDUCE_ARGMAX:
    case REDUCE_ARGMIN:
      return "x=T[5,37] dims=[1] keepdim=0 -> i64[5]; x=T[80,7]|T[80,7]{special} dims=[0] keepdim=1 -> i32[1,7]; "
             "x=i32[5,90]{0..3} dims=[1] keepdim=0 -> i64[5]";
    case REDUCE_MEAN:
    case REDUCE_NORM:
      return FLOAT_CASES("");
    case REDUCE_MAX:
    case REDUCE_MIN:
      return FLOAT_CASES("")
          "; x=T[5,37]{special}|T[5,90]{special} dims=[1] keepdim=0 -> T[5]; "
          "x=i32[5,37] dims=[1] keepdim=0 -> i32[5]; x=i64[90] dims=[] keepdim=0 -> i64[]";
    case REDUCE_PROD:  // of numbers around 1: neither fp32 nor fp16 overflows
      return FLOAT_CASES("{0.5..1.6}") "; x=T[5,7] dims=[1] keepdim=0 -> T[5]" SUM_CASES;
    default:
      return FLOAT_CASES("") SUM_CASES;
  }
}
#undef FLOAT_CASES
#undef SUM_CASES

template <uint32_t kCode>
void reference_of(HostCall& call) {
  reference::reduce(call, kCode);
}

template <uint32_t kCode>
constexpr Op reduce_op() {
  constexpr bool kOfFloats = kCode == REDUCE_MEAN || kCode == REDUCE_NORM;
  constexpr bool kOfNumbers = kCode == REDUCE_ARGMAX || kCode == REDUCE_ARGMIN;
  return {{kNames[kCode], 1, "Tensor x, ints dims, bool keepdim -> Tensor"},
          reduce<kCode>,
          kOfFloats    ? kFloats
          : kOfNumbers ? kNumbers
                       : kAll,
          {cases_of(kCode), "", reference_of<kCode>}};
}

}  // namespace

std::span<const Op> reduce_ops() {
  static constexpr Op kOps[] = {
      reduce_op<REDUCE_SUM>(),
      reduce_op<REDUCE_MEAN>(),
      reduce_op<REDUCE_MAX>(),
      reduce_op<REDUCE_MIN>(),
      reduce_op<REDUCE_PROD>(),
      reduce_op<REDUCE_ANY>(),
      reduce_op<REDUCE_ALL>(),
      reduce_op<REDUCE_NORM>(),
      reduce_op<REDUCE_ARGMAX>(),
      reduce_op<REDUCE_ARGMIN>(),
      {{"var", 1, "Tensor x, ints dims, bool keepdim, float correction -> Tensor"},
       var,
       kFloats,
       {"x=T[5,37] dims=[1] keepdim=0 correction=0|1 -> T[5]; x=T[3,80,7] dims=[0,1] keepdim=1 correction=1 -> "
        "T[1,1,7]",
        "", reference_of<REDUCE_VAR>}},
  };
  return kOps;
}

}  // namespace pumice::engine
