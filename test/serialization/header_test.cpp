// SPDX-License-Identifier: Apache-2.0
// Gate 1: F01 to F08 and F18 of the list of bad inputs.
#include <chrono>
#include <random>

#include "serialization/hash.h"
#include "serialization/header.h"
#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

enum Offset : size_t {
  kSize = 0,
  kMagic = 4,
  kFileVersion = 8,
  kFlags = 12,
  kProgramOffset = 16,
  kProgramSize = 24,
  kProgramHash = 32,
  kConstantsOffset = 40,
  kConstantsSize = 48,
  kHash = 56
};

Bytes patched(size_t at, uint64_t value, size_t bytes) {
  Bytes f = file(sample());
  put(f, at, value, bytes);
  put(f, kHash, hash64(std::span(f).first(56)), 8);
  return f;
}

TEST(Header, SampleIsAccepted) {
  const Bytes bytes = file(sample());
  const Program program = read_file(bytes);
  EXPECT_EQ(program.file_size, bytes.size());
  EXPECT_EQ(program.version, 1u);
  EXPECT_EQ(program.data.size(), 393u);
  EXPECT_EQ(program.methods[0].values[kX].dims[0].is_expr, true);
  EXPECT_EQ(program.methods[0].ops[kAdd].op, 1u);  // the index in kSignatures, not in the file's own table
  EXPECT_EQ(program.methods[0].ops[kAddState].args[2].kind,
            ArgKind::real);  // the file has an int for a float parameter
}

TEST(Header, F01_TooShort) {
  const Bytes bytes = file(sample());
  for (const size_t size : {0, 1, 7, 8, 63}) {
    expect_error(Code::Truncated, "header", "64",
                 [&] { read_file({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}); });
  }
  expect_error(Code::Truncated, "header.program_size", "file at 64",
               [&] { read_file({bytes.begin(), bytes.begin() + 64}); });
}

TEST(Header, F02_EveryPrefix) {
  const Bytes bytes = file(sample());
  for (size_t size = 0; size < bytes.size(); size++) {
    expect_error(Code::Truncated,
                 [&] { read_file({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}); });
  }
}

TEST(Header, F03_OtherKindsOfFile) {
  const std::vector<std::string> others = {std::string("\x1c\0\0\0ET12\0\0\0\0", 12),
                                           std::string("GGUF\3\0\0\0\1\0\0\0", 12),
                                           std::string("PK\3\4\0\0\0\0\0\0\0\0", 12),
                                           "\x89PNG\r\n\x1a\n....",
                                           std::string("\x08\x07\x12\x07pytorch\x1a", 12),
                                           std::string("\0\0\0\x40"
                                                       "1CMP\0\0\0\1",
                                                       12)};
  for (std::string other : others) {
    other.resize(200, '\x1b');
    Bytes bytes(other.size());
    std::memcpy(bytes.data(), other.data(), other.size());
    const std::string text = expect_error(Code::BadHeader, [&] { read_file(bytes); });
    for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
  }
}

TEST(Header, F04_VersionAndFlags) {
  for (const uint32_t version : {0u, 2u, 0xffffffffu}) {
    expect_error(Code::UnsupportedVersion, "header.version", std::to_string(version),
                 [&] { read_file(patched(kFileVersion, version, 4)); });
  }
  for (int bit = 0; bit < 32; bit++) {
    expect_error(Code::UnsupportedVersion, "header.flags", format("0x%x", 1u << bit),
                 [&] { read_file(patched(kFlags, 1u << bit, 4)); });
  }
}

TEST(Header, F05_HeaderSize) {
  for (const uint32_t size : {0u, 63u, 65u, 128u, 0xffffu, 0xffffffffu}) {
    expect_error(Code::BadHeader, "header.header_size", std::to_string(size),
                 [&] { read_file(patched(kSize, size, 4)); });
  }
}

