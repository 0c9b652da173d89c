// SPDX-License-Identifier: Apache-2.0
// Gate 1: the 64 bytes in front. Read by hand, little-endian, so that neither alignment nor the host's byte order
// matters.
#include <cinttypes>
#include <cstring>

#include "base/checked.h"
#include "serialization/gates.h"

namespace pumice::engine {
namespace {

constexpr std::string_view kMagic = "PMC1";

uint64_t little(std::span<const std::byte> file, uint64_t offset, uint32_t bytes) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes; i++) value |= std::to_integer<uint64_t>(file[offset + i]) << (8 * i);
  return value;
}

[[noreturn]] void bad(const char* field, const std::string& text) {
  fail(Code::BadHeader, Stage::header, std::string("header.") + field, "%s", text.c_str());
}

[[noreturn]] void truncated(const char* section, uint64_t end, uint64_t file_size) {
  fail(Code::Truncated, Stage::header, std::string("header.") + section + "_size",
       "the %s end at byte %" PRIu64 ", the file at %" PRIu64 "; copy or export it again", section, end, file_size);
}

std::string_view characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Magic first: "this is a ZIP file" helps more than "the hash is wrong".
void check_identity(std::span<const std::byte> file) {
  if (file.size() >= 8 && characters(file.subspan(4, 4)) != kMagic) {
    bad("magic", format("bytes 4 to 7 are '%s', a .pumice file has 'PMC1' there; this is another kind of file",
                        printable(characters(file.subspan(4, 4))).c_str()));
  }
  if (file.size() < kHeaderSize) {
    fail(Code::Truncated, Stage::header, "header",
         "the file has %zu bytes, the header alone has %" PRIu64 "; copy or export it again", file.size(), kHeaderSize);
  }
  const uint64_t want = little(file, 56, 8), got = hash64(file.first(56));
  if (got != want) {
    fail(Code::ChecksumMismatch, Stage::header, "header",
         "the hash of bytes 0 to 55 is %016" PRIx64 ", the header says %016" PRIx64
         "; the file is damaged, copy or export it again",
         got, want);
  }
}

void check_version(std::span<const std::byte> file) {
  const uint64_t size = little(file, 0, 4), version = little(file, 8, 4), flags = little(file, 12, 4);
  if (version != kVersion) {
    fail(Code::UnsupportedVersion, Stage::header, "header.version",
         "the file has version %" PRIu64 ", this library reads %u to %u; %s", version, kVersion, kVersion,
         version > kVersion ? "use a newer library" : "export the model again");
  }
  if (size != kHeaderSize) {
    bad("header_size", format("got %" PRIu64 ", version %u has %" PRIu64, size, kVersion, kHeaderSize));
  }
  if (flags != 0) {
    fail(Code::UnsupportedVersion, Stage::header, "header.flags",
         "got 0x%" PRIx64 ", this library knows none of these flags and must understand all; use a newer library",
         flags);
  }
}

// One layout only: header, program, less than 64 zeros, constants, end of file.
void check_sections(const Header& h, uint64_t file_size, const Limits& limits) {
  const auto program_end = (CheckedU64(h.program_offset) + h.program_size).value();
  if (!program_end) {
    bad("program_size", format("offset %" PRIu64 " + size %" PRIu64 " of the program does not fit 64 bits",
                               h.program_offset, h.program_size));
  }
  const auto constants_end = (CheckedU64(h.constants_offset) + h.constants_size).value();
  if (!constants_end) {
    bad("constants_size", format("offset %" PRIu64 " + size %" PRIu64 " of the constants does not fit 64 bits",
                                 h.constants_offset, h.constants_size));
  }
  if (h.program_offset != kHeaderSize) {
    bad("program_offset", format("got %" PRIu64 ", the program starts right behind the header, at %" PRIu64,
                                 h.program_offset, kHeaderSize));
  }
  if (h.program_size > limits.max_program_bytes) {
    fail(Code::LimitExceeded, Stage::header, "header.program_size",
         "got %" PRIu64 " bytes, max_program_bytes is %" PRIu64, h.program_size, limits.max_program_bytes);
  }
  if (*program_end > file_size) truncated("program", *program_end, file_size);
  const uint64_t aligned =
      (*program_end + (kAlignment - 1)) & ~(kAlignment - 1);  // no wrap: the program is inside the file
  if (h.constants_offset != aligned) {
    bad("constants_offset",
        format("got %" PRIu64 ", but the program ends at %" PRIu64 " and the constants start at the next "
               "multiple of 64, %" PRIu64,
               h.constants_offset, *program_end, aligned));
  }
  if (*constants_end > file_size) truncated("constants", *constants_end, file_size);
  if (*constants_end < file_size) {
    bad("constants_size", format("the sections end at %" PRIu64 ", but the file has %" PRIu64 " bytes more",
                                 *constants_end, file_size - *constants_end));
  }
}

}  // namespace

Header read_header(std::span<const std::byte> file, const Limits& limits) {
  check_identity(file);
  check_version(file);
  const Header header{little(file, 16, 8), little(file, 24, 8), little(file, 32, 8), little(file, 40, 8),
                      little(file, 48, 8)};
  check_sections(header, file.size(), limits);
  check_zero(file, header.program_offset + header.program_size, header.constants_offset,
             {nullptr, "padding behind the program"});
  return header;
}

void check_zero(std::span<const std::byte> file, uint64_t first, uint64_t last, const Where& what) {
  for (uint64_t i = first; i < last; i++) {
    if (file[i] != std::byte{0}) {
      fail(Code::ChecksumMismatch, Stage::header, what.text(),
           "padding byte %" PRIu64 " is 0x%02x, must be 0; the file is damaged", i, std::to_integer<unsigned>(file[i]));
    }
  }
}

}  // namespace pumice::engine
