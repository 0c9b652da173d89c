// SPDX-License-Identifier: Apache-2.0
// Any bytes at all: `read` and `build` may refuse them by an Error, and nothing else may happen.
//
//   fuzz_load -max_len=20000 build/fuzz-corpus test/fuzz/corpus/load
//
// A changed byte breaks a hash, so the mutator works on the program section alone and puts a right header in front of
// it.
#include <cstdio>
#include <cstdlib>

#include "graph/build.h"
#include "ops/op.h"
#include "test/serialization/write.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace pumice {
namespace {

// An operator may not call a file's mistake an error of its own.
void check_error(const Error& error) {
  if (error.code() != Code::Internal) return;
  std::fprintf(stderr, "Internal at %s: %s\n", error.path().c_str(), error.what());
  std::abort();
}

void load(std::span<const std::byte> file, bool verify_hashes) {
  try {
    const Program program = read(file, op_signatures(), {}, verify_hashes);
    const auto add = [](Graph& graph, const Method& method, const OpCall& call) {
      op_table()[call.op].build(graph, Args(graph, method, call));
    };
    const auto op_name = [](uint32_t op) { return std::string(op_table()[op].signature.name); };
    for (uint32_t method = 0; method < program.methods.size(); method++)
      build(program, method, Features{}, add, op_name);
  } catch (const Error& error) {
    check_error(error);
  }
}

}  // namespace
}  // namespace pumice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  pumice::load({bytes, size}, true);
  pumice::test::Bytes resealed(bytes, bytes + size);
  pumice::test::reseal(resealed);
  pumice::load(resealed, false);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace pumice::test;
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
  const Bytes out = wrap(program, std::span(file).subspan(constants));
  if (out.size() > max_size) return size;
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
