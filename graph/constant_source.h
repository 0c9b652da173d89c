// SPDX-License-Identifier: Apache-2.0
// Upload: the constants of a program, from their bytes in the file or outside of it to the device.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "serialization/constants.h"
#include "vulkan/upload.h"

namespace pumice::engine {

// Bytes of a constant as a value of that type; begin and bytes count as on the device.
struct ConstantRange {
  uint32_t constant;
  DType dtype;
  uint64_t begin = 0, bytes = 0;
  auto operator<=>(const ConstantRange&) const = default;
};

class ConstantSource {
 public:
  ConstantSource(std::shared_ptr<Device> device, const Program& program, const ExternalData& external)
      : program_(program), external_(external), uploader_(std::move(device)) {}

  // A text that is equal for constants of equal bytes only.
  const std::string& content(uint32_t constant);
  // Throws BadGraph for an element that the device's form of the type cannot hold.
  void upload(const ConstantRange& range, Slice target);
  void expect(uint64_t bytes) { uploader_.expect(bytes); }  // of all that is uploaded, padded
  void submit() { uploader_.submit(); }
  void flush() { uploader_.flush(); }
  void wait() noexcept { uploader_.wait(); }

 private:
  std::span<const std::byte> bytes(uint32_t constant);
  std::span<const std::byte> bytes(const ConstantRange& range);

  const Program& program_;
  const ExternalData& external_;
  Uploader uploader_;
  std::map<uint32_t, std::span<const std::byte>> bytes_;
  std::map<uint32_t, std::string> contents_;
};

}  // namespace pumice::engine
