// SPDX-License-Identifier: Apache-2.0
// The graph to which an operator adds nodes. It uses no Vulkan: building, shape inference and planning run without a
// device.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "glsl/shader.h"
#include "graph/arithmetic.h"
#include "graph/tensor.h"
#include "vulkan/features.h"

namespace pumice::engine {

// The bytes of a tensor that one dispatch binds. `begin` is a multiple of Features::storage_alignment; bytes 0: up to
// the end of the tensor.
struct BindingRange {
  uint64_t begin = 0, bytes = 0;
};

// The address of what a dispatch binds, which its kernel finds in the push constants: two words, the lower one first.
// Of a buffer, on a CPU driver with Feature::addresses. Nothing checks what a kernel reads there, so recording refuses
// a binding of fewer than `bytes`: all that the kernel can read, by the sizes in its push constants.
struct BindingAddress {
  size_t push = 0;     // offset in the push constants
  size_t binding = 0;  // also of Graph::dispatch's writes and reads, so that hazards are seen as those of others
  uint64_t bytes = 0;
};

// What a dispatch computes, in the words of the operators, where it may become a part of a larger one: graph/merge.h.
struct Phase {
  virtual ~Phase() = default;
};

// One dispatch of a kernel.
struct Dispatch {
  const Shader* shader = nullptr;  // null: nothing to run (an empty output, a view)
  // Specialization constants; spec[0] is the size of a workgroup, set by over() or by the operator.
  std::vector<uint32_t> spec = {};
  std::array<uint32_t, 3> groups{0, 0, 0};  // workgroups; a zero: nothing to run
  uint32_t subgroup_size = 0;               // required; 0: the driver's choice
  uint64_t flops = 0;                       // for reports; 0: not counted
  Arithmetic arithmetic = Arithmetic::f32;  // of these
  bool split = false;                       // for reports: a product of fp32 by two fp16 for each element
  // Steps of all invocations, where they are many more than flops and bytes show: of a search, a scan by one workgroup.
  uint64_t operations = 0;
  uint64_t bytes = 0;  // for reports, read and written; 0: every tensor once, whole
  std::vector<std::byte> push = {};
  std::vector<BindingRange> binding_ranges = {};  // of the bindings, in their order; after the last: whole tensors
  std::vector<BindingAddress> addresses = {};
  std::shared_ptr<const Phase> phase = {};
  // It writes each element of writes[0] once and reads none, so that this may be the host's memory, across a bus.
  bool writes_once = false;
  bool tuned = false;  // for reports: the kernel was chosen by what `pumice tune` measured
  bool runs() const { return shader != nullptr && groups[0] != 0 && groups[1] != 0 && groups[2] != 0; }
};

// An operator's launch function fills it from live shapes; encode reads it.
struct Launch : Dispatch {
  const Features& features;
  const Graph& graph;
  std::vector<Dispatch> dispatches = {};  // those that are complete
  // How many of the first dimensions of writes[0] are independent: what is at an index there follows from the same
  // index of the reads that have it, and from all of the others. Where a tensor is larger than a binding, the launch is
  // then called for slices along these dimensions (graph/slices.h); 0: it is not.
  uint32_t outer = 0;

  Launch(const Features& the_features, const Graph& the_graph) : features(the_features), graph(the_graph) {}

  template <class P>
  void params(const P& params) {
    push.resize(sizeof(P));
    std::memcpy(push.data(), &params, sizeof(P));
  }
  // One invocation for each of `count` items, in workgroups of `size`: groups (x, y) with x within the device's limit.
  // The shader gets its item from `item()` of core/launch.glslh and must compare it with its own count.
  void over(uint64_t count, uint32_t size = 128);
  // `count` workgroups along x, then y, within the device's limits: group() of core/launch.glslh. Throws LimitExceeded
  // where one dispatch does not take so many, or where an index of an invocation would wrap.
  void over_groups(uint64_t count, uint32_t size);
  // The live value of a size argument. Throws LimitExceeded beyond 2^31 either way: products of two are within 64 bits.
  int64_t size(SymInt size) const;
  // The same for a place in a tensor, such as the end of a slice: what is beyond 2^31 is taken for that.
  int64_t place(SymInt place) const;
  // Completes the dispatch and begins an empty one. For calls in several dispatches, on tensors larger than a binding.
  // Not needed after the last dispatch. The dispatches of a call run one after another; those of a packed constant run
  // in any order or at once.
  void next_dispatch();
};

using LaunchFunction = std::function<void(Launch&)>;
using ShapeFunction = std::function<void(const Launch&)>;

class Graph {
 public:
  // ---- for operators ----