TEST(Header, F06_F18_SectionsBeyondTheFile) {
  const Bytes good = file(sample());
  expect_error(Code::BadHeader, "header.program_size", "does not fit",
               [&] { read_file(patched(kProgramSize, UINT64_MAX - 10, 8)); });
  expect_error(Code::BadHeader, "header.program_size", "does not fit",
               [&] { read_file(patched(kProgramOffset, UINT64_MAX, 8)); });
  expect_error(Code::BadHeader, "header.constants_size", "does not fit",
               [&] { read_file(patched(kConstantsSize, UINT64_MAX, 8)); });
  expect_error(Code::LimitExceeded, "header.program_size", "max_program_bytes",
               [&] { read_file(patched(kProgramSize, uint64_t{1} << 30, 8)); });
  expect_error(Code::Truncated, "header.program_size", "", [&] { read_file(patched(kProgramSize, 1 << 20, 8)); });
  expect_error(Code::Truncated, "header.constants_size", "",
               [&] { read_file(patched(kConstantsSize, get(good, kConstantsSize, 8) + 1, 8)); });
  expect_error(Code::Truncated, "header.constants_size", "",
               [&] { read_file(patched(kConstantsSize, uint64_t{1} << 40, 8)); });
}

TEST(Header, F07_F08_SectionsInPlace) {
  const Bytes good = file(sample());
  const uint64_t constants = get(good, kConstantsOffset, 8);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{63}, uint64_t{65}, uint64_t{72}, uint64_t{128}}) {
    expect_error(Code::BadHeader, "header.program_offset", std::to_string(offset),
                 [&] { read_file(patched(kProgramOffset, offset, 8)); });
  }
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{64}, constants - 64, constants - 1, constants + 1, constants + 64}) {
    expect_error(Code::BadHeader, "header.constants_offset", std::to_string(offset),
                 [&] { read_file(patched(kConstantsOffset, offset, 8)); });
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  expect_error(Code::BadHeader, "header.constants_size", "1 bytes more", [&] { read_file(longer); });
  expect_error(Code::BadHeader, "header.constants_size", "more", [&] { read_file(patched(kConstantsSize, 0, 8)); });
}

// Found by fuzzing under UBSan: a copy of nothing from a null pointer.
TEST(Header, ASectionOfNothing) {
  Bytes nothing = file(sample());
  put(nothing, kConstantsSize, nothing.size() - 64, 8);
  put(nothing, kConstantsOffset, 64, 8);
  put(nothing, kProgramSize, 0, 8);
  put(nothing, kProgramHash, hash64({}), 8);
  put(nothing, kHash, hash64(std::span(nothing).first(56)), 8);
  expect_error(Code::BadSchema, "program", "outside of the program", [&] { read_file(nothing); });
}

TEST(Header, F08_AnyAddressOfTheCaller) {
  const Bytes good = file(sample());
  for (size_t shift = 0; shift < 8; shift++) {
    Bytes moved(good.size() + shift);
    std::copy(good.begin(), good.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_EQ(read(std::span(moved).subspan(shift), kSignatures).methods.size(), 1u);
  }
}

TEST(Header, PaddingIsZero) {
  Bytes bytes = file(sample());
  const uint64_t end = 64 + get(bytes, kProgramSize, 8), constants = get(bytes, kConstantsOffset, 8);
  ASSERT_LT(end, constants) << "the sample has no padding after its program any more";
  for (uint64_t at = end; at < constants; at++) {
    Bytes bad = bytes;
    bad[at] = std::byte{1};
    expect_error(Code::ChecksumMismatch, "padding after the program", std::to_string(at), [&] { read_file(bad); });
  }
}

TEST(Header, Hashes) {
  Bytes header = file(sample()), program = file(sample());
  put(header, kHash, get(header, kHash, 8) ^ 1, 8);
  expect_error(Code::ChecksumMismatch, "header", "damaged", [&] { read_file(header); });
  program[70] ^= std::byte{1};
  expect_error(Code::ChecksumMismatch, "program", "damaged", [&] { read_file(program); });
}

}  // namespace
}  // namespace pumice::engine::test
