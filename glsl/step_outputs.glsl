// SPDX-License-Identifier: Apache-2.0
// What a step leaves to the next one: ops/step_state.cpp. By one workgroup; made, token and step may be written in place.
// Bindings: 0 made, 1 token, 2 step, 3 status, 4 to 6 the same before, 7 chosen, 8 steps.
#version 450
#extension GL_GOOGLE_include_directive : require
#define STATUS_BINDING 3
#include "core/launch.glslh"
#include "core/status.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer NewMade { WORD(i32) new_made_[]; };
layout(set = 0, binding = 1) writeonly buffer NewToken { WORD(i32) new_token_[]; };
layout(set = 0, binding = 2) writeonly buffer NewStep { WORD(i32) new_step_[]; };
layout(set = 0, binding = 4) readonly buffer Made { WORD(i32) made_[]; };
layout(set = 0, binding = 5) readonly buffer Token { WORD(i32) token_[]; };
layout(set = 0, binding = 6) readonly buffer Step { WORD(i32) step_[]; };
layout(set = 0, binding = 7) readonly buffer Chosen { WORD(i32) chosen_[]; };
layout(set = 0, binding = 8) readonly buffer Steps { WORD(i32) steps_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint columns;  // of made
  uint vec4s;    // vec4 groups of made
  uint call;
} params;

shared int step_number_;  // read once: the new one is written to the same memory

void main() {
  if (lane() == 0u) step_number_ = LOAD1(i32, step_, 0);
  barrier();
  const int step = step_number_;
  for (uint q = lane(); q < params.vec4s; q += LANES) {
    ivec4 made = LOAD4(i32, made_, q);
    for (uint k = 0u; k < 4u; ++k) {
      const uint i = 4u * q + k, row = i / params.columns;
      if (row < params.rows && int(i % params.columns) == step) made[k] = LOAD1(i32, chosen_, row);
    }
    STORE4(i32, new_made_, q, made);
  }
  for (uint q = lane(); q < (params.rows + 3u) / 4u; q += LANES) new_token_[q] = chosen_[q];
  if (lane() != 0u) return;
  if (step < 0 || step >= int(params.columns)) report_index(params.call, 0u, step, int(params.columns));
  const int after = step + 1;
  new_step_[0] = uvec4(after < LOAD1(i32, steps_, 0) ? after : 0, 0, 0, 0);
}
