// SPDX-License-Identifier: Apache-2.0
// What every step of a recording reads and writes. place_barriers sets the barriers; find_hazard, which shares no code
// with it, finds what they miss.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pumice::engine {

struct Merged;  // graph/merge.h

// Memory of different spaces never overlaps. States are kFirstState + index, images kFirstImage + index. kFixed:
// weights, never written.
enum Space : uint32_t { kArena, kUpload, kDownload, kStatus, kCounters, kFixed, kFirstState, kFirstImage = 1u << 31 };

// Bytes [begin, end) of a space. `content` names what is in them, for find_hazard.
struct Range {
  uint32_t space;
  uint64_t begin, end;
  uint32_t content;
};

enum class StepKind : uint8_t { host, dispatch, copy };  // host: written before the submit; copy: writes[0] <- reads[0]

struct Step {
  StepKind kind;
  uint32_t node = ~0u;                        // index in Graph::Impl::nodes, for a dispatch
  std::shared_ptr<const Merged> merged = {};  // a dispatch that does several nodes, `node` first; else null
  bool barrier = false;                       // before it
  std::vector<Range> writes = {}, reads = {};
};

// Sets Step::barrier where a step depends on one since the last barrier: read after write, write after read, write
// after write. Status words are written by atomics, which need no order among themselves.
void place_barriers(std::vector<Step>& steps);

// The first pair of steps that may run at once but must not, or the first read of bytes that another content has
// overwritten; "" when there is none. It compares all pairs, so that it is simple enough to trust.
std::string find_hazard(std::span<const Step> steps);

}  // namespace pumice::engine
