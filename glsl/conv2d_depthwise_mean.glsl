// SPDX-License-Identifier: Apache-2.0
// conv2d_depthwise.glsl and the mean of each plane of its output as stored, which a squeeze and excite block reads next. The
// lanes of a workgroup share a plane, a block of neighbouring outputs each (conv/depthwise.glslh); or, COLUMNS 1, an output each
// of PLANES planes, which together are whole vec4 groups. Sums are fp32: of a lane, then of the lanes in a tree.
// Bindings: 0 out, 1 means [batch, channels], 2 x, 3 weight, 4 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#include "math/activation.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

#define IN DTYPE
#define OUT_ACCESS writeonly
#define X_BINDING 2
#include "conv/tensors.glslh"
layout(set = 0, binding = 1) buffer Means { uint means_[]; };
layout(set = 0, binding = 3) readonly buffer Weight { WORD(DTYPE) weight_[]; };
layout(set = 0, binding = 4) readonly buffer Bias { WORD(f32) bias_[]; };  // x again when there is none

layout(push_constant) uniform Params {
  CONV_PARAMS
} params;

float weight_at(uint channel, uint k) { return LOAD1(DTYPE, weight_, channel * params.k + k); }
#include "conv/depthwise.glslh"
#include "conv/depthwise_one.glslh"

layout(constant_id = 15) const uint PLANES = 1u;   // of a workgroup
layout(constant_id = 16) const uint OUTPUTS = 1u;  // of these, with COLUMNS 1

const uint kLanesOfPlane = LANES / PLANES;  // a power of two

shared float outputs_[OUTPUTS];
shared float sums_[LANES];

float total_ = 0.0;  // of the lane's outputs

#if defined(DTYPE_f16)
vec2 stored(vec2 v) { return rounded_to_f16(v, params.out_h >> 31); }
#else
vec2 stored(vec2 v) { return v; }
#endif

void finish(uint at, uint channel, vec4 v) {
  if (HAS_BIAS != 0u) v += LOAD1(f32, bias_, channel);
  v = activate(v, ACT);
  const vec2 first = stored(v.xy), second = stored(v.zw);
  total_ += first.x + first.y;
#if defined(DTYPE_f16)
  if (COLUMNS == 2u) {
    out_[at >> 2][(at >> 1) & 1u] = packHalf2x16(v.xy);
    return;
  }
#endif
  total_ += second.x + second.y;
  STORE4(DTYPE, out_, at >> 2, v);
}

// Neighbours of fp16 share a word, which two workgroups write: each clears and sets its own bits.
void store_mean(uint plane, float mean) {
#if defined(DTYPE_f16)
  const uint shift = (plane & 1u) * 16u;
  atomicAnd(means_[plane >> 1], ~(0xffffu << shift));
  atomicOr(means_[plane >> 1], (packHalf2x16(vec2(mean, 0.0)) & 0xffffu) << shift);
#else
  means_[plane] = floatBitsToUint(mean);
#endif
}

void convolve_singly(uint first_plane, uint planes, uint plane, uint at) {
  const uint pixels = params.out_h * params.out_w, of_plane = (plane - first_plane) * pixels;
  for (uint p = at; p < pixels; p += kLanesOfPlane) {
    const float v = plane < planes ? stored(vec2(output_of(plane * pixels + p))).x : 0.0;
    outputs_[of_plane + p] = v;
    total_ += v;
  }
  barrier();
  const uint count = (min(first_plane + PLANES, planes) - first_plane) * pixels;
  for (uint i = 4u * lane(); i < count; i += 4u * LANES) {
    const vec4 v = vec4(outputs_[i], outputs_[i + 1u], outputs_[i + 2u], outputs_[i + 3u]);
    STORE4(DTYPE, out_, (first_plane * pixels + i) >> 2, v);
  }
}

void main() {
  const uint planes = params.batch * params.groups, first_plane = group() * PLANES;
  const uint plane = first_plane + lane() / kLanesOfPlane, at = lane() % kLanesOfPlane;
  if (first_plane >= planes) return;  // the whole workgroup
  if (COLUMNS == 1u) {
    convolve_singly(first_plane, planes, plane, at);
  } else {
    for (uint block = at; block < plane_blocks(); block += kLanesOfPlane) convolve_block(plane, block);
  }
  sums_[lane()] = total_;
  barrier();
  for (uint n = kLanesOfPlane >> 1; n != 0u; n >>= 1) {
    if (at < n) sums_[lane()] += sums_[lane() + n];
    barrier();
  }
  if (at == 0u && plane < planes) store_mean(plane, sums_[lane()] / float(params.out_h * params.out_w));
}