  // A kernel call. Bindings are `writes`, then `reads`, in that order. `launch` first resizes every write and then sets
  // the dispatch. It is called for every new combination of live shapes and must depend on nothing else.
  void dispatch(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch);
  // As dispatch, and writes[i] may take over the memory of reads[i], for each i < pairs. The kernel must read an
  // element of reads[i] only before it writes it, in the same invocation. In `launch`, shares(...) tells whether the
  // memory was taken over.
  void dispatch_in_place(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch,
                         uint32_t pairs = 1);
  bool shares(Tensor a, Tensor b) const;  // whether both have the same memory, at the live shapes
  // `out` is `in` under another shape; nothing runs. `shape` resizes out (same numel).
  void view(Tensor out, Tensor in, ShapeFunction shape);
  // The same of the first elements of `in`, as many as `shape` says.
  void view_first(Tensor out, Tensor in, ShapeFunction shape);

  // The texture of a value that an operator reads. It is copied from the value's buffer where that was written instead.
  Tensor texture(Tensor value);
  // The texture of a value that an operator writes, all of it. Operators that read the buffer get a copy.
  Tensor texture_out(Tensor value);
  // Whether the value, or the packed form of the constant, is to be in a texture: by the file, or by Features::storage.
  bool in_texture(Tensor value) const;

  // A packed constant: made once at load from constants, by a kernel. It is shared by all calls with the same `what`,
  // inputs, dtype and shape. The inputs need not stay on the device. Bindings: the result, then `inputs`.
  Tensor prepack(const std::string& what, std::vector<Tensor> inputs, DType dtype, const Shape& shape,
                 LaunchFunction launch, StorageType storage = StorageType::buffer);

  // What the bytes of a constant show while the graph is built. They are unknown for packed constants, and for external
  // ones while the graph is only validated.

  // Whether every byte is 0; false where they are unknown.
  bool is_zero(Tensor constant) const;
  // Of an fp16 constant whose every element is a normal number: the exponents of its smallest and largest magnitude,
  // e where 2^e <= |x| < 2^(e + 1). Empty otherwise, also where the bytes are unknown.
  struct Exponents {
    int32_t low, high;
  };
  std::optional<Exponents> half_exponents(Tensor constant) const;
  // The first element of a constant of f32 or f16 that cannot be a scale: NaN, infinite or negative. Empty where there
  // is none, also where the bytes are unknown.
  struct Scale {
    size_t index;
    uint32_t bits;  // of the constant's dtype
  };
  std::optional<Scale> bad_scale(Tensor constant) const;

  // A temporary; its shape is set by resize in a launch.
  Tensor scratch(DType dtype, uint32_t rank);
  // Four words into which a kernel reports what only the data shows, such as an index out of range (core/status.glslh):
  // {call + 1, position, value, limit}. Bound as a write.
  Tensor status();
  // At least `count` words of i32 that are 0 when a run begins. A dispatch that binds them, as a write, leaves them at
  // 0; the session clears them after a run that was stopped. All calls that name a set have its words, so that their
  // dispatches run one after another.
  Tensor counters(int64_t count, uint32_t set = 0);
  static constexpr uint32_t kCounterSets = 8;
  // A dispatch that runs several steps of a call (graph/merge.h) is tried only where `suits` takes the bytes of
  // `input`, should that be an input of the method.
  void steps_suit(Tensor input, std::function<bool(std::span<const std::byte>)> suits);
  uint32_t call_id() const;  // the operator call being built, for status reports
  const Features& features() const;
  // A value of type T that operator calls share while the graph is built, by a key of their own; made by the first call
  // that needs it.
  template <class T>
  std::shared_ptr<T> shared(const std::string& key) {
    std::shared_ptr<void>& slot = shared_slot(key);
    if (!slot) slot = std::make_shared<T>();
    return std::static_pointer_cast<T>(slot);
  }

  // ---- for the engine: graph_impl.h ----

  struct Impl;
  Graph();
  ~Graph();  // tensors point at their graph: it is neither moved nor copied
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  void add_view(Tensor out, Tensor in, ShapeFunction shape, bool first);
  std::shared_ptr<void>& shared_slot(const std::string& key);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
