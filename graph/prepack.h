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

#include "base/deadline.h"
#include "graph/budget.h"
#include "graph/graph_impl.h"
#include "graph/pack_plan.h"
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
  // After everything was collected: what run() will allocate. Sets the parts of the weights.
  MemoryNeed need();
  // Makes everything and waits for the device. Throws Timeout between two steps.
  void run(const Deadline& deadline);

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
  void plan();
  bool is_kept(const ConstantRange& range) const { return kept_.contains({range.constant, range.dtype}); }
  void keep(const Graph::Impl& graph, uint32_t id);
  std::string key_of(const Graph::Impl& graph, const PackedConstant& packed);
  void upload_kept(const Deadline& deadline);
  void pack_all(const Deadline& deadline);
  void upload_temporary(const PackBatch& batch, const Buffer& buffer);
  void run_batch(std::span<const Job> jobs);
  const Allocation& result(const Job& job, Commands& commands);
  Slice input(const Job& job, size_t i, std::set<std::string>& fresh, Commands& commands);

  std::shared_ptr<Device> device_;
  ConstantSource& source_;
  WeightMemory& memory_;
  WeightTable& table_;
  const uint64_t alignment_;
  std::map<std::pair<uint32_t, DType>, uint64_t> kept_;  // constants that stay, and their bytes
  std::vector<Job> jobs_;
  std::vector<PackBatch> batches_;  // of jobs_
  std::vector<Buffer> buffers_;     // of the batches' temporary constants, until they are done
  std::map<ConstantRange, Allocation> temporary_;
  std::set<std::string> keys_;  // of the packed constants that were collected
};

}  // namespace pumice::engine
