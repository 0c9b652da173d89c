// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cstdio>

namespace pumice::engine {

const char* name(Code code) {
  switch (code) {
    case Code::Ok:
      return "Ok";
    case Code::BadHeader:
      return "BadHeader";
    case Code::Truncated:
      return "Truncated";
    case Code::UnsupportedVersion:
      return "UnsupportedVersion";
    case Code::ChecksumMismatch:
      return "ChecksumMismatch";
    case Code::BadSchema:
      return "BadSchema";
    case Code::LimitExceeded:
      return "LimitExceeded";
    case Code::BadIndex:
      return "BadIndex";
    case Code::BadGraph:
      return "BadGraph";
    case Code::BadShape:
      return "BadShape";
    case Code::BadDtype:
      return "BadDtype";
    case Code::BadQuantParams:
      return "BadQuantParams";
    case Code::UnknownOp:
      return "UnknownOp";
    case Code::WeightsMismatch:
      return "WeightsMismatch";
    case Code::PathRejected:
      return "PathRejected";
    case Code::IoError:
      return "IoError";
    case Code::InvalidArgument:
      return "InvalidArgument";
    case Code::WrongState:
      return "WrongState";
    case Code::Busy:
      return "Busy";
    case Code::Cancelled:
      return "Cancelled";
    case Code::Timeout:
      return "Timeout";
    case Code::OutOfHostMemory:
      return "OutOfHostMemory";
    case Code::OutOfDeviceMemory:
      return "OutOfDeviceMemory";
    case Code::DeviceUnsupported:
      return "DeviceUnsupported";
    case Code::DeviceLost:
      return "DeviceLost";
    case Code::Internal:
      return "Internal";
  }
  return "Unknown";  // a number a newer library made up
}

const char* name(Stage stage) {
  switch (stage) {
    case Stage::header:
      return "header";
    case Stage::verify:
      return "verify";
    case Stage::semantics:
      return "semantics";
    case Stage::plan:
      return "plan";
    case Stage::device:
      return "device";
    case Stage::prepack:
      return "prepack";
    case Stage::encode:
      return "encode";
    case Stage::execute:
      return "execute";
    case Stage::input:
      return "input";
    case Stage::cache:
      return "cache";
    case Stage::api:
      return "api";
  }
  return "unknown";
}

namespace {

std::string vformat(const char* text, va_list args) {
  va_list again;
  va_copy(again, args);
  const int size = std::vsnprintf(nullptr, 0, text, args);
  std::string out;
  if (size > 0) {
    out.resize(static_cast<size_t>(size));
    std::vsnprintf(out.data(), out.size() + 1, text, again);
  }
  va_end(again);
  return out;
}

}  // namespace

std::string format(const char* text, ...) {
  va_list args;
  va_start(args, text);
  std::string out = vformat(text, args);
  va_end(args);
  return out;
}

std::string printable(std::string_view text) {
  constexpr size_t kLimit = 256;
  constexpr std::string_view kCut = "...";
  std::string out;
  size_t fits = 0;  // how much of `out` leaves room for the mark of a cut
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\\') {
      out += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    if (out.size() > kLimit) return out.substr(0, fits).append(kCut);
    if (out.size() + kCut.size() <= kLimit) fits = out.size();
  }
  return out;
}

void fail(Code code, Stage stage, std::string path, const char* text, ...) {
  va_list args;
  va_start(args, text);
  std::string message = vformat(text, args);
  va_end(args);
  throw Error(code, stage, std::move(path), message);
}

}  // namespace pumice::engine
