// SPDX-License-Identifier: Apache-2.0
#include "graph/bind.h"

#include <cinttypes>
#include <cstring>

#include "base/error.h"

namespace pumice::engine {

PipelineKey pipeline_key(const Dispatch& dispatch, bool in_pieces) {
  return {.shader = dispatch.shader,
          .spec = dispatch.spec,
          .subgroup_size = dispatch.subgroup_size,
          .in_pieces = in_pieces};
}

std::vector<std::byte> push_constants(const Memory& memory, const Dispatch& dispatch, std::span<const Slice> bindings) {
  std::vector<std::byte> push = dispatch.push;
  for (const BindingAddress& each : dispatch.addresses) {
    const Slice& slice = bindings[each.binding];
    if (slice.buffer == nullptr || each.bytes > slice.bytes)
      fail(Code::Internal, Stage::encode, "", "%s reads %" PRIu64 " bytes by an address, of binding %zu of %" PRIu64,
           dispatch.shader->name, each.bytes, each.binding, slice.bytes);
    const uint64_t address = memory.address(slice);
    std::memcpy(push.data() + each.push, &address, sizeof(address));
  }
  return push;
}

Slice binding_range(const Slice& tensor, const BindingRange& range) {
  if (tensor.view != nullptr) return tensor;
  const uint64_t bytes = range.bytes != 0 ? (range.bytes + 15) & ~uint64_t{15} : tensor.bytes - range.begin;
  if (range.begin > tensor.bytes || bytes > tensor.bytes - range.begin)
    fail(Code::Internal, Stage::encode, "", "bytes %" PRIu64 " to %" PRIu64 " of a tensor of %" PRIu64, range.begin,
         range.begin + bytes, tensor.bytes);
  return {tensor.buffer, tensor.offset + range.begin, bytes};
}

}  // namespace pumice::engine
