// SPDX-License-Identifier: Apache-2.0
// The measured best of the device: memory traffic, arithmetic in registers, matrix units.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/arithmetic.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

struct Ceiling {
  std::string name;  // "read", "copy", "f32", "f16", "dot", "f16 matrix", "s8 matrix"
  // Bytes or operations a second, on a CPU driver a second of processor time; 0: not available, for the reason `why`.
  double value = 0;
  std::string configuration;  // "16x16x16, 4 subgroups a workgroup"
  std::string why;
};

class Ceilings {
 public:
  Ceilings() = default;
  explicit Ceilings(std::vector<Ceiling> measured) : all_(std::move(measured)) {}
  // Measures all; `report` gets each when it is known. The device works for `warm_seconds` first, so that clocks are
  // up.
  void measure(const std::shared_ptr<Device>& device, double warm_seconds,
               const std::function<void(const Ceiling&)>& report);
  bool measured() const { return !all_.empty(); }
  // Operations a second of the fastest units that give the same results.
  double rate(Arithmetic arithmetic) const;
  // The least time for `bytes` and `flops`, in microseconds; `memory` becomes true where the bytes take longer.
  double roof_us(double bytes, double flops, Arithmetic arithmetic, bool& memory) const;

 private:
  double value(const std::string& name) const;
  std::vector<Ceiling> all_;
};

}  // namespace pumice::engine::kernel_bench
