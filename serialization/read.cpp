// SPDX-License-Identifier: Apache-2.0
#include "serialization/read.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "serialization/constants.h"
#include "serialization/decode.h"
#include "serialization/hash.h"
#include "serialization/header.h"
#include "serialization/semantics.h"
#include "serialization/verify.h"

namespace pumice::engine {

Program read(std::span<const std::byte> file, std::span<const Signature> signatures, const Limits& limits,
             bool verify_hashes) {
  const Header header = read_header(file, limits);

  // Checked and used in a copy: it is aligned, and a process that writes to a mapped file cannot change it afterwards.
  std::vector<uint64_t> copy((header.program_size + 7) / 8);
  std::ranges::copy(file.subspan(header.program_offset, header.program_size),
                    reinterpret_cast<std::byte*>(copy.data()));
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
  check_constants(program);
  if (verify_hashes) check_hashes(program);
  return program;
}

}  // namespace pumice::engine
