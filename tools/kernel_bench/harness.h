// SPDX-License-Identifier: Apache-2.0
// One operator on a device as the product runs it (read, build, prepack, infer, launch), in memory that kernel_bench
// lays out itself: every tensor has a buffer or texture of its own, with guards around it, once for each slot.
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

namespace pumice::engine::kernel_bench {

// A file, read, and its graphs, one for each kernel.
struct Loaded {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Program> program;
  std::shared_ptr<ConstantFacts> facts;
  std::vector<std::unique_ptr<Graph>> graphs;
  std::shared_ptr<const Weights> weights;
};
// A kernel by its name as Features::kernel takes it, and a number of rows at which it can run.
struct Forced {
  std::string kernel;
  int64_t m;
};
// All four gates, then the constants are packed. Throws what the product throws.
Loaded load(const std::shared_ptr<Device>& device, std::span<const std::byte> file, std::span<const Forced> kernels,
            const Features& features);
std::unique_ptr<Graph> build_with(const Loaded& loaded, const Features& features, const Forced& kernel);

// A tensor's elements in the form that the device has: i64 becomes i32.
Bytes on_device(DType dtype, const Bytes& bytes);

struct HarnessOptions {
  uint64_t guard_bytes = 0;  // before and after every tensor; bound, so that a kernel can hurt them
  uint32_t slots = 1;        // copies of everything, for rotation past a cache
};

class Harness {
 public:
  // The graph's shapes are those of its last infer; both must outlive the harness.
  Harness(const Loaded& loaded, const Graph& graph, const HarnessOptions& options);

  // Every byte becomes `word`, then the constants come to their places, and the status words are 0. Inputs are given in
  // the program's order.
  void reset(uint32_t word, std::span<const Data> inputs);
  // The inputs alone: before a run that follows one which wrote its output in place of an input.
  void put_inputs(uint32_t word, std::span<const Data> inputs);
  bool overwrites_inputs() const;
  // Before another run of the same; no report of the last one is left.
  void clear_report();
  // What the last run reported of slot 0.
  std::optional<HostReport> report();
  // The kernels of one run, with the barriers they need among themselves.
  void dispatch(Commands& commands, uint32_t slot) const { dispatch(commands, steps_, slot); }
  // Runs what was so recorded; outputs of slot 0 then come out of their textures.
  void run(const Commands& kernels);
  // An output of slot 0, after that.
  Bytes read_output(size_t index = 0);
  // Where the guards or the padding of slot 0 are not what reset(word) made them, as text; empty when they are whole.
  std::string damage(uint32_t word);
  // Names of the shaders that run, joined by '+'.
  std::string shaders() const;
  // Whether one of them multiplies by cooperative matrices.
  bool has_matrices() const;
  uint64_t slot_bytes() const;  // what a slot takes
  uint64_t output_bytes(size_t index = 0) const;
  // What a run reads and writes, and its arithmetic, as the launches say.
  uint64_t launch_bytes() const;
  uint64_t launch_flops() const;
  // For planted mistakes: overwrites the word at `byte` of output 0, or a guard of it.
  void spoil(uint64_t byte, uint32_t word);
  void spoil_guard(uint32_t word);

 private:
  struct Place {
    Buffer buffer = {};
    uint64_t bytes = 0, stride = 0;  // of the tensor, and from slot to slot
    std::string name;
  };
  void dispatch(Commands& commands, std::span<const Step> steps, uint32_t slot) const;
  Slice slice(uint32_t tensor, uint32_t slot) const;
  Slice binding(uint32_t tensor, const BindingRange& part, uint32_t slot) const;
  Bytes read(const Place& place, uint64_t first, uint64_t bytes);
  const Graph::Impl& impl() const { return graph_.impl(); }

  const Loaded& loaded_;
  const Graph& graph_;
  const HarnessOptions options_;
  Layout layout_;
  std::vector<Step> before_, steps_, after_;
  std::map<uint32_t, Place> places_;  // by the tensor whose storage it is
  Textures textures_;
  Buffer empty_;
};

}  // namespace pumice::engine::kernel_bench
