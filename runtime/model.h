// SPDX-License-Identifier: Apache-2.0
// From a file's bytes to sessions: joins the operators and the graph.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/polled_mutex.h"
#include "graph/execute.h"
#include "runtime/bounds.h"
#include "runtime/file_bytes.h"
#include "runtime/self_test.h"
#include "serialization/constants.h"

namespace pumice::engine {

// The weights of a program on a device. Nothing of the file is needed once it is made; sessions keep what they use.
// From a file on a CPU driver, which compiles a kernel when it first runs, the kernels are tested before the first run
// of a session and not by the load: the file stays open until then.
class Model : public std::enable_shared_from_this<Model> {
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
  Features features() const { return loaded().features; }
  std::vector<KernelTest> self_test() const { return loaded().self_test; }
  // What the load reckoned: the weights, and a session after one run of each method at the shapes of the export.
  MemoryNeed need() const { return loaded().need; }
  // `options.budget` and `options.finish_load` are not used.
  std::unique_ptr<Session> session(const SessionOptions& options = {}) const;
  // The tests that the load left to the first run; one thread does them, others wait. Where a kernel is wrong, the
  // weights are loaded anew from the file: throws IoError where that changed meanwhile.
  void finish_load(const Deadline& deadline) const;
  void finish_load() const;

 private:
  // What a kernel that is found to be wrong changes.
  struct Loaded {
    Features features;
    std::vector<KernelTest> self_test;
    std::shared_ptr<const Weights> weights;
    MemoryNeed need;
    bool tested = true;  // else finish_load() does it
  };
  // What finish_load() needs.
  struct Unfinished {
    SelfTest test;
    std::shared_ptr<FileBytes> file;  // null: the bytes are not there any more when the load returned
    size_t constants_at;              // where they begin in the file
    uint64_t lying = 0;               // features whose kernels were found to be wrong since the load
  };
  Model() = default;
  static std::shared_ptr<Model> load_bytes(const OpenDevice& open_device, std::span<const std::byte> bytes,
                                           const std::shared_ptr<FileBytes>& file, const ExternalData& external,
                                           const Budget& budget);
  // All but the program.
  void fill(std::future<std::shared_ptr<Device>>& opening, std::span<const std::byte> bytes,
            const std::shared_ptr<FileBytes>& file, const ExternalData& external, const Deadline& deadline);
  // Tests the kernels, or leaves that to finish_load(), then loads; returns the features whose kernels lie, and has
  // loaded nothing then.
  uint64_t load_weights(const Program& program, const ExternalData& external, const Deadline& deadline,
                        Unfinished& load, Loaded& loaded) const;
  bool tests_later(const Unfinished& load, const MemoryNeed& need) const;
  void load_again(const Deadline& deadline, Loaded& loaded) const;
  Loaded loaded() const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Program> program_;
  std::shared_ptr<ConstantFacts> facts_;
  std::vector<std::vector<Bounds>> bounds_;
  Budget budget_;
  mutable std::future<void> unmapping_;  // of a large file: the bytes are not needed any more
  mutable std::mutex mutex_;             // of what follows
  mutable Loaded loaded_;
  mutable PolledMutex finishing_;  // of what follows; held by who does it
  mutable std::unique_ptr<Unfinished> unfinished_;
};

// All four gates, at the symbols' hints, for a device with nothing optional; no device is touched.
void validate(std::span<const std::byte> file);
void validate_file(const std::string& path);

// One method of a program, built and inferred at its hints.
std::unique_ptr<Graph> build_method(const Program& program, uint32_t method, const Features& features,
                                    const std::shared_ptr<ConstantFacts>& facts);

}  // namespace pumice::engine
