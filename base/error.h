// SPDX-License-Identifier: Apache-2.0
// One error type for the whole engine: a code, the stage and object it happened at, and text that says got, limit and
// remedy.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pumice::engine {

// The numbers are part of the C ABI (pumice.h): append, never renumber.
enum class Code : uint32_t {
  Ok = 0,
  // the file
  BadHeader = 1,
  Truncated = 2,
  UnsupportedVersion = 3,
  ChecksumMismatch = 4,
  BadSchema = 5,
  LimitExceeded = 6,
  BadIndex = 7,
  BadGraph = 8,
  BadShape = 9,
  BadDtype = 10,
  BadQuantParams = 11,
  UnknownOp = 12,
  WeightsMismatch = 13,
  PathRejected = 14,
  IoError = 15,
  // the caller
  InvalidArgument = 32,
  WrongState = 33,
  Busy = 34,
  Cancelled = 35,
  // the machine
  Timeout = 64,
  OutOfHostMemory = 65,
  OutOfDeviceMemory = 66,
  DeviceUnsupported = 67,
  DeviceLost = 68,
  // ours; in a test always a failure
  Internal = 96,
};

const char* name(Code code);

enum class Stage : uint8_t { header, verify, semantics, plan, device, prepack, encode, execute, input, cache, api };

const char* name(Stage stage);

class Error : public std::runtime_error {
 public:
  Error(Code code, Stage stage, std::string path, const std::string& text)
      : std::runtime_error(text), code_(code), stage_(stage), path_(std::move(path)) {}
  Code code() const { return code_; }
  Stage stage() const { return stage_; }
  // The object the error is about, e.g. "methods[0].values[17].dims[2]" or "input 'ids'"; may be empty.
  const std::string& path() const { return path_; }

 private:
  Code code_;
  Stage stage_;
  std::string path_;
};

#define PUMICE_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))

std::string format(const char* text, ...) PUMICE_PRINTF(1, 2);
// Untrusted text made printable: control characters and non-ASCII escaped, cut at 256 bytes.
std::string printable(std::string_view text);

[[noreturn]] void fail(Code code, Stage stage, std::string path, const char* text, ...) PUMICE_PRINTF(4, 5);

// For operators: `check(ok, "softmax: dim %d is outside rank %u", dim, rank)`. Throws BadGraph at stage plan;
// graph/build adds the path of the operator call.
#define check(condition, ...)                                                                                   \
  do {                                                                                                          \
    if (!(condition))                                                                                           \
      ::pumice::engine::fail(::pumice::engine::Code::BadGraph, ::pumice::engine::Stage::plan, "", __VA_ARGS__); \
  } while (false)

}  // namespace pumice::engine
