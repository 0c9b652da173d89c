// SPDX-License-Identifier: Apache-2.0
// What the device can do at best, measured: memory moved, arithmetic in registers, matrix units.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// What a case_data's products may be computed in without another result.
enum class Arithmetic : uint8_t { f32, f16, i8 };

struct Ceiling {
  std::string name;  // "read", "copy", "f32", "f16", "dot", "f16 matrix", "s8 matrix"
  double value =
      0;  // bytes or operations a second, on a CPU driver a processor second; 0: not there, and `why` says why
  std::string how;  // "16x16x16, 4 subgroups a workgroup"
  std::string why;
};

class Ceilings {
 public:
  // Each is told to `report` as it comes. `warm_seconds` of work first, so that clocks are up.
  void measure(const std::shared_ptr<Device>& device, double warm_seconds,
               const std::function<void(const Ceiling&)>& report);
  bool measured() const { return !all_.empty(); }
  // The least time that `bytes` and `flops` take, in microseconds; `memory`: the bytes are what takes it.
  double roof_us(double bytes, double flops, Arithmetic arithmetic, bool& memory) const;

 private:
  double value(const std::string& name) const;
  std::vector<Ceiling> all_;
};

}  // namespace pumice::engine::kernel_bench
