// SPDX-License-Identifier: Apache-2.0
// Pack: constants that a node reads are uploaded and kept. Constants that only packed constants are made of pass
// through temporary memory, a batch at a time, so that the peak is the packed weights plus one batch; of a packed
// constant in several dispatches only their binding ranges. What another program has on the device is not made again.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/constant_source.h"
#include "graph/graph_impl.h"
#include "graph/weight_memory.h"

namespace pumice::engine {

// Where the weights of a program lie.
struct WeightTable {
  std::map<std::pair<uint32_t, DType>, Allocation> constants;  // that are kept
  std::unordered_map<std::string, Allocation> packed;          // by PackedConstant::key
};

class Prepack {
 public:
  Prepack(std::shared_ptr<Device> device, ConstantSource& source, WeightMemory& memory, WeightTable& table);

  // Notes what a graph needs; the graph must live until run() returns.
  void collect(const Graph& graph);
  void keep(uint32_t constant, DType dtype, uint64_t bytes);
  // Makes everything and waits for the device.
  void run();

 private:
  // One dispatch of a packed constant.
  struct Job {
    const Graph* graph;
    const PackedConstant* packed;
    Dispatch dispatch;
    const Graph::Impl& impl() const { return graph->impl(); }
    BindingRange binding_range(size_t binding) const;       // 0: the result; i + 1: input i
    std::optional<ConstantRange> constant(size_t i) const;  // what it reads of input i, where that is in the file
  };
  // A range of a temporary buffer, which is destroyed with its last range.
  struct Temporary {
    std::shared_ptr<Buffer> buffer;
    Allocation allocation;
  };

  void keep(const Graph::Impl& graph, uint32_t id);
  std::string key_of(const Graph::Impl& graph, const PackedConstant& packed);
  void upload_kept();
  void pack_all();
  std::set<ConstantRange> missing(const Job& job) const;
  uint64_t bytes_of(const std::set<ConstantRange>& ranges) const;
  void upload_temporary(const std::set<ConstantRange>& ranges);
  void run_batch(std::span<const Job> jobs);
  const Allocation& result(const Job& job, Commands& commands);
  Slice input(const Job& job, size_t i, std::set<std::string>& fresh, Commands& commands);

  std::shared_ptr<Device> device_;
  ConstantSource& source_;
  WeightMemory& memory_;
  WeightTable& table_;
  const uint64_t alignment_;
  std::map<std::pair<uint32_t, DType>, uint64_t> kept_;  // constants that stay, and their bytes
  std::map<ConstantRange, uint32_t> uses_;               // by jobs that have not run
  std::map<ConstantRange, Temporary> temporary_;         // on the device for now
  std::vector<Job> jobs_;
  std::set<std::string> keys_;  // of the packed constants that were collected
};

}  // namespace pumice::engine
