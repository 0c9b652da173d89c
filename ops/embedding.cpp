// SPDX-License-Identifier: Apache-2.0
// out[i.., :] = weight[index[i..], :]. An index out of range fails the run (InvalidArgument) and reads nothing out of
// bounds. Float weights are copied bit for bit. embedding_q4gsw and embedding_q8gsw read (weight - zero) * scale from
// the packed layout of ops/linear/packed_weight.h, which a linear layer with the same weight shares; error: 2^-24 |y|,
// and u |y| for the output's type.
#include <cinttypes>

#include "glsl/embedding.h"
#include "glsl/embedding_packed.h"
#include "ops/linear/packed_weight.h"
#include "ops/op.h"
#include "ops/reference/indices.h"
#include "ops/shared/phases.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void resize(Tensor out, Tensor index, int64_t columns) {
  Shape shape = index.shape();
  shape.push_back(columns);
  out.resize(shape);
}

void check_index(Tensor index, const char* op) {
  check(index.dtype() == DType::i64 || index.dtype() == DType::i32, "%s: indices are %s, not i32 or i64", op,
        name(index.dtype()));
}

// Calls run(positions, rows, part) for each range of indices and of the table's rows, and sets their binding ranges in
// output and indices; part: there are several ranges. `row`: the bytes of a row of the table.
template <class Run>
void in_blocks(Launch& launch, Tensor out, uint64_t row, const std::vector<RowRange>& tables, const Run& run) {
  const int64_t columns = out.dim(-1);
  const uint64_t out_row = static_cast<uint64_t>(columns) * device_bytes(out.dtype());
  const uint32_t count = columns == 0 ? 0 : u32(out.numel() / columns);
  u32(out.numel());
  const auto positions = split_rows(count, {out_row, 4}, launch.features);
  const bool part = positions.size() * tables.size() > 1;
  for (const RowRange& block : positions) {
    for (const RowRange& rows : tables) {
      launch.binding_ranges = {binding_range(block, count, out_row), {}, {}, binding_range(block, count, 4)};
      launch.over((static_cast<uint64_t>(block.count) * static_cast<uint64_t>(columns) + 3) / 4);
      launch.bytes = rows.first == 0 ? block.count * (4 + row + out_row) : 0;  // each row is in one block of the table
      run(block, rows, part);
      launch.next_dispatch();
    }
  }
}

// Of the dispatch that is being made.
void set_phase(Launch& launch, std::optional<PackedWeight> packed, Tensor rows, uint32_t n, uint32_t k, Tensor out) {
  if (out.numel() == k) launch.phase = std::make_shared<EmbeddingPhase>(std::move(packed), rows, n, k, out.dtype());
}

void embedding(Graph& graph, Args args) {
  const Tensor weight = args.tensor(0), index = args.tensor(1), out = args.out();
  check_index(index, "embedding");
  check(weight.rank() == 2 && weight.dtype() == out.dtype(),
        "embedding: the weight must have rank 2 and the output's dtype");
  const uint32_t call = graph.call_id();
  graph.dispatch({out, graph.status()}, {weight, index}, [=](Launch& launch) {
    resize(out, index, weight.dim(1));
    check(weight.dim(0) >= 1 || out.numel() == 0, "embedding: the weight has no rows");
    const uint32_t n = u32(weight.dim(0)), k = u32(weight.dim(1));
    const uint64_t row = uint64_t{k} * device_bytes(weight.dtype());
    const auto tables = split_rows(n, {row}, launch.features);
    in_blocks(launch, out, row, tables, [&](const auto& at, const auto& rows, bool part) {
      launch.spec.push_back(part);
      launch.writes_once = true;
      launch.params(glsl::embedding::Params{at.count * k, at.first, n, rows.first, rows.count, k, call});
      launch.shader = &glsl::embedding::variant(glsl::embedding::dtype(out.dtype()));
      launch.binding_ranges[2] = binding_range(rows, n, row);
      set_phase(launch, {}, weight, n, k, out);
    });
  });
}

