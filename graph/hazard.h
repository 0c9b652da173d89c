// SPDX-License-Identifier: Apache-2.0
// What every step of a recording touches, and two opinions on where barriers belong: place_barriers puts them,
// find_hazard, which shares no code with it, says what they miss.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pumice::engine {

// Memory that does not overlap between spaces. States are kFirstState + index, images kFirstImage + index. kFixed:
// weights, never written.
enum Space : uint32_t { kArena, kUpload, kDownload, kStatus, kFixed, kFirstState, kFirstImage = 1u << 31 };

// Bytes [begin, end) of a space. `content` names what is in them, for find_hazard.
struct Range {
  uint32_t space;
  uint64_t begin, end;
  uint32_t content;
};

enum class StepKind : uint8_t { host, dispatch, copy };  // host: written before the submit; copy: writes[0] <- reads[0]

struct Step {
  StepKind kind;
  uint32_t node = ~0u;   // index in Graph::Impl::nodes, for a dispatch
  bool barrier = false;  // before it
  std::vector<Range> writes = {}, reads = {};
};

// Sets Step::barrier where a step depends on one since the last barrier: read after write, write after read, write
// after write. Status words are written by atomics, which need no order among themselves.
void place_barriers(std::vector<Step>& steps);

// The first pair of steps that may run at once but must not, or the first read of bytes that something else has
// overwritten;
// "" when there is none. Naive on purpose.
std::string find_hazard(std::span<const Step> steps);

}  // namespace pumice::engine
