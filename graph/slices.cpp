// SPDX-License-Identifier: Apache-2.0
#include "graph/slices.h"

#include <algorithm>

#include "graph/boxes.h"
#include "graph/infer.h"

namespace pumice::engine {
namespace {

// Neighbouring dimensions of the output, [first, last], along which the same tensors are cut: taken for one dimension.
struct Run {
  size_t first, last;
  uint32_t tensors;  // bit b: binding b
};

class Slicer {
 public:
  Slicer(Graph& graph, Node& node, uint32_t outer)
      : graph_(graph), impl_(graph.impl()), node_(node), outer_(outer), ids_(node.writes) {
    ids_.insert(ids_.end(), node.reads.begin(), node.reads.end());
  }
  ~Slicer() {
    for (size_t b = 0; b < shapes_.size(); ++b) impl_.tensors[ids_[b]].shape = shapes_[b];
  }
  Slicer(const Slicer&) = delete;
  Slicer& operator=(const Slicer&) = delete;

  void run() {
    if (node_.dispatches.empty() || !takes()) return;
    for (const uint32_t id : ids_) shapes_.push_back(impl_.tensors[id].shape);
    find_runs();
    Dims sizes{};
    if (runs_.size() > sizes.size()) return;
    for (size_t r = 0; r < runs_.size(); ++r) sizes[r] = product(0, runs_[r].first, runs_[r].last);
    std::vector<Touched> touched(ids_.size());
    for (size_t b = 0; b < ids_.size(); ++b) touched[b] = touched_by(b);
    const std::vector<Box> all = boxes(sizes, touched, impl_.features);
    if (all.size() == 1) return;
    node_.dispatches.clear();
    for (const Box& box : all) add(box, touched);
  }

 private:
  // Whether a tensor is too large, and all are buffers. The place that a kernel reports is one in the whole tensor.
  bool takes() const {
    bool large = false;
    for (const uint32_t id : ids_) {
      if (id == kNone) return false;
      const TensorInfo& tensor = impl_.tensors[id];
      if (tensor.storage != StorageType::buffer || tensor.memory == MemorySource::status) return false;
      large = large || impl_.bytes(id) > impl_.features.max_storage_bytes;
    }
    return large;
  }

  // The dimension of a binding's tensor that is dimension d of the output: sizes broadcast from the last one on; what
  // has more dimensions is reduced over its last ones.
  int64_t at(size_t b, size_t d) const {
    const auto missing = static_cast<int64_t>(shapes_[0].size()) - static_cast<int64_t>(shapes_[b].size());
    return static_cast<int64_t>(d) - std::max<int64_t>(missing, 0);
  }

  bool is_cut(size_t b, size_t d) const {
    const int64_t i = at(b, d);
    return i >= 0 && shapes_[b][static_cast<size_t>(i)] == shapes_[0][d];
  }

  // Of the sizes of a binding's tensor in dimensions [first, last] of the output.
  int64_t product(size_t b, size_t first, size_t last) const {
    int64_t count = 1;
    for (size_t d = first; d <= last; ++d) count *= shapes_[b][static_cast<size_t>(at(b, d))];
    return count;
  }

  void find_runs() {
    for (size_t d = 0; d < outer_; ++d) {
      if (shapes_[0][d] <= 1) continue;
      uint32_t tensors = 0;
      for (size_t b = 0; b < ids_.size(); ++b) tensors |= uint32_t{is_cut(b, d)} << b;
      if (runs_.empty() || runs_.back().tensors != tensors) runs_.push_back({d, d, tensors});
      runs_.back().last = d;
    }
  }

  Touched touched_by(size_t b) const {
    const uint64_t total = impl_.bytes(ids_[b]);
    Touched touched{.unit = total, .total = total, .stride = {}};
    for (const Run& run : runs_) {
      if (((run.tensors >> b) & 1u) != 0) touched.unit /= static_cast<uint64_t>(product(b, run.first, run.last));
    }
    auto bytes = static_cast<int64_t>(touched.unit);
    for (size_t r = runs_.size(); r-- > 0;) {
      if (((runs_[r].tensors >> b) & 1u) == 0) continue;
      touched.stride[r] = bytes;
      bytes *= product(b, runs_[r].first, runs_[r].last);
    }
    return touched;
  }

  Shape sliced(size_t b, const Box& box) const {
    Shape shape = shapes_[b];
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (((runs_[r].tensors >> b) & 1u) == 0) continue;
      for (size_t d = runs_[r].first; d <= runs_[r].last; ++d)
        shape[static_cast<size_t>(at(b, d))] = d == runs_[r].last ? box.count[r] : 1;
    }
    return shape;
  }

  void add(const Box& box, const std::vector<Touched>& touched) {
    for (size_t b = 0; b < ids_.size(); ++b) impl_.tensors[ids_[b]].shape = sliced(b, box);
    for (Dispatch& dispatch : launch(graph_, node_.launch, ids_.size())) {
      dispatch.binding_ranges = ranges_of(touched, box, impl_.features);
      node_.dispatches.push_back(std::move(dispatch));
    }
  }

  Graph& graph_;
  Graph::Impl& impl_;
  Node& node_;
  uint32_t outer_;
  std::vector<uint32_t> ids_;  // of the bindings
  std::vector<Shape> shapes_;  // theirs, whole
  std::vector<Run> runs_;
};

}  // namespace

void slice(Graph& graph, Node& node, uint32_t outer) {
  Slicer(graph, node, outer).run();
}

}  // namespace pumice::engine
