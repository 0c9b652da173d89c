// SPDX-License-Identifier: Apache-2.0
// glsl/include/math/math.glslh and core/types.glslh against libm in fp64, over bit patterns of the whole range, through
// glsl/unary.glsl and glsl/cast.glsl: errors are in the unit that the header comment of math/math.glslh promises.
#include <cmath>
#include <cstring>

#include "glsl/cast.h"
#include "glsl/unary.h"
#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using glsl::unary::FUNCTION;
constexpr uint32_t kCount = 1u << 18;

// Runs `shader` over the vec4 groups of `in` (words of the buffer as they are) and returns the words of the result.
template <class Params>
std::vector<uint32_t> run(const Shader& shader, std::vector<uint32_t> spec, const std::vector<uint32_t>& in,
                          size_t out_words, uint32_t vec4s, const Params& params) {
  const auto device = test::open();
  Memory& memory = device->memory();
  const Buffer x = memory.buffer(in.size() * 4, MemoryKind::device, "x"),
               y = memory.buffer(out_words * 4, MemoryKind::device, "y"),
               down = memory.buffer(out_words * 4, MemoryKind::download, "answer");
  Uploader uploader(device, 1 << 20, 2);
  uploader.put(std::as_bytes(std::span(in)), test::whole(x));
  uploader.flush();
  Commands commands(device);
  commands.begin();
  const Slice slices[] = {test::whole(y), test::whole(x)};
  commands.dispatch(device->pipelines().get({&shader, std::move(spec), 0}), slices,
                    test::bytes(params).first(shader.push_bytes), {(vec4s + 63) / 64, 1, 1});
  commands.barrier();
  commands.copy(test::whole(y), test::whole(down));
  commands.host_barrier();
  commands.end();
  device->run(commands);
  std::vector<uint32_t> out(out_words);
  std::memcpy(out.data(), down.mapped(), out_words * 4);
  return out;
}

template <class To, class From>
To as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

// Bit patterns over all floats: every exponent and both signs, NaNs and infinities, and the values of interest.
std::vector<uint32_t> patterns() {
  std::vector<uint32_t> words(kCount);
  for (uint32_t i = 0; i < kCount; ++i) words[i] = i * 16381u;  // an odd step: mantissas vary
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN,         1.0f,  -1.0f,
                           0.5f, 1.5f,  2.5f,     -2.5f,     3.14159274f, 1e10f, 88.7f};
  for (size_t i = 0; i < std::size(special); ++i) words[i] = as<uint32_t>(special[i]);
  return words;
}

struct Case {
  const char* name;
  FUNCTION function;
  double (*exact)(double);
  double absolute, relative;
  double within = INFINITY;  // |x| up to which it is compared
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
}
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
  return x * sigmoid(x);
}
double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
double reciprocal(double x) {
  return 1 / x;
}

class Unary : public testing::TestWithParam<Case> {};

TEST_P(Unary, IsNearLibm) {
  const Case& test = GetParam();
  const std::vector<uint32_t> in = patterns();
  const auto out = run(glsl::unary::variant(glsl::unary::DTYPE::f32), {64, static_cast<uint32_t>(test.function)}, in,
                       kCount, kCount / 4, glsl::unary::Params{.vec4_count = kCount / 4});
  double worst = 0;
  int failures = 0;
  for (uint32_t i = 0; i < kCount && failures < 5; ++i) {
    const float x = as<float>(in[i]), got = as<float>(out[i]);
    if (std::fpclassify(x) == FP_SUBNORMAL || std::fabs(x) > test.within) continue;  // a driver may flush subnormals
    const double exact = test.exact(x);
    const float want = static_cast<float>(exact);
    if (!std::isfinite(want) || std::isnan(got) || std::isinf(got)) {
      const bool same = std::isnan(want) ? std::isnan(got)
                                         : got == want || (std::fabs(exact) > 3.402e38 && std::fabs(got) > 3.402e38f);
      EXPECT_TRUE(same) << test.name << "(" << x << ") = " << got << ", not " << want;
      failures += !same;
      continue;
    }
    const double error = std::fabs(got - exact), allowed = test.absolute + test.relative * std::fabs(exact) + 1.2e-38;
    worst = std::max(worst, error / allowed);
    EXPECT_LE(error, allowed) << test.name << "(" << x << ") = " << got << ", not " << exact;
    failures += error > allowed;
  }
  RecordProperty("worst_share_of_budget", std::to_string(worst));
}