void packed(Graph& graph, const Args& args, const char* op, DType stored) {
  const Tensor weight = args.tensor(0), index = args.tensor(3), out = args.out();
  check_index(index, op);
  check(weight.dtype() == stored, "%s: the weight is %s, not %s", op, name(weight.dtype()), name(stored));
  const PackedWeight w = pack_weight(graph, op, weight, args.tensor(1), args.tensor(2), args.integer(4), true);
  const uint32_t call = graph.call_id();
  graph.dispatch({out, graph.status()}, {w.weight, index, w.scale, w.zero ? w.zero : w.scale}, [=](Launch& launch) {
    using namespace glsl::embedding_packed;
    resize(out, index, w.k);
    const auto tables = weight_row_ranges(w, launch.features);
    in_blocks(launch, out, row_bytes(w), tables, [&](const auto& at, const auto& rows, bool part) {
      launch.spec.insert(launch.spec.end(), {w.group, w.scale_f16, bool(w.zero), part});
      launch.params(
          Params{at.count * w.k, at.first, w.n, rows.first, rows.count, w.k, (w.k + 63) / 64, w.groups, call});
      launch.shader =
          &variant(glsl::embedding_packed::dtype(out.dtype()), w.type == WeightType::q4 ? WEIGHT::q4 : WEIGHT::q8,
                   static_cast<WEIGHT_STORAGE>(w.texture));
      const auto [weights, scale, zero] = weight_binding_ranges(w, rows);
      launch.binding_ranges[2] = weights;
      launch.binding_ranges.insert(launch.binding_ranges.end(), {scale, zero});
      set_phase(launch, w, w.weight, w.n, w.k, out);
    });
  });
}

void embedding_q4gsw(Graph& graph, Args args) {
  packed(graph, args, "embedding_q4gsw", DType::i4);
}
void embedding_q8gsw(Graph& graph, Args args) {
  packed(graph, args, "embedding_q8gsw", DType::i8);
}

// Not DTYPE of embedding_packed as it is: the first tensor argument is the packed weight, whose dtype is no axis.
constexpr Axis kPackedAxes[] = {{"OUT", glsl::embedding_packed::kDTYPE},
                                {"WEIGHT_STORAGE", glsl::embedding_packed::kWEIGHT_STORAGE}};

}  // namespace

std::span<const Op> embedding_ops() {
  static constexpr Op kOps[] = {
      {{"embedding", 1, "Tensor weight, Tensor index -> Tensor"},
       embedding,
       glsl::embedding::axes,
       {"weight=const:T[11,20] index=i32[3,5]{0..10}|i64[3,5]{0..10}|i32[3,5]{9..13}|i64[3,5]{-3..0} -> T[3,5,20]",
        "weight=const:f16[4096,768] index=i32[32,128]{0..4095} -> f16[32,128,768]", reference::embedding}},
      {{"embedding_q4gsw", 1, "Tensor weight, Tensor scale, Tensor? zero, Tensor index, int group -> Tensor"},
       embedding_q4gsw,
       kPackedAxes,
       {"weight=const:i4[33,64] scale=const:f32[33,2]{0.01..0.1} index=i32[7]{0..32} group=32 -> T[7,64]",
        "weight=const:i4[4096,768] scale=const:f32[4096,24]{0.01..0.1} index=i32[32,128]{0..4095} group=32 "
        "-> f16[32,128,768]",
        reference::embedding_packed}},
      {{"embedding_q8gsw", 1, "Tensor weight, Tensor scale, Tensor? zero, Tensor index, int group -> Tensor"},
       embedding_q8gsw,
       kPackedAxes,
       {"weight=const:i8[33,64] scale=const:f32[33,2]{0.01..0.1} zero=const:i8[33,2]{-9..9} "
        "index=i64[7]{0..32} group=32 -> T[7,64]",
        "", reference::embedding_packed}},
  };
  return kOps;
}

}  // namespace pumice::engine
