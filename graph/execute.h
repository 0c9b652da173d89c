// SPDX-License-Identifier: Apache-2.0
// Runs: inputs in, submit, wait, outputs out. A session owns state and the memory of its runs; weights are shared.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/interrupt.h"
#include "base/polled_mutex.h"
#include "graph/budget.h"
#include "graph/input_rules.h"
#include "graph/merging.h"
#include "graph/profile.h"
#include "graph/run_buffers.h"
#include "graph/states.h"

namespace pumice::engine {

struct OutputInfo {
  DType dtype;
  Shape shape;
  uint64_t bytes;  // as the caller reads it
};

// What a session has of its model.
struct SessionParts {
  std::shared_ptr<const Weights> weights;
  std::vector<std::unique_ptr<Graph>> graphs;  // one for each method, built for the device's features
};

struct SessionOptions {
  uint64_t timeout_ns = 0;  // of one run; 0: the default of Device::run
  Budget budget = {};
  // What the load left to the first run, prepare or seed: called until it returns. Other parts then take the place of
  // those that the session was made of.
  std::function<std::optional<SessionParts>(const Deadline&)> finish_load = {};
};

struct SessionMemory {
  uint64_t weights, state, arena, textures, io;  // textures: of weights and values; elsewhere buffers alone
};

class Session {
 public:
  // The program must stay where it is.
  Session(std::shared_ptr<Device> device, std::shared_ptr<const Program> program, SessionParts parts,
          const SessionOptions& options = {});

  // Each waits while another thread is inside. After an error there are no outputs, and state is as before. Where large
  // states were updated before a kernel reported the error or the run was stopped, they are half updated: calls throw
  // WrongState until reset(). Throws Timeout, and Cancelled after cancel(), between two submits of the run; the device
  // goes on working (vulkan/run.h has the exception).
  void run(uint32_t method, std::span<const InputView> inputs, uint32_t steps = 1);
  // run() and a copy of its outputs, as one: no other thread's call comes between. `destination` tells where an output
  // goes; null: nowhere. Throws Busy when `destination` uses this session. `steps`: how often the method runs, in one
  // submit and with the same inputs; only its state moves on. The outputs are those of the last step.
  using OutputDestination = std::function<void*(uint32_t index, const OutputInfo& output)>;
  void call(uint32_t method, std::span<const InputView> inputs, const OutputDestination& destination,
            uint32_t steps = 1);
  // What a first run with inputs of these dtypes and sizes does before it is submitted: pipelines, memory, recording.
  // The data is not read. Then there are no outputs, as before the first run. Throws what a run throws.
  void prepare(uint32_t method, std::span<const InputView> inputs);
  // Of the last run, whichever thread made it.
  OutputInfo output(uint32_t index) const;
  void read(uint32_t index, void* data, uint64_t bytes) const;
  void reset();
  // Random numbers go on from this seed; WrongState in a program that draws none.
  void seed(uint64_t seed);
  // Ends the run under way in another thread, if it has anything left to submit; else does nothing. Never waits.
  void cancel() noexcept;
  // A run with timestamps: outputs and state are as after run().
  std::vector<ProfileRow> profile(uint32_t method, std::span<const InputView> inputs);
  SessionMemory memory() const;

  const Program& program() const { return *program_; }
  Device& device() const { return *device_; }
  // How often something was encoded, and how many launch functions ran for it: for tests.
  uint64_t encodings() const { return num_encodings_; }
  uint64_t launches() const { return num_launches_; }

 private:
  enum class RunState : uint8_t { none, runs, cancelled };
  struct MethodState {
    std::unique_ptr<Graph> graph;
    InputRules rules;
    std::vector<int64_t> symbols;  // of the call at hand
    std::vector<std::unique_ptr<Encoding>> encodings;
  };
  // One thread at a time.
  class Lock : PolledMutex::Lock {
   public:
    explicit Lock(const Session& session)
        : PolledMutex::Lock(session.mutex_, check_interrupt,
                            "this session is used from inside of one of its own calls") {}
  };

  // From its beginning to its end a run can be cancelled.
  class Running {
   public:
    explicit Running(Session& session) : run_(session.run_) { run_ = RunState::runs; }
    ~Running() { run_ = RunState::none; }
    Running(const Running&) = delete;

   private:
    std::atomic<RunState>& run_;
  };

  void take(SessionParts parts);
  void finish_load();
  Encoding& execute(uint32_t method, std::span<const InputView> inputs, bool timed, uint32_t steps = 1);
  // `several_steps`: with a dispatch that runs all of them, where there is one.
  Encoding& encoding(MethodState& method, bool timed, bool repeated, bool several_steps);
  bool fits(const Encoding& known) const;
  std::unique_ptr<Encoding> encode(MethodState& method, bool timed, bool repeated, bool several_steps,
                                   std::vector<double> factors);
  void submit(const MethodState& method, Encoding& encoding, uint32_t steps);
  void poll() const;
  MemoryNeed need_of(const Ports& ports, const Layout& layout, uint64_t merged) const;
  void make_room(const Ports& ports, const Layout& layout, uint64_t merged);
  // Of the recordings.
  template <class Memory>
  uint64_t bytes_of(std::vector<Memory> Encoding::* kept) const;
  SessionBuffers buffers(bool in_place) const;
  void check_status(const MethodState& method, const Encoding& encoding);
  void run_unmerged(const MethodState& method, const Encoding& encoding);
  void run_once(const std::function<void(Commands&)>& record);
  void undo_states(uint32_t method, bool saved);
  void undo_stopped(const MethodState& method, const Encoding& encoding) noexcept;
  void clear_words();
  void reset_state();
  MethodState& method_at(uint32_t method);
  const Port& port(uint32_t index) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Weights> weights_;
  std::vector<MethodState> methods_;
  std::vector<StateInfo> state_infos_;
  std::vector<Buffer> states_;
  RunBuffers buffers_;
  Buffer words_;  // graph/need.h
  StateUndo undo_;
  bool half_updated_ = false;  // states
  const uint64_t timeout_ns_;
  const Budget budget_;
  std::function<std::optional<SessionParts>(const Deadline&)> finish_load_;  // null: nothing is left
  const bool in_place_;
  const Encoding* last_ = nullptr;  // whose outputs are there
  uint64_t clock_ = 0, num_encodings_ = 0, num_launches_ = 0;
  MeasuredPace pace_;
  Merging merging_;
  std::atomic<RunState> run_ = RunState::none;
  mutable PolledMutex mutex_;
};

}  // namespace pumice::engine
