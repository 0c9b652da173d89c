// SPDX-License-Identifier: Apache-2.0
// Random numbers of a counter-based generator: the same seed [2] (i32: its low and high word), stream and shape give
// the same numbers. kind 0: uniform in [0, 1), 1: normal with mean 0 and deviation 1, both f32; 2: 31 bits, i32.
//
// Error of normal ones: |err| <= 2^-17. The radius is at most 5.8: 1.6e-6 of it by log_1_plus (relative 5e-7, halved by
// the root) and the root; by the rounded angle, up to 2 pi, 4.2e-7 and by sine or cosine 1.5e-7 of the radius, 3.3e-6.
#include <array>
#include <cmath>

#include "glsl/random.h"
#include "ops/op.h"
#include "ops/shared/host_call.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

enum Kind : int64_t { kUniform, kNormal, kBits };

void random(Graph& graph, Args args) {
  const Tensor seed = args.tensor(0), out = args.out();
  const int64_t stream = args.integer(1), kind = args.integer(2);
  const std::vector<SymInt> sizes = args.sizes(3);
  check(seed.dtype() == DType::i32, "random: the seed is %s, not i32", name(seed.dtype()));
  check(stream >= 0 && stream <= INT32_MAX, "random: the stream %lld", static_cast<long long>(stream));
  check(kind >= kUniform && kind <= kBits, "random: kind %lld is not in 0..2", static_cast<long long>(kind));
  check(out.dtype() == (kind == kBits ? DType::i32 : DType::f32), "random: the output is %s", name(out.dtype()));
  graph.dispatch({out}, {seed}, [=](Launch& launch) {
    check(seed.numel() == 2, "random: a seed of %lld words, not 2", static_cast<long long>(seed.numel()));
    Shape shape;
    for (const SymInt size : sizes) shape.push_back(launch.size(size));
    out.resize(shape);
    if (out.numel() == 0) return;
    launch.params(glsl::random::Params{.count = u32(out.numel()), .stream = static_cast<uint32_t>(stream)});
    launch.shader = &glsl::random::variant(glsl::random::dtype(out.dtype()));
    launch.over(vec4_groups(out));
    launch.spec.push_back(kind == kNormal);
  });
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> at, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * at[0], b = uint64_t{0xcd9e8d57} * at[2];
    at = {static_cast<uint32_t>(b >> 32) ^ at[1] ^ key[0], static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ at[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9e3779b9, key[1] + 0xbb67ae85};
  }
  return at;
}

void reference(HostCall& call) {
  const std::vector<double>& seed = call.tensor(0).values;
  const auto word = [&](size_t i) { return static_cast<uint32_t>(static_cast<int64_t>(seed[i])); };
  const auto uniform = [](uint32_t bits) { return static_cast<double>(bits >> 8) * 0x1p-24; };
  for (uint32_t i = 0; i < call.out().count(); ++i) {
    const auto bits = philox({i / 4, 0, static_cast<uint32_t>(call.integer(1)), 0}, {word(0), word(1)});
    const uint32_t at = i % 4;
    if (call.integer(2) == kBits) {
      call.out().push(static_cast<double>(bits[at] >> 1));
    } else if (call.integer(2) == kUniform) {
      call.out().push(uniform(bits[at]));
    } else {
      const double radius = std::sqrt(-2 * std::log(1 - uniform(bits[at & 2])));
      const double angle = 2 * M_PI * uniform(bits[at | 1]);
      call.out().push(radius * (at % 2 == 0 ? std::cos(angle) : std::sin(angle)), 0x1p-17);
    }
  }
}

constexpr Axis kAxes[] = {{"OUT", glsl::random::kDTYPE}};

}  // namespace

std::span<const Op> random_ops() {
  static constexpr Op kOps[] = {
      {{"random", 1, "Tensor seed, int stream, int kind, sizes shape -> Tensor"},
       random,
       kAxes,
       {"seed=i32[2]{-2147483648..2147483647} stream=0|7 kind=0|1 shape=[3,37] -> f32[3,37]; "
        "seed=i32[2]{-9..9} stream=1 kind=2 shape=[5,9] -> i32[5,9]",
        "seed=i32[2]{-9..9} stream=1 kind=0|1 shape=[1024,1024] -> f32[1024,1024]", reference},
       "i64"}};
  return kOps;
}

}  // namespace pumice::engine
