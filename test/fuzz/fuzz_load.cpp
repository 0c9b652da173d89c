// SPDX-License-Identifier: Apache-2.0
// Loads and describes arbitrary bytes: the four gates may throw an Error, and nothing else may go wrong, neither there
// nor in what `pumice inspect` says of the file (the nesting of its arguments, its plan).
//
//   fuzz_load -max_len=20000 build/fuzz-corpus test/fuzz/corpus/load
#include "runtime/describe.h"
#include "test/fuzz/program_mutator.h"

using namespace pumice::engine;  // NOLINT: the functions below are C

namespace {

void load(std::span<const std::byte> file) {
  try {
    inspect(file);
  } catch (const Error& error) {
    test::must_be_typed(error, true);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  load({bytes, size});
  test::Bytes resealed(bytes, bytes + size);
  test::reseal(resealed);
  if (!std::equal(resealed.begin(), resealed.end(), bytes)) load(resealed);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return test::mutate_program(data, size, max_size, seed);
}