constexpr double kUlp = 1.2e-7;
INSTANTIATE_TEST_SUITE_P(
    Math, Unary,
    testing::Values(
        Case{"erf", FUNCTION::erf, std::erf, 1.3e-7, 0}, Case{"tanh", FUNCTION::tanh, std::tanh, 2e-7, 0},
        Case{"sigmoid", FUNCTION::sigmoid, sigmoid, 2e-7, 0}, Case{"gelu", FUNCTION::gelu, gelu, 1e-6, 2e-7, 1e4},
        Case{"gelu_tanh", FUNCTION::gelu_tanh, gelu_tanh, 1e-6, 4e-7, 1e4},
        Case{"silu", FUNCTION::silu, silu, 1e-6, 4e-7, 1e4}, Case{"exp", FUNCTION::exp, std::exp, 0, 4 * kUlp},
        Case{"log", FUNCTION::log, std::log, 4.8e-7, 3 * kUlp}, Case{"sqrt", FUNCTION::sqrt, std::sqrt, 0, 3 * kUlp},
        Case{"rsqrt", FUNCTION::rsqrt, rsqrt, 0, 2 * kUlp},
        Case{"reciprocal", FUNCTION::reciprocal, reciprocal, 0, 2.5 * kUlp, 1e37},
        Case{"sin", FUNCTION::sin, std::sin, 1.5e-7, 0}, Case{"cos", FUNCTION::cos, std::cos, 1.5e-7, 0},
        Case{"round", FUNCTION::round, std::nearbyint, 0, 0}, Case{"floor", FUNCTION::floor, std::floor, 0, 0},
        Case{"trunc", FUNCTION::trunc, std::trunc, 0, 0}),
    [](const auto& named) { return std::string(named.param.name); });

float half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float size = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                     : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                      : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

std::vector<uint32_t> cast(const Shader& shader, const std::vector<uint32_t>& in, size_t out_words, uint32_t vec4s) {
  return run(shader, {64}, in, out_words, vec4s, glsl::cast::Params{.count = 4 * vec4s});
}

TEST(Cast, EveryHalfWidensExactly) {
  std::vector<uint32_t> in(1u << 15);
  for (uint32_t i = 0; i < in.size(); ++i) in[i] = (2 * i) | (2 * i + 1) << 16;
  const auto out = cast(glsl::cast::variant(glsl::cast::IN::f16, glsl::cast::OUT::f32), in, 1u << 16, 1u << 14);
  for (uint32_t i = 0; i < out.size(); ++i) {
    const float want = half_value(static_cast<uint16_t>(i)), got = as<float>(out[i]);
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
        << "half " << i << " gave " << got << ", not " << want;
  }
}

TEST(Cast, FloatToHalfRoundsToNearestEven) {
  std::vector<uint32_t> in(1u << 16);
  for (uint32_t i = 0; i < in.size(); ++i) {  // each half, its upper tie, and the neighbours of the tie
    const float low = half_value(static_cast<uint16_t>(i & 0x7bff)),
                high = half_value(static_cast<uint16_t>((i & 0x7bff) + 1));
    const float tie = std::isinf(high) ? low : low + (high - low) / 2;
    in[i] = as<uint32_t>(tie) + (i >> 15) - ((i >> 10) & 1);
  }
  const auto out = cast(glsl::cast::variant(glsl::cast::IN::f32, glsl::cast::OUT::f16), in, 1u << 15, 1u << 14);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < in.size(); ++i) {
    const float x = as<float>(in[i]), got = half_value(static_cast<uint16_t>(out[i / 2] >> (i % 2 * 16)));
    if (x < 6.2e-5f) continue;  // subnormal halves may be flushed
    const auto scale = static_cast<float>(std::ldexp(1.0, std::ilogb(x) - 10));
    wrong += got != std::nearbyint(x / scale) * scale && x < 65504.0f;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  const float in[] = {1.9f, -1.9f, 3e9f, -3e9f, NAN, INFINITY, 300.7f, -300.0f};
  std::vector<uint32_t> words(8);
  std::memcpy(words.data(), in, sizeof in);
  const auto i32 = cast(glsl::cast::variant(glsl::cast::IN::f32, glsl::cast::OUT::i32), words, 8, 2);
  const int32_t want[] = {1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX, 300, -300};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(static_cast<int32_t>(i32[i]), want[i]) << in[i];
  const auto u8 = cast(glsl::cast::variant(glsl::cast::IN::f32, glsl::cast::OUT::u8), words, 4, 2);
  EXPECT_EQ(u8[0], 0x00ffff01u);
  EXPECT_EQ(u8[1] >> 16, 0xd42cu);  // 300 and -300 modulo 256
  const auto boolean = cast(glsl::cast::variant(glsl::cast::IN::f32, glsl::cast::OUT::boolean), words, 4, 2);
  EXPECT_EQ(boolean[0], 0x01010101u);
  EXPECT_EQ(boolean[1], 0x01010101u);  // NaN is not zero
}

}  // namespace
}  // namespace pumice::engine
