// SPDX-License-Identifier: Apache-2.0
// One compiled variant of a shader, and what glsl/compile_shader.py read back from its SPIR-V. Only the generated
// headers (glsl/<stem>.h in the build tree, namespace pumice::engine::glsl::<stem>) define some.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pumice::engine {

// Optional features that a shader may need; everything else is Vulkan 1.1 core. The bit of feature F is 1 << F.
// `fragments` and `fragments_int8` are measured when a device is opened: the registers hold a cooperative matrix as in
// vulkan/probe.h.
// `robust` is needed by none: buffer accesses of all kernels stay within their bindings (robustBufferAccess), as a
// second net. `split` is needed by none either: products of fp32 by two fp16 (glsl/linear_split.glsl), where the device
// can. `addresses`: kernels may be given the addresses of buffers. `persistent`, needed by none: dispatches whose
// workgroups wait for each other (glsl/decoder_layers.glsl), where the device can and its compute units are known.
// `float_atomics`: fp32 added by atomics, to buffers and to shared memory, so in any order.
enum class Feature : uint8_t {
  float16,
  int8,
  int16,
  int64,
  storage16,
  storage8,
  int_dot,
  coopmat,
  memory_model,
  bfloat16,
  subgroup_arithmetic,
  subgroup_shuffle,
  subgroup_clustered,
  subgroup_size_control,
  fragments,
  robust,
  split,
  addresses,
  atomic64,
  persistent,
  float_atomics,
  fragments_int8,
};
inline constexpr uint32_t kNumFeatures = 22;
// What a device may have and nothing uses unless it is asked for ("+float_atomics"), as results then differ from run to
// run.
inline constexpr uint64_t kAskedFor = uint64_t{1} << static_cast<uint8_t>(Feature::float_atomics);
const char* name(Feature feature);  // "float16", "int_dot", ... as spelled in PUMICE_FEATURES
constexpr uint64_t bit(Feature feature) {
  return uint64_t{1} << static_cast<uint8_t>(feature);
}

// The SPIR-V of all variants of a shader file, one after the other, from `begin` to `end`; packed where that is not
// 4 * num_words. Only the linker knows the end: what is compiled is the same for packed and other blocks.
struct Spirv {
  const void* begin;
  const void* end;
  uint32_t num_words;

  std::span<const uint8_t> bytes() const {
    const auto* first = static_cast<const uint8_t*>(begin);
    return {first, reinterpret_cast<uintptr_t>(end) - reinterpret_cast<uintptr_t>(begin)};
  }
  bool is_packed() const { return bytes().size() != size_t{num_words} * sizeof(uint32_t); }
};

struct Shader {
  const char* name;     // "softmax[f16]"
  const Spirv* block;   // glsl/spirv.h unpacks it
  uint32_t first_word;  // of the variant, in the unpacked block
  uint32_t num_words;
  uint32_t num_bindings;  // 0 .. num_bindings - 1 of set 0
  uint32_t push_bytes;    // size of the push-constant block; at most 128
  uint32_t num_spec;      // specialization constants 0 .. num_spec - 1; 0 is local_size_x
  uint64_t features;      // bits of Feature that the variant's capabilities need
  uint64_t kinds = 0;     // of the bindings: two bits each, see Binding; 0: all are storage buffers
};

// buffer: a storage buffer. texture: an image that is only read (a sampled image, fetched texel by texel). image: a
// storage image, written.
enum class Binding : uint8_t { buffer, texture, image };
inline constexpr uint32_t kBindingKinds = 3, kMaxBindings = 32;
constexpr Binding binding_kind(const Shader& shader, size_t index) {
  return static_cast<Binding>(shader.kinds >> (2 * index) & 3);
}

// One `#pragma variant NAME a b c` line of a shader, for tables that Python reads.
struct Axis {
  std::string_view name;
  std::span<const std::string_view> values;
};

// Of a combination of an axis' values each that `#pragma without` leaves out, in place of where its variant is. Asking
// for it is a mistake of an operator: an error of Code::Internal that names it. `index`: in the product of the axes.
inline constexpr uint16_t kLeftOut = 0xffff;
[[noreturn]] void left_out(std::string_view stem, std::span<const Axis> axes, uint32_t index);

}  // namespace pumice::engine
