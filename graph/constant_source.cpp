// SPDX-License-Identifier: Apache-2.0
#include "graph/constant_source.h"

#include <cinttypes>

#include "graph/convert.h"
#include "serialization/hash.h"

namespace pumice::engine {

const std::string& ConstantSource::content(uint32_t constant) {
  const auto [at, fresh] = contents_.try_emplace(constant);
  if (fresh) {
    const auto print = fingerprint(bytes(constant));
    at->second = format("%016" PRIx64 "%016" PRIx64 "/%zu", print[0], print[1], bytes(constant).size());
  }
  return at->second;
}

// Kept, so that the bytes of an external constant are fetched and hashed once.
std::span<const std::byte> ConstantSource::bytes(uint32_t constant) {
  const auto [at, fresh] = bytes_.try_emplace(constant);
  if (fresh) at->second = constant_bytes(program_, constant, external_);
  return at->second;
}

std::span<const std::byte> ConstantSource::bytes(const ConstantRange& range) {
  const std::span<const std::byte> all = bytes(range.constant);
  const uint64_t scale = range.dtype == DType::i64 ? 2 : 1;
  if (range.begin * scale > all.size() || range.bytes * scale > all.size() - range.begin * scale)
    fail(Code::Internal, Stage::prepack, format("constants[%u]", range.constant), "%" PRIu64 " bytes at %" PRIu64,
         range.bytes, range.begin);
  return all.subspan(range.begin * scale, range.bytes * scale);
}

void ConstantSource::upload(const ConstantRange& range, Slice target) {
  const std::span<const std::byte> source = bytes(range);
  const auto must_fit = [&](uint64_t position, const std::byte* in) {
    if (position == kNoPosition) return;
    const bool integers = range.dtype == DType::i64;
    const uint64_t element = position + static_cast<uint64_t>(in - source.data()) / (integers ? 8 : 1);
    const std::string got = integers ? std::to_string(read_i64(in, position)) : "a bool that is neither 0 nor 1";
    fail(Code::BadGraph, Stage::prepack, format("constants[%u]", range.constant),
         "element %" PRIu64 " has no form on the device: %s", element, got.c_str());
  };
  if (range.dtype == DType::i64) {
    uploader_.put(source, target, {8, 4, [&](std::byte* out, const std::byte* in, size_t count) {
                                     must_fit(narrow_i64(out, in, count), in);
                                   }});
  } else if (range.dtype == DType::boolean) {
    uploader_.put(source, target, {1, 1, [&](std::byte* out, const std::byte* in, size_t count) {
                                     must_fit(copy_bool(out, in, count), in);
                                   }});
  } else {
    uploader_.put(source, target);
  }
}

}  // namespace pumice::engine
