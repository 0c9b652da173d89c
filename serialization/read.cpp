// SPDX-License-Identifier: Apache-2.0
// The gates in their order.
#include <cinttypes>
#include <cstring>

#include "serialization/gates.h"

namespace pumice::engine {

Program read(std::span<const std::byte> file, std::span<const Signature> signatures, const Limits& limits,
             bool verify_hashes) {
  const Header header = read_header(file, limits);

  // Checked and used in a copy: aligned, and out of reach of whoever writes to a mapped file meanwhile.
  std::vector<uint64_t> copy((header.program_size + 7) / 8);
  std::memcpy(copy.data(), file.data() + header.program_offset, header.program_size);
  const std::span bytes(reinterpret_cast<const std::byte*>(copy.data()), header.program_size);
  if (const uint64_t hash = hash64(bytes); hash != header.program_hash) {
    fail(Code::ChecksumMismatch, Stage::header, "program",
         "the hash of the program is %016" PRIx64 ", the header says %016" PRIx64
         "; the file is damaged, copy or export it again",
         hash, header.program_hash);
  }
  verify(bytes, limits);

  std::vector<OpName> op_names;
  Program program = decode(bytes, limits, op_names);
  program.version = kVersion;
  program.file_size = file.size();
  program.program_bytes = header.program_size;
  program.data = file.subspan(header.constants_offset, header.constants_size);
  check_semantics(program, op_names, signatures, limits);
  check_constants(program, verify_hashes);
  return program;
}

}  // namespace pumice::engine
