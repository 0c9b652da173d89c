// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/tuned.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>

#include "base/log.h"
#include "base/siphash.h"
#include "glsl/linear_dot_gemv.h"
#include "glsl/linear_dot_tiled.h"
#include "glsl/linear_fragments.h"
#include "glsl/linear_gemv.h"
#include "glsl/linear_gemv_fragments.h"
#include "glsl/linear_gemv_row_fragments.h"
#include "glsl/linear_gemv_rows.h"
#include "glsl/linear_matrix.h"
#include "glsl/linear_matrix_int8.h"
#include "glsl/linear_matrix_int8_groups.h"
#include "glsl/linear_quantize.h"
#include "glsl/linear_split.h"
#include "glsl/linear_tiled.h"

namespace pumice::engine {
namespace {

std::string_view op_of(const LinearShape& s) {
  if (s.integers) return s.op;
  switch (s.weight) {
    case WeightType::q4:
      return "linear_q4gsw";
    case WeightType::q8:
      return s.group == 0 ? "linear_q8csw" : "linear_q8gsw";
    default:  // the op of integers whose scale of the output takes fp32 sums is none of these
      return (s.weight == WeightType::f16) == (s.dtype == DType::f16) ? "linear" : "";
  }
}

// Says once in a process why a choice is left to the table.
void tell_once(std::atomic<bool>& told, const std::string& text) {
  if (!told.exchange(true)) log(LogLevel::warning, "tuned kernels: %s", text.c_str());
}

}  // namespace

std::string product_text(const LinearShape& s) {
  const std::string_view op = op_of(s);
  if (op.empty() || (!s.integers && !s.op.empty())) return "";
  constexpr const char* kStorages[] = {"buffer", "texture3d", "texture2d", "textures"};
  const bool quantized = s.weight == WeightType::q4 || s.weight == WeightType::q8;
  const bool f16 = s.dtype == DType::f16, scale_f16 = quantized ? s.scale_f16 : f16;
  return format("op=%s,n=%" PRId64 ",k=%" PRId64 ",g=%u,dtype=%s,scale=%s,storage=%s", std::string(op).c_str(), s.n,
                s.k, s.group, f16 ? "f16" : "f32", scale_f16 ? "f16" : "f32",
                kStorages[s.textures + 2 * s.weight_texture]);
}

uint64_t linear_kernels_version() {
  static const uint64_t kVersion = [] {
    SipHash hash({0, 0});
    const auto add = [&](std::span<const uint8_t> bytes) { hash.add(bytes.first(bytes.size() / 8 * 8)); };
    const auto add_shader = [&](const Shader& any) { add(any.block->bytes()); };
    for (const Shader& each :
         {glsl::linear_dot_gemv::kVariants[0], glsl::linear_dot_tiled::kVariants[0],
          glsl::linear_fragments::kVariants[0], glsl::linear_gemv::kVariants[0],
          glsl::linear_gemv_fragments::kVariants[0], glsl::linear_gemv_row_fragments::kVariants[0],
          glsl::linear_gemv_rows::kVariants[0], glsl::linear_matrix::kVariants[0],
          glsl::linear_matrix_int8::kVariants[0], glsl::linear_matrix_int8_groups::kVariants[0],
          glsl::linear_quantize::kVariants[0], glsl::linear_split::kVariants[0], glsl::linear_tiled::kVariants[0]})
      add_shader(each);
    std::string names = PUMICE_VERSION;
    for (const LinearKernel& kernel : linear_kernels()) names += " " + std::string(kernel.name);
    return hash.add({reinterpret_cast<const uint8_t*>(names.data()), names.size()}).finish();
  }();
  return kVersion;
}

// Graphs have nodes for a split x only there: ops/linear/split_x.h.
bool can_tune(const LinearKernel& kernel, const LinearShape& shape, const Features& features) {
  const bool has_nodes = kernel.input != Input::split || features.has(Feature::fragments);
  return has_nodes && unsupported_reason(kernel, shape, features).empty();
}

const LinearKernel* tuned_linear(const LinearShape& s, const Features& features) {
  if (features.tuned == nullptr) return nullptr;
  static std::atomic<bool> told_version, told_name;
  if (features.tuned->version() != linear_kernels_version()) {
    tell_once(told_version, "measured with other kernels than this build has: `pumice tune` measures again");
    return nullptr;
  }
  const std::string_view name = features.tuned->find(product_text(s), s.m);
  if (name.empty()) return nullptr;
  const auto all = linear_kernels();
  const auto kernel = std::ranges::find(all, name, &LinearKernel::name);
  if (kernel == all.end()) {
    tell_once(told_name, "there is no kernel '" + printable(name) + "'; the table chooses in its place");
    return nullptr;
  }
  return can_tune(*kernel, s, features) ? &*kernel : nullptr;
}

}  // namespace pumice::engine
