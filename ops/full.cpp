// SPDX-License-Identifier: Apache-2.0
// full (one number everywhere) and arange: tensors made from their size. Only those with dynamic sizes are operators;
// the others are constants of the file.
#include "glsl/full.h"

#include "glsl/full_arange.h"
#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void full(Graph& graph, Args args) {
  const Tensor out = args.out();
  const std::vector<SymInt> sizes = args.sizes(1);
  uint32_t word = element_bits(args.real(0), out.dtype(), "full");
  if (device_bytes(out.dtype()) == 1) word |= word << 8;
  if (device_bytes(out.dtype()) <= 2) word |= word << 16;
  graph.dispatch({out}, {}, [=](Launch& launch) {
    Shape shape;
    for (const SymInt size : sizes) shape.push_back(launch.size(size));
    out.resize(shape);
    const auto pieces = static_cast<uint32_t>((out.bytes() + 15) / 16);
    launch.params(glsl::full::Params{.count = pieces, .word = word});
    launch.shader = &glsl::full::variant();
    launch.over(pieces);
  });
}

void arange(Graph& graph, Args args) {
  const Tensor out = args.out();
  const SymInt start = args.size(0), step = args.size(1), count = args.size(2);
  check(out.dtype() == DType::i64 || out.dtype() == DType::i32, "arange: the output is %s, must be an integer",
        name(out.dtype()));
  graph.dispatch({out}, {}, [=](Launch& launch) {
    out.resize({launch.size(count)});
    const int64_t first = launch.size(start), by = launch.size(step);
    u32(first + by * out.numel());  // throws when the last number does not fit
    launch.params(glsl::full_arange::Params{
        .count = u32(out.numel()), .start = static_cast<int32_t>(u32(first)), .step = static_cast<int32_t>(u32(by))});
    launch.shader = &glsl::full_arange::variant();
    launch.over(vec4_groups(out));
  });
}

constexpr std::string_view kI32[] = {"i32"};  // and i64, which the device keeps so
constexpr Axis kIntegers[] = {{"OUT", kI32}};

}  // namespace

std::span<const Op> full_ops() {
  static constexpr Op kOps[] = {
      {{"full", 1, "float value, sizes shape -> Tensor"},
       full,
       {},
       {"value=2.5 shape=[3,37] -> T[3,37]; "
        "value=-3 shape=[37] -> i8[37]; value=7 shape=[3] -> i64[3]; "
        "value=3 shape=[37] -> u8[37]",
        "value=2.5 shape=[1024,1024] -> f16[1024,1024]", reference::full}},
      {{"arange", 1, "size start, size step, size count -> Tensor"},
       arange,
       kIntegers,
       {"start=3 step=2 count=37 -> i32[37]; start=9 step=-3 count=7 -> i64[7]", "", reference::arange}}};
  return kOps;
}

}  // namespace pumice::engine
