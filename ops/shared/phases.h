// SPDX-License-Identifier: Apache-2.0
// What operators say of the dispatches that may become parts of glsl/decoder_layers.glsl (ops/shared/decoder_layers.h).
#pragma once

#include <optional>

#include "ops/linear/epilogue.h"
#include "ops/shared/cached_attention_launch.h"

namespace pumice::engine {

// One row of an embedding, in a node that reads the index second.
struct EmbeddingPhase : Phase {
  std::optional<PackedWeight> packed;  // else `rows` has its values
  Tensor rows;
  uint32_t n, k;
  DType dtype;  // of the result
  EmbeddingPhase(std::optional<PackedWeight> the_packed, Tensor the_rows, uint32_t the_n, uint32_t the_k,
                 DType the_dtype)
      : packed(std::move(the_packed)), rows(the_rows), n(the_n), k(the_k), dtype(the_dtype) {}
};

// The product of one row that a dispatch computes, in a node that reads and writes as linear_reads says.
struct ProductPhase : Phase {
  PackedWeight weight;
  Epilogue epilogue;
  DType dtype;
  ProductPhase(const PackedWeight& the_weight, const Epilogue& the_epilogue, DType the_dtype)
      : weight(the_weight), epilogue(the_epilogue), dtype(the_dtype) {}
};

// The attention of one row.
struct AttentionPhase : Phase {
  Caches caches;
  Tensor out, new_keys, new_values;
  uint32_t call;
  AttentionPhase(const Caches& the_caches, Tensor the_out, Tensor keys, Tensor values, uint32_t the_call)
      : caches(the_caches), out(the_out), new_keys(keys), new_values(values), call(the_call) {}
};

// The three dispatches of a call that draw a token from a row of logits (ops/sample_token.cpp): all have the same one.
struct SamplePhase : Phase {
  Tensor logits, options, counts, made, token, position, step;
  Tensor new_made, new_token, new_position, new_step;
  uint32_t call = 0;
};

}  // namespace pumice::engine
