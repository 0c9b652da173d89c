// SPDX-License-Identifier: Apache-2.0
// Runs one operator with the code of the engine (read, build, prepack, infer, launch), but in memory of its own: every
// tensor has its own buffer or texture with guard bytes around it. There may be several copies of everything (slots).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/build.h"
#include "graph/record.h"
#include "serialization/constants.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/textures.h"
#include "tools/kernel_bench/transfers.h"

namespace pumice::engine::kernel_bench {

// A file in memory, and a graph of it for each kernel.
struct Loaded {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Program> program;
  std::shared_ptr<ConstantFacts> facts;
  std::vector<std::unique_ptr<Graph>> graphs;
  std::shared_ptr<const Weights> weights;
};
// A kernel's name for Features::kernel, a number of rows at which the kernel can run, and whether the choice is left to
// the table, whatever was tuned.
struct Forced {
  std::string kernel;
  int64_t m;
  bool untuned = false;
};
// Checks the file (all four gates) and packs the constants. Throws the errors of a user's load.
Loaded load(const std::shared_ptr<Device>& device, std::span<const std::byte> file, std::span<const Forced> kernels,
            const Features& features);
std::unique_ptr<Graph> build_with(const Loaded& loaded, const Features& features, const Forced& kernel);

// A tensor's elements in the form that the device has: i64 becomes i32.
Bytes on_device(DType dtype, const Bytes& bytes);

struct HarnessOptions {
  uint64_t guard_bytes = 0;  // before and after every tensor; bindings include them, so that a kernel can write there
  uint32_t slots = 1;        // copies of everything: runs that use another copy each find nothing in a cache
};

class Harness {
 public:
  // The graph's shapes are those of its last infer; all three must outlive the harness.
  Harness(const Loaded& loaded, const Graph& graph, Transfers& transfers, const HarnessOptions& options);

  // Fills all memory with `word`, then writes constants and inputs, and clears the status words. Inputs: in the
  // program's order.
  void reset(uint32_t word, std::span<const Data> inputs);
  // Writes the inputs again: needed when the run before wrote its output into an input.
  void put_inputs(uint32_t word, std::span<const Data> inputs);
  bool overwrites_inputs() const;
  // Clears the status words before another run.
  void clear_report();
  // The report of the last run, of slot 0.
  std::optional<HostReport> report();
  // Records the kernels of one run, with the barriers between them.
  void dispatch(Commands& commands, uint32_t slot) const { dispatch(commands, steps_, slot); }
  // Submits what was recorded and waits; then copies outputs of slot 0 from textures to buffers.
  void run(const Commands& kernels);
  // An output of slot 0 after run().
  Bytes read_output(size_t index = 0);
  // Whether first_other() can run it: it gives the same bits, and neither writes over an input nor has its outputs in
  // textures.
  bool is_repeatable() const { return repeats() && after_.empty() && !overwrites_inputs(); }
  // Runs `count` times in one submit, the status words cleared before each; the number of the first run, from 0, whose
  // outputs are not what they were before the call.
  std::optional<uint32_t> first_other(uint32_t count);
  // Describes where a kernel changed the guards or the padding of slot 0 since reset(word); empty when nowhere.
  std::string damage(uint32_t word);
  // Names of the shaders that run, joined by '+'.
  std::string shaders() const;
  bool uses(Feature feature) const;                               // whether a kernel of the run needs it
  bool repeats() const { return !uses(Feature::float_atomics); }  // whether all runs give the same bits
  uint64_t slot_bytes() const;                                    // memory of one slot
  uint64_t output_bytes(size_t index = 0) const;
  // The bytes that a run reads and writes, and its operations, as the launches count them.
  uint64_t launch_bytes() const;
  Operations launch_operations() const;
  // For planted mistakes: overwrite the word at `byte` of output 0, or a guard of it.
  void overwrite(uint64_t byte, uint32_t word);
  void overwrite_guard(uint32_t word);

 private:
  struct Place {
    Buffer buffer = {};
    uint64_t bytes = 0, stride = 0;  // size of the tensor; distance between slots
    std::string name;
  };
  void dispatch(Commands& commands, std::span<const Step> steps, uint32_t slot) const;
  Slice slice(uint32_t tensor, uint32_t slot) const;
  Slice binding(uint32_t tensor, const BindingRange& part, uint32_t slot) const;
  struct Staged {  // an input in the upload buffer
    uint32_t tensor;
    size_t input;
    uint64_t offset;
  };
  void stage(std::span<const Data> inputs);
  void put_staged(Commands& commands, uint32_t word) const;
  void clear(Commands& commands, uint32_t tensor) const;  // fills it with 0, where it is used
  uint64_t front() const;                                 // bytes of the guard before a tensor
  const Graph::Impl& impl() const { return graph_.impl(); }

  const Loaded& loaded_;
  const Graph& graph_;
  Transfers& transfers_;
  const HarnessOptions options_;
  Layout layout_;
  std::vector<Step> before_, steps_, after_;
  std::map<uint32_t, Place> places_;  // by the number of the tensor that owns the memory
  Textures textures_;
  std::vector<Staged> staged_;
  Buffer empty_;
};

}  // namespace pumice::engine::kernel_bench
