// SPDX-License-Identifier: Apache-2.0
// Sorts rows by their experts and cuts them into row blocks of at most ROWS rows with one expert: the list of
// linear/experts.glslh, which begins with {expert, begin, count, 0} for each of params.blocks blocks (count 0: nothing to do). An
// expert that does not exist is reported and counts as the first. One workgroup; the order of an expert's rows is any.
// Bindings: 0 out, 1 status, 2 chosen.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Chosen { uint chosen_[]; };
layout(push_constant) uniform Params {
  uint count;    // rows
  uint experts;  // at most MOST_EXPERTS
  uint rows;     // of a block
  uint blocks;   // that the list has
  uint call;
} params;

shared uint counts_[MOST_EXPERTS];
shared uint next_[MOST_EXPERTS];  // where the next row of an expert goes

uint expert_of(uint i, bool reports) {
  const uint expert = chosen_[i];
  if (expert < params.experts) return expert;
  if (reports) report_index(params.call, i, int(expert), int(params.experts));
  return 0u;
}

void put_block(uint block, uint expert, uint begin, uint count) {
  if (block >= params.blocks) return;
  out_[4u * block] = expert;
  out_[4u * block + 1u] = begin;
  out_[4u * block + 2u] = count;
  out_[4u * block + 3u] = 0u;
}

void main() {
  if (group() != 0u) return;
  for (uint e = lane(); e < params.experts; e += LANES) counts_[e] = 0u;
  barrier();
  for (uint i = lane(); i < params.count; i += LANES) atomicAdd(counts_[expert_of(i, true)], 1u);
  barrier();
  // Every lane adds up all experts; it writes down the blocks of its own.
  uint block = 0u, begin = 4u * params.blocks;
  for (uint e = 0u; e < params.experts; ++e) {
    const uint count = counts_[e], blocks = (count + params.rows - 1u) / params.rows;
    if (e % LANES == lane()) {
      next_[e] = begin;
      for (uint b = 0u; b < blocks; ++b)
        put_block(block + b, e, begin + b * params.rows, min(params.rows, count - b * params.rows));
    }
    block += blocks;
    begin += count;
  }
  for (uint b = block + lane(); b < params.blocks; b += LANES) put_block(b, 0u, 4u * params.blocks, 0u);
  barrier();
  for (uint i = lane(); i < params.count; i += LANES) out_[atomicAdd(next_[expert_of(i, false)], 1u)] = i;
}
