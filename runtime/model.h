// SPDX-License-Identifier: Apache-2.0
// From a file's bytes to sessions: joins the operators and the graph.
#pragma once

#include <future>
#include <memory>
#include <span>
#include <string>

#include "graph/execute.h"
#include "runtime/bounds.h"
#include "runtime/self_test.h"
#include "serialization/constants.h"

namespace pumice::engine {

// The weights of a program on a device. Nothing of the file is needed once it is made; sessions keep what they use.
class Model {
 public:
  // Opens a device. A bad file opens none, unless it is so large that it is checked meanwhile: then from another
  // thread.
  using OpenDevice = std::function<std::shared_ptr<Device>()>;
  // Throws LimitExceeded where the file needs more memory than the budget, before any is allocated for it; Timeout
  // where loading takes longer. Sessions of the model have the same budget.
  static std::shared_ptr<const Model> load(const OpenDevice& open_device, std::span<const std::byte> file,
                                           const ExternalData& external = {}, const Budget& budget = {});
  static std::shared_ptr<const Model> load_file(const OpenDevice& open_device, const std::string& path,
                                                const ExternalData& external = {}, const Budget& budget = {});

  const Program& program() const { return *program_; }
  Device& device() const { return *device_; }
  const std::vector<Bounds>& bounds(uint32_t method) const { return bounds_[method]; }  // of its expressions
  // Those of the device, without what the program does not want and the self test switched off; and what it found.
  const Features& features() const { return features_; }
  const std::vector<KernelTest>& self_test() const { return self_test_; }
  // What the load reckoned: the weights, and a session after one run of each method at the shapes of the export.
  const MemoryNeed& need() const { return need_; }
  // `options.budget` is not used.
  std::unique_ptr<Session> session(const SessionOptions& options = {}) const;

 private:
  Model() = default;
  static std::shared_ptr<Model> load_bytes(const OpenDevice& open_device, std::span<const std::byte> file,
                                           const ExternalData& external, const Budget& budget);
  // All but the program.
  void fill(std::future<std::shared_ptr<Device>>& opening, const ExternalData& external, const Budget& budget,
            const Deadline& deadline);

  // Tests the kernels, then loads; returns the features whose kernels lie, and has loaded nothing then.
  uint64_t load_weights(const ExternalData& external, SelfTest& test, const Deadline& deadline);

  std::shared_ptr<Device> device_;
  Features features_;
  std::vector<KernelTest> self_test_;
  std::shared_ptr<Program> program_;
  std::shared_ptr<ConstantFacts> facts_;
  std::shared_ptr<const Weights> weights_;
  std::vector<std::vector<Bounds>> bounds_;
  Budget budget_;
  MemoryNeed need_;
  std::future<void> unmapping_;  // of a large file: the bytes are not needed any more
};

// All four gates, at the symbols' hints, for a device with nothing optional; no device is touched.
void validate(std::span<const std::byte> file);
void validate_file(const std::string& path);

// One method of a program, built and inferred at its hints.
std::unique_ptr<Graph> build_method(const Program& program, uint32_t method, const Features& features,
                                    const std::shared_ptr<ConstantFacts>& facts);

}  // namespace pumice::engine
