// SPDX-License-Identifier: Apache-2.0
#include "graph/bind.h"

#include <cinttypes>

#include "base/error.h"

namespace pumice::engine {

PipelineKey pipeline_key(const Dispatch& dispatch, bool in_pieces) {
  return {.shader = dispatch.shader,
          .spec = dispatch.spec,
          .subgroup_size = dispatch.subgroup_size,
          .in_pieces = in_pieces};
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
