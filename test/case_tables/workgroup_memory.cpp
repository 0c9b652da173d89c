// SPDX-License-Identifier: Apache-2.0
#include "test/case_tables/workgroup_memory.h"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace pumice::engine::test {
namespace {

// Numbers of SPIR-V's instructions and enumerants.
enum Op : uint32_t {
  kTypeBool = 20,
  kTypeInt,
  kTypeFloat,
  kTypeVector,
  kTypeArray = 28,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstantTrue = 41,
  kConstantFalse,
  kConstant,
  kConstantComposite,
  kSpecConstantTrue = 48,
  kSpecConstantFalse,
  kSpecConstant,
  kSpecConstantComposite,
  kSpecConstantOp,
  kVariable = 59,
  kDecorate = 71,
  kCompositeExtract = 81,
  kUConvert = 113,
  kBitcast = 124,
  kIAdd = 128,
  kISub = 130,
  kIMul = 132,
  kUDiv = 134,
  kSDiv,
  kUMod = 137,
  kLogicalOr = 166,
  kLogicalAnd,
  kLogicalNot,
  kSelect,
  kIEqual,
  kINotEqual,
  kUGreaterThan,
  kSGreaterThan,
  kUGreaterThanEqual,
  kSGreaterThanEqual,
  kULessThan,
  kSLessThan,
  kULessThanEqual,
  kSLessThanEqual,
  kShiftRight = 194,
  kShiftLeft = 196,
  kBitwiseOr,
  kBitwiseXor,
  kBitwiseAnd,
};
constexpr uint32_t kSpecId = 1, kWorkgroup = 4;

struct Module {
  std::map<uint32_t, std::vector<uint32_t>> made;  // the instruction that makes an id
  std::map<uint32_t, uint32_t> spec_ids;
  std::vector<uint32_t> shared;  // the types of pointers to shared memory
  std::span<const uint32_t> spec;

  // Lengths are 32-bit unsigned numbers; kernels use no other sign in them that would tell.
  uint32_t value(uint32_t id) const {
    const std::vector<uint32_t>& at = made.at(id);
    const auto from_spec = [&](uint32_t otherwise) {
      const auto found = spec_ids.find(id);
      return found != spec_ids.end() && found->second < spec.size() ? spec[found->second] : otherwise;
    };
    switch (at[0] & 0xffff) {
      case kConstant:
        return at[3];
      case kConstantTrue:
        return 1;
      case kConstantFalse:
        return 0;
      case kSpecConstant:
        return from_spec(at[3]);
      case kSpecConstantTrue:
        return from_spec(1);
      case kSpecConstantFalse:
        return from_spec(0);
      case kSpecConstantOp:
        return operation(at);
      default:
        throw std::runtime_error("no value of instruction " + std::to_string(at[0] & 0xffff));
    }
  }

  uint32_t operation(const std::vector<uint32_t>& at) const {
    if (at[3] == kCompositeExtract) return value(made.at(at[4]).at(3 + at.at(5)));
    if (at[3] == kSelect) return value(value(at[4]) != 0 ? at[5] : at[6]);
    const uint32_t a = value(at[4]), b = at.size() > 5 ? value(at[5]) : 0;
    switch (at[3]) {
      case kUConvert:
      case kBitcast:
        return a;
      case kIAdd:
        return a + b;
      case kISub:
        return a - b;
      case kIMul:
        return a * b;
      case kUDiv:
      case kSDiv:
        return a / b;
      case kUMod:
        return a % b;
      case kLogicalOr:
      case kBitwiseOr:
        return a | b;
      case kLogicalAnd:
      case kBitwiseAnd:
        return a & b;
      case kBitwiseXor:
        return a ^ b;
      case kLogicalNot:
        return a == 0;
      case kIEqual:
        return a == b;
      case kINotEqual:
        return a != b;
      case kUGreaterThan:
      case kSGreaterThan:
        return a > b;
      case kUGreaterThanEqual:
      case kSGreaterThanEqual:
        return a >= b;
      case kULessThan:
      case kSLessThan:
        return a < b;
      case kULessThanEqual:
      case kSLessThanEqual:
        return a <= b;
      case kShiftRight:
        return a >> b;
      case kShiftLeft:
        return a << b;
      default:
        throw std::runtime_error("no value of operation " + std::to_string(at[3]));
    }
  }

  uint64_t bytes(uint32_t type) const {
    const std::vector<uint32_t>& at = made.at(type);
    switch (at[0] & 0xffff) {
      case kTypeBool:
        return 4;
      case kTypeInt:
      case kTypeFloat:
        return at[2] / 8;
      case kTypeVector:
        return bytes(at[2]) * (at[3] == 3 ? 4 : at[3]);
      case kTypeArray:
        return bytes(at[2]) * value(at[3]);
      case kTypeStruct: {
        uint64_t all = 0;
        for (size_t i = 2; i < at.size(); ++i) all += bytes(at[i]);
        return all;
      }
      default:
        throw std::runtime_error("no size of type " + std::to_string(at[0] & 0xffff));
    }
  }
};

}  // namespace

uint64_t workgroup_bytes(std::span<const uint32_t> words, std::span<const uint32_t> spec) {
  Module module;
  module.spec = spec;
  for (size_t i = 5; i < words.size(); i += words[i] >> 16) {
    const uint32_t op = words[i] & 0xffff;
    const std::vector<uint32_t> at(words.begin() + static_cast<ptrdiff_t>(i),
                                   words.begin() + static_cast<ptrdiff_t>(i + (words[i] >> 16)));
    if (op >= kTypeBool && op <= kTypePointer) module.made[at[1]] = at;
    if (op >= kConstantTrue && op <= kSpecConstantOp) module.made[at[2]] = at;
    if (op == kDecorate && at[2] == kSpecId) module.spec_ids[at[1]] = at[3];
    if (op == kVariable && at[3] == kWorkgroup) module.shared.push_back(at[1]);
  }
  uint64_t all = 0;
  for (const uint32_t pointer : module.shared) all += module.bytes(module.made.at(pointer)[3]);
  return all;
}

}  // namespace pumice::engine::test
