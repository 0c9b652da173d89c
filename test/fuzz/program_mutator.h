// SPDX-License-Identifier: Apache-2.0
// A changed byte breaks a hash, so this mutator changes only the program section and writes a right header before it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "test/serialization/write.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace pumice::engine::test {

// Errors are what hostile bytes may lead to, but none that says the engine is wrong.
inline void must_be_typed(const Error& error, bool expected) {
  if (expected && error.code() != Code::Internal) return;
  std::fprintf(stderr, "%s at %s: %s\n", name(error.code()), error.path().c_str(), error.what());
  std::abort();
}

// Makes two fields lead to one place, be it a table, a text or a list: nesting and sharing, which flipped bytes seldom
// make. The schema has no table within itself, so that it needs no fuzz target of its own.
inline void share(Bytes& program, unsigned seed) {
  const size_t words = program.size() / 4;
  if (words == 0) return;
  std::minstd_rand random(seed);
  const size_t from = random() % words * 4, to = random() % words * 4;
  put(program, to, get(program, from, 4) + from - to, 4);
}

inline size_t mutate_program(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size < 64 || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const Bytes file(bytes, bytes + size);
  const uint64_t length = std::min<uint64_t>(get(file, 24, 8), size - 64);
  const uint64_t constants = std::min<uint64_t>(std::max<uint64_t>(get(file, 40, 8), 64 + length), size);
  if (max_size < 192 + (size - constants)) return size;
  Bytes program(max_size - 128 - (size - constants));
  std::copy_n(bytes + 64, std::min<uint64_t>(length, program.size()), program.begin());
  const uint64_t used = std::min<uint64_t>(length, program.size());
  if (seed % 16 == 1) {
    program.resize(used);
    share(program, seed);
  } else {
    program.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(program.data()), used, program.size()));
  }
  const Bytes out = pumice::engine::write_file(program, std::span(file).subspan(constants));
  if (out.size() > max_size) return size;
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

}  // namespace pumice::engine::test
