// SPDX-License-Identifier: Apache-2.0
// Before a model is loaded, the kernels that it will run are tested on its device, each once for a device and driver:
// docs/decisions/0006-self-test.md.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "graph/budget.h"
#include "graph/graph_impl.h"
#include "runtime/trial.h"
#include "serialization/constants.h"
#include "vulkan/device.h"

namespace pumice::engine {

// A kernel of a model. `wrong`: what it does wrong; then the features of its family were switched off, where there are
// some.
struct KernelTest {
  enum class Result : uint8_t { right, wrong, untested } result;
  std::string kernel, family, wrong = {};
};
const char* name(KernelTest::Result result);

class SelfTest {
 public:
  SelfTest(std::shared_ptr<Device> device, const ExternalData& external, std::shared_ptr<ConstantFacts> facts);
  // Plans tests of what the graphs, at live shapes, run and was not tested yet.
  void begin(std::span<const std::unique_ptr<Graph>> graphs, const Deadline& deadline);
  bool has_calls() const { return !trials_.empty(); }
  // Begins to make the pipelines of all tests, so that each is made while another is used.
  void begin_pipelines() const;
  // Of what begin() was given, returns the features that are to be switched off: the graphs are then built and given
  // to begin() again. run() tests as long as there is time; after it threw DeviceLost, Timeout or Cancelled it may be
  // called again. postpone() goes by what is known; run() may then come when the graphs and the bytes of the file,
  // which has no external constants, are gone.
  uint64_t run(const Budget& budget, const Deadline& deadline);
  uint64_t postpone();
  // Those of all graphs.
  const std::vector<KernelTest>& kernels() const { return kernels_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Shaders = std::set<const Shader*>;
  struct Candidate {  // a call, and its kernels
    const Graph* graph;
    uint32_t call;
    Shaders shaders;
    double cost;
  };
  std::vector<Candidate> candidates(std::span<const std::unique_ptr<Graph>> graphs) const;
  bool is_tested(const Shader& shader) const;
  std::optional<Trial> smaller(const Candidate& candidate, const Trial& whole) const;
  std::optional<Trial> trial_of(const Candidate& candidate) const;
  // Calls `body`; what the model cannot do on the device, its own load says.
  void guarded(const Candidate& candidate, const Deadline& deadline, const std::function<void()>& body) const;
  void note(const Candidate& candidate, const std::optional<std::string>& wrong) const;
  struct Turns {  // of threads that test side by side: what their runs took of the time
    const int64_t threads;
    const Clock::duration most;
    const Budget& budget;
    const Deadline& deadline;
    std::atomic<size_t> calls = 0;
    std::atomic<Clock::rep> ran = 0;
    void add(Clock::duration took) { ran += took.count(); }
    Clock::duration each() const { return Clock::duration(ran / threads); }
    Clock::duration left() const { return most - each(); }
    bool over() const { return each() > most; }
  };
  bool test_one(std::pair<Candidate, Trial>& each, const Budget& part, Turns& turns) const;
  void test(const Budget& budget, const Deadline& deadline);
  uint64_t conclude();

  std::shared_ptr<Device> device_;
  const ExternalData external_;
  std::shared_ptr<ConstantFacts> facts_;
  // Of begin()'s graphs: none where nothing is to be tested.
  std::vector<const Shader*> shaders_;
  uint64_t features_ = 0;  // Features::bits
  std::vector<std::pair<Candidate, Trial>> trials_;
  Clock::duration planning_{};  // time that begin() took for them
  std::vector<KernelTest> kernels_;
  std::map<std::string, size_t> known_;  // index in kernels_
};

}  // namespace pumice::engine
