// SPDX-License-Identifier: Apache-2.0
// Loads arbitrary bytes: the four gates may throw an Error, and nothing else may go wrong.
//
//   fuzz_load -max_len=20000 build/fuzz-corpus test/fuzz/corpus/load
//
// A changed byte breaks a hash, so the mutator changes only the program section and writes a right header before it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/model.h"
#include "test/serialization/write.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

void load(std::span<const std::byte> file) {
  try {
    pumice::engine::validate(file);
  } catch (const pumice::engine::Error& error) {
    if (error.code() != pumice::engine::Code::Internal) return;
    std::fprintf(stderr, "Internal at %s: %s\n", error.path().c_str(), error.what());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  load({bytes, size});
  pumice::engine::test::Bytes resealed(bytes, bytes + size);
  pumice::engine::test::reseal(resealed);
  if (!std::equal(resealed.begin(), resealed.end(), bytes)) load(resealed);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace pumice::engine::test;
  if (size < 64 || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const Bytes file(bytes, bytes + size);
  const uint64_t length = std::min<uint64_t>(get(file, 24, 8), size - 64);
  const uint64_t constants = std::min<uint64_t>(std::max<uint64_t>(get(file, 40, 8), 64 + length), size);
  if (max_size < 192 + (size - constants)) return size;
  Bytes program(max_size - 128 - (size - constants));
  std::copy_n(bytes + 64, std::min<uint64_t>(length, program.size()), program.begin());
  program.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(program.data()),
                                  std::min<uint64_t>(length, program.size()), program.size()));
  const Bytes out = pumice::engine::write_file(program, std::span(file).subspan(constants));
  if (out.size() > max_size) return size;
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
