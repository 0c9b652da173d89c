// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/blocks.h"

#include <cinttypes>

#include "glsl/include/core/modes.glslh"

namespace pumice::engine {
namespace {

uint32_t stored(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return STORED_F32;
    case DType::f16:
      return STORED_F16;
    case DType::i32:
    case DType::i64:
      return STORED_I32;
    case DType::i8:
      return STORED_I8;
    case DType::u8:
      return STORED_U8;
    default:
      return STORED_NUMBER;
  }
}

}  // namespace

QuantBlocks quant_blocks(const Shape& shape, const std::vector<int64_t>& block, const char* op) {
  check(block.size() == shape.size(), "%s: %zu block sizes for a tensor of rank %zu", op, block.size(), shape.size());
  QuantBlocks b;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t size = shape[d], part = block[d] == -1 ? std::max<int64_t>(size, 1) : block[d];
    const int64_t count = block[d] == -1 ? 1 : size / std::max<int64_t>(part, 1);
    check(part >= 1 && size % part == 0, "%s: blocks of %" PRId64 " do not divide dimension %zu, which is %" PRId64, op,
          part, d, size);
    b.grid.push_back(count);
    b.count *= count;
    if (__builtin_mul_overflow(b.numel, int64_t{u32(part)}, &b.numel))
      fail(Code::LimitExceeded, Stage::plan, "", "%s: a block has more than 2^63 elements", op);
    if (size == 1) continue;
    // A whole dimension continues the block before it, and single elements before a dimension continue its blocks.
    if (b.rank > 0 && (part == size || b.block[b.rank - 1] == 1)) {
      const bool continues = part == size;
      b.block[b.rank - 1] = u32(continues ? int64_t{b.block[b.rank - 1]} * size : part);
      b.size[b.rank - 1] = u32(int64_t{b.size[b.rank - 1]} * size);
    } else {
      b.size[b.rank] = u32(size);
      b.block[b.rank++] = u32(part);
    }
  }
  if (b.rank == 0) b.size[b.rank] = b.block[b.rank] = 1, b.rank = 1;
  return b;
}

Parameter parameter(const Args& args, uint32_t index, const char* op, bool integers) {
  Parameter parameter;
  if (!args.has(index)) return parameter;
  const Operand operand = args.operand(index);
  parameter.tensor = operand.tensor;
  parameter.number = static_cast<float>(operand.number);
  if (parameter.tensor) {
    const DType dtype = parameter.tensor.dtype();
    parameter.stored = stored(dtype);
    check(is_float(dtype) || (integers && parameter.stored != STORED_NUMBER), "%s: argument %u is %s", op, index,
          name(dtype));
  }
  return parameter;
}

void check_count(const Parameter& parameter, const QuantBlocks& blocks, const char* op, const char* what) {
  check(!parameter.tensor || parameter.tensor.numel() == blocks.count, "%s: %" PRId64 " %s for %" PRId64 " blocks", op,
        parameter.tensor ? parameter.tensor.numel() : 0, what, blocks.count);
}

}  // namespace pumice::engine
