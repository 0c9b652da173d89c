// SPDX-License-Identifier: Apache-2.0
// The graph an operator adds nodes to. Knows no Vulkan: building, shape inference and planning run without a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "glsl/shader.h"
#include "graph/tensor.h"
#include "vulkan/device.h"

namespace pumice::engine {

// A part of a tensor's bytes as a kernel sees it: `begin` is a multiple of Features::storage_alignment; bytes 0: up to
// the end.
struct BindingRange {
  uint64_t begin = 0, bytes = 0;
};

// One dispatch of a kernel call.
struct Dispatch {
  const Shader* shader = nullptr;  // stays null: nothing to run (an empty output, a view)
  std::vector<uint32_t> spec =
      {};  // specialization constants; spec[0] is the workgroup's size, set by over() or by hand
  std::array<uint32_t, 3> groups{0, 0, 0};  // a zero: nothing to run
  uint32_t subgroup_size = 0;
  uint64_t flops = 0;  // for reports; 0 = not counted
  uint64_t bytes = 0;  // for reports: read and written; 0 = every tensor once, whole
  std::vector<std::byte> push = {};
  std::vector<BindingRange> binding_ranges =
      {};  // of the bindings, in their order; those behind the last: the whole tensor
  bool runs() const { return shader != nullptr && groups[0] != 0 && groups[1] != 0 && groups[2] != 0; }
};

// Filled by an operator's launch function from live shapes; read by encode.
struct Launch : Dispatch {
  const Features& features;
  const Graph& graph;
  std::vector<Dispatch> dispatches = {};  // those that are complete

  Launch(const Features& the_features, const Graph& the_graph) : features(the_features), graph(the_graph) {}

  template <class P>
  void params(const P& params) {
    push.resize(sizeof(P));
    std::memcpy(push.data(), &params, sizeof(P));
  }
  // One invocation for each of `count` items, in workgroups of `size`: groups (x, y) with x within the device's limit.
  // The shader's item is `item()` of glsl/include/core/launch.glslh; it must compare it with its own count.
  void over(uint64_t count, uint32_t size = 128);
  int64_t size(SymInt size) const;  // a size argument's live value
  // For calls in several dispatches, on tensors larger than a binding: ends one, the next is said from scratch. Parts
  // of a call run one after another, those of a weight's packing in any order or at once. Not needed behind the last.
  void next_dispatch();
};

using LaunchFunction = std::function<void(Launch&)>;
using ShapeFunction = std::function<void(const Launch&)>;

class Graph {
 public:
  // ---- for operators
  // ------------------------------------------------------------------------------------------------- A kernel call.
  // Bindings are `writes` then `reads`, in that order. `launch` first resizes every write, then says what to run; it is
  // called for every new combination of live shapes, and must depend on nothing else.
  void dispatch(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch);
  // As dispatch, and writes[0] may take over the storage of reads[0] (the kernel reads an element of it only before it
  // writes it, from the same invocation). `launch` learns by shares(...) whether it did.
  void dispatch_in_place(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch);
  bool shares(Tensor a, Tensor b) const;
  // `out` is `in` under another shape; nothing runs. `shape` resizes out (same numel).
  void view(Tensor out, Tensor in, ShapeFunction shape);
  // The texture of a value that an operator reads, or of one that it writes (all of it); other operators get copies.
  Tensor texture(Tensor value);
  Tensor texture_out(Tensor value);
  // Whether the value, or the constant's packed form, is to be in a texture: by the file, or by Features::storage.
  bool in_texture(Tensor value) const;
  // A constant made once at load from constants, shared by all calls with the same `what`, inputs, dtype and shape. The
  // inputs need not stay on the device. Bindings: the result, then `inputs`.
  Tensor prepack(const std::string& what, std::vector<Tensor> inputs, DType dtype, const Shape& shape,
                 LaunchFunction launch, StorageClass storage = StorageClass::buffer);
  // True when every byte of a constant is proved 0 now, from the file; false also when nobody knows (made at load,
  // external).
  bool is_zero(Tensor constant) const;
  // Of an fp16 constant whose every element is a normal number: the exponents of its smallest and largest magnitude
  // (2^e
  // <= |x| < 2^(e + 1)). Empty otherwise, also when nobody knows.
  struct Exponents {
    int32_t low, high;
  };
  std::optional<Exponents> half_exponents(Tensor constant) const;
  // The first element of a constant of f32 or f16 that no scale can be: NaN, infinite or negative. Empty when there is
  // none, also when nobody knows.
  struct Scale {
    size_t index;
    uint32_t bits;  // of the constant's dtype
  };
  std::optional<Scale> bad_scale(Tensor constant) const;
  // A temporary; its shape is set by resize in a launch.
  Tensor scratch(DType dtype, uint32_t rank);
  // Four words a kernel reports a bad data-dependent index into (glsl/include/core/status.glslh), bound as a write.
  // `describe` turns the words {call + 1, position, value, limit} into text for InvalidArgument.
  Tensor status();
  uint32_t call_id() const;  // the operator call being built, for status reports
  // Leaves it to whoever asks first for the value of `out`, an output of the call being built, how it is written:
  // `write` adds the nodes when somebody reads it as it is, never when nobody does.
  void defer(Tensor out, std::function<void()> write);
  bool is_deferred(Tensor value) const;
  // For who asks for it in another form: `write` adds nodes now, in the name of the call that deferred `out`. It stays
  // deferred, by `later`.
  void write_deferred(Tensor out, const std::function<void()>& write, std::function<void()> later);
  // Arguments of calls that are the value, and outputs of the method and new values of states.
  uint32_t num_uses(Tensor value) const;
  bool same_shape(Tensor a, Tensor b) const;  // of two values: for inputs of any size, as far as the file shows it
  const Features& features() const;
  // What operator calls share while the graph is built, by a key of theirs (a value that several of them need); a fresh
  // T when asked for the first time.
  template <class T>
  std::shared_ptr<T> shared(const std::string& key) {
    std::shared_ptr<void>& slot = shared_slot(key);
    if (!slot) slot = std::make_shared<T>();
    return std::static_pointer_cast<T>(slot);
  }

  // ---- for build, plan, encode: see build.h
  // ---------------------------------------------------------------------------
  struct Impl;
  Graph();
  ~Graph();  // tensors point at their graph: it neither moves nor is copied
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<void>& shared_slot(const std::string& key);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
