// SPDX-License-Identifier: Apache-2.0
// What the files behind `read` share: the stages in their order, and the path of the object at hand. Private to
// serialization/.
#pragma once

#include <string>
#include <vector>

#include "serialization/signature.h"

namespace pumice::engine {

// A place in the program ("methods[0].values[17].dims[2]") as a chain on the call stack; it becomes text only for an
// error.
struct Where {
  const Where* up = nullptr;
  const char* field = "";
  int64_t index = -1;  // -1: the field itself

  std::string text() const;
};

// ---- gate 1: header.cpp, hash.cpp
// ---------------------------------------------------------------------------------------
inline constexpr uint64_t kHeaderSize = 64, kAlignment = 64;
inline constexpr uint32_t kVersion = 1;

struct Header {
  uint64_t program_offset, program_size, program_hash, constants_offset, constants_size;
};

// Checks everything but program_hash.
Header read_header(std::span<const std::byte> file, const Limits& limits);
// Throws ChecksumMismatch at the first byte of file[first, last) that is not zero; `what` names the place.
void check_zero(std::span<const std::byte> file, uint64_t first, uint64_t last, const Where& what);
uint64_t hash64(std::span<const std::byte> bytes);

// ---- gate 2: verify.cpp, locate.cpp
// ------------------------------------------------------------------------------------- The FlatBuffers verifier with
// our limits. `bytes` must be aligned to 8.
void verify(std::span<const std::byte> bytes, const Limits& limits);
// Why the verifier refused: throws BadSchema or LimitExceeded with the path of the first bad field.
[[noreturn]] void locate(std::span<const std::byte> bytes, uint32_t max_tables);

// ---- gate 3: decode.cpp, then semantics.cpp and constants.cpp
// ------------------------------------------------------------- From verified bytes to structs: limits, strings, enums,
// and nothing that relates one object to another. OpCall::op is an index in `op_names`.
struct OpName {
  std::string name;
  uint16_t version;
};
Program decode(std::span<const std::byte> bytes, const Limits& limits, std::vector<OpName>& op_names);
// Everything that relates objects; replaces OpCall::op by the index in `signatures`.
void check_semantics(Program& program, std::span<const OpName> op_names, std::span<const Signature> signatures,
                     const Limits& limits);
struct Operator {  // what an entry of op_names stands for
  uint32_t index;  // in `signatures`
  std::string_view name;
  Parameters parameters;
};
void check_method(Method& method, const Program& program, std::span<const Operator> operators, const Limits& limits,
                  const Where& at);
// Segments inside the section, in order, zero between; with `verify_hashes`, their bytes.
void check_constants(const Program& program, bool verify_hashes);

}  // namespace pumice::engine
