// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/channels_last_product.h"

#include <algorithm>
#include <cinttypes>
#include <string>

#include "base/divide.h"
#include "glsl/include/math/activation.glslh"
#include "graph/deferred.h"
#include "ops/conv/chain.h"
#include "ops/conv/channels_last.h"
#include "ops/conv/product_launch.h"
#include "ops/conv/product_weight.h"
#include "ops/conv/scaled_image.h"
#include "ops/quant/qparams.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using Product = ConvProduct;

// What the epilogue of a convolution reads.
std::vector<Tensor> with_end(const Product& p, std::vector<Tensor> reads, bool channels_last_out) {
  reads.push_back(p.bias ? p.bias : p.weights());
  if (p.integers) reads.insert(reads.end(), {p.scale, p.sums});
  if (p.units) reads.push_back(p.units);
  if (channels_last_out) reads.push_back(p.addition.other ? p.addition.other : p.weights());
  return reads;
}

// Whether `into` gets the output channels-last, which that of one pixel is in any case.
bool is_channels_last(const Product& p, Tensor into) {
  return p.to_pixel || into.id() != p.out.id();
}

void set_sizes(const Product& p, Tensor into) {
  p.out.resize(p.out_shape());
  if (into.id() != p.out.id())
    into.resize({p.pixels() * channel_groups(p.channels, p.out.dtype()) * group_words(p.out.dtype())});
}

// What the splits of a product leave for the last of them, or for another dispatch (glsl/include/conv/split_k.glslh).
struct Splits {
  Tensor partial, tickets;
};

// Neighbours in the graph have different tickets, so that they may run at once.
Splits splits_of_product(Graph& graph) {
  const auto count = graph.shared<uint32_t>("convolutions with splits");
  const uint32_t set = 1 + (*count)++ % (Graph::kCounterSets - 1);
  return {graph.scratch(DType::i32, 1), graph.counters(most_split_tiles(graph.features()), set)};
}

// The node that reads x as NCHW, or as channels-last. Of the two, only the one for the live shape runs.
void add_product(Graph& graph, const Product& p, Tensor into, Splits splits, bool nchw) {
  const bool channels_last_out = is_channels_last(p, into);
  std::vector<Tensor> reads = {nchw ? p.x : p.x_channels_last, p.chunks};
  if (nchw) reads.push_back(p.factors ? p.factors : p.x);
  graph.dispatch({into, splits.partial, splits.tickets}, with_end(p, reads, channels_last_out), [=](Launch& launch) {
    set_sizes(p, into);
    const bool runs = p.out.numel() != 0;
    const ConvPick pick = runs ? pick_conv(shape_of(p, p.pixels()), launch.features) : ConvPick{};
    const int64_t words = pick.splits * p.channels * ceil_div(p.pixels(), 4) * 4;
    splits.partial.resize({pick.splits > 1 ? words : 4});
    const bool mine = runs && pick.kernel->family != ConvFamily::fragments && p.reads_nchw() == nchw;
    if (mine) multiply(launch, p, pick, channels_last_out);
  });
}

void add_product_by_fragments(Graph& graph, const Product& p, Tensor into) {
  const bool channels_last_out = is_channels_last(p, into);
  std::vector<Tensor> reads = {p.fragments_read_nchw ? p.x : p.x_channels_last, p.fragments};
  if (!p.integers) reads.push_back(p.factors ? p.factors : p.fragments);
  graph.dispatch({into}, with_end(p, reads, channels_last_out), [=](Launch& launch) {
    set_sizes(p, into);
    if (p.out.numel() == 0) return;
    const ConvKernel& kernel = *pick_conv(shape_of(p, p.pixels()), launch.features).kernel;
    if (kernel.family == ConvFamily::fragments) multiply_by_fragments(launch, p, kernel, channels_last_out);
  });
}

// Whether it can write its output channels-last: by cooperative matrices, only whole groups of channels, with scales
// that need no more than one multiplication, and by subgroups that divide the channels of a matrix.
bool writes_channels_last(const Product& p, bool chunks, const Features& features) {
  if (p.channels % (is_byte(p.out.dtype()) ? 16 : 8) != 0) return false;
  if (p.integers && (p.out.dtype() == DType::f32 || p.requantize.is_extreme())) return false;
  if (!chunks) return true;
  ConvShape by_others = shape_of(p, 1);
  by_others.packing = ConvShape::Packing::chunks;
  if (pick_conv(by_others, features).kernel->family == ConvFamily::dot) return false;
  const MatrixShape& shape = p.integers ? features.matrix_s8[0] : features.matrix_f16[0];
  return shape.m % 4 == 0 && features.subgroup_size % (shape.m / 4) == 0;
}

// Whether one multiplication by it is exact enough for kernels of integers (is_extreme in quant/quantize.glslh).
bool is_factor(double scale) {
  const auto stored = static_cast<float>(scale);
  return stored >= 0x1p-126f && stored < 0x1p124f;
}

// The first reader of the output decides its layout (ops/conv/channels_last.h).
void offer(Graph& graph, const Product& product) {
  const auto p = std::make_shared<const Product>(product);
  const auto known = channels_last_of(graph, p->out);
  known->product = p;
  known->write = [=, &graph](Tensor into) { write_product(graph, *p, into); };
  defer(graph, p->out, [=, &graph] {
    if (!p->addition.other || p->to_pixel) return write_product(graph, *p, p->out);
    const Tensor channels_last = channels_last_of(graph, p->out)->tensor = graph.scratch(DType::i32, 1);
    write_product(graph, *p, channels_last);
    from_channels_last(graph, p->out, channels_last);
  });
}

}  // namespace

// What is left of a window when the taps of each row are one, of a pixel that is where the output's is.
static Patches rows_of(const Patches& p) {
  return {.kernel = {p.kernel[0], 1},
          .stride = {p.stride[0], 1},
          .dilation = {p.dilation[0], 1},
          .pads = {p.pads[0], 0, p.pads[2], 0}};
}

ConvProduct::ConvProduct(const Convolution& c)
    : Convolution(c), integers(!is_float(x.dtype())), channels(weight.dim(0)) {
  row_taps = facts().row_taps();
  window = row_taps > 1 ? rows_of(patches) : patches;
  taps = window.kernel[0] * window.kernel[1];
  columns = weight.dim(1) / taps;
  pixel_groups = channel_groups(columns, x.dtype());
}

// Whether a kernel reads it so where nothing wrote it channels-last.
static bool takes_nchw(const Product& p) {
  return p.x.dtype() == DType::f16 && p.is_pointwise();
}

bool takes_matrices(const Convolution& c, const Features& features) {
  if (!channels_last_unsupported_reason(c.facts()).empty()) return false;
  const Product p(c);
  const int64_t pixels = p.x.dim(0) * p.x.dim(2) * p.in_width();
  const auto bytes = static_cast<uint64_t>(pixels * p.pixel_groups * group_words(p.x.dtype()) * 4);
  return pick_conv(shape_of(p, std::max<int64_t>(1, pixels)), features).kernel != nullptr &&
         ((takes_nchw(p) && pixels % 4 == 0) || bytes <= features.max_storage_bytes);
}

// How the weight is packed.
struct Packings {
  bool fragments, chunks;
};

// For the kernels that are picked. Of few pixels they are others than of many: where the shape may change, and one
// image has few, the weight is packed for both.
static Packings packings_of(const Graph& graph, const Product& p) {
  const bool fixed = has_fixed_shape(graph, p.out);
  const int64_t pixels = fixed ? p.pixels() : p.out.dim(2) * p.out.dim(3);
  const ConvPick pick = pick_conv(shape_of(p, std::max<int64_t>(1, pixels)), graph.features());
  const bool fragments = pick.kernel->family == ConvFamily::fragments && !p.may_read_nchw;
  return {fragments, !fragments || (!fixed && p.x.dtype() != DType::f32)};
}

static void pack_weight(Graph& graph, Product& p) {
  const Packings packings = packings_of(graph, p);
  if (p.integers) p.sums = row_sums(graph, p);
  if (p.x.dtype() == DType::f32) p.units = row_units(graph, p);
  if (packings.chunks) p.chunks = pack_chunks(graph, p);
  if (packings.fragments) p.fragments = pack_fragments(graph, p);
}

// Whether the kernel of few pixels gathers the channels of an NCHW x itself, which it does once for each 32 output
// channels: less than a copy where that is little.
static bool fragments_take_nchw(const Graph& graph, const Product& p) {
  const bool whole = !p.integers && p.is_pointwise() && p.columns % 8 == 0;
  if (!whole || !has_fixed_shape(graph, p.out) || !has_fixed_shape(graph, p.x) || p.pixels() == 0) return false;
  const ConvPick pick = pick_conv(shape_of(p, p.pixels()), graph.features());
  if (pick.kernel == nullptr || pick.kernel->family != ConvFamily::fragments) return false;
  const int64_t loads = ceil_div(p.channels, pick.kernel->tile.bm) * p.columns * p.pixels();
  return loads <= graph.features().filling(1 << 20);
}

void convolution_by_matrices(Graph& graph, const Convolution& convolution) {
  auto p = Product(convolution);
  const ScaledImage scaled = scaled_image(graph, p.x);
  const Tensor image = scaled.image ? scaled.image : p.x;
  const bool is_nchw = !has_channels_last(graph, image);
  p.fragments_read_nchw = is_nchw && fragments_take_nchw(graph, p);
  p.may_read_nchw = takes_nchw(p) && is_nchw && !p.fragments_read_nchw;
  if (waits_for_chain(graph, p)) {
    p.waits = true;
  } else if (p.fragments_read_nchw) {
    p.x = image;
    p.factors = scaled.factors;
  } else if (p.may_read_nchw) {
    p.x = image;
    p.factors = scaled.factors;
    p.x_channels_last = odd_as_channels_last(graph, image, p.factors);
  } else if (p.row_taps > 1) {
    p.x_channels_last = row_taps_as_channels_last(graph, p, p.signed_zero());
  } else if (scaled.image && p.x.dtype() == DType::f32 && is_nchw) {
    p.x = image;
    p.x_channels_last = scaled_as_channels_last(graph, image, scaled.factors);
  } else {
    p.x_channels_last = as_channels_last(graph, p.x);
  }
  if (writes_channels_last(p, packings_of(graph, p).chunks, graph.features())) {
    p.to_pixel = is_pixel(graph, p.out);
    return offer(graph, p);
  }
  write_product(graph, p, p.out);
}

void write_product(Graph& graph, const ConvProduct& product, Tensor into) {
  if (try_chain(graph, product, into)) return;
  Product p = product;
  if (p.waits) p.x_channels_last = as_channels_last(graph, p.x);
  pack_weight(graph, p);
  if (p.fragments) add_product_by_fragments(graph, p, into);
  if (!p.chunks) return;
  const Splits splits = splits_of_product(graph);
  add_product(graph, p, into, splits, false);
  if (p.may_read_nchw) add_product(graph, p, into, splits, true);
  const bool channels_last_out = is_channels_last(p, into);
  graph.dispatch({into}, with_end(p, {splits.partial}, channels_last_out), [=](Launch& launch) {
    set_sizes(p, into);
    if (p.out.numel() == 0) return;
    const ConvPick pick = pick_conv(shape_of(p, p.pixels()), launch.features);
    if (pick.splits > 1 && !last_adds(pick)) add_splits(launch, p, pick.splits, channels_last_out);
  });
}

// Of a deferred convolution whose output has one reader, and that may be another one's; else null.
static std::shared_ptr<const Product> sole_product(Graph& graph, Tensor value) {
  const bool sole = is_deferred(graph, value) && uses_of(graph, value).size() == 1;
  return sole ? channels_last_of(graph, value)->product : nullptr;
}

bool try_convolution_into(Graph& graph, Tensor out, Tensor x) {
  const auto before = sole_product(graph, x);
  if (!before || !same_shape(graph, x, out)) return false;
  Product product = *before;
  product.out = out;
  offer(graph, product);
  return true;
}

bool try_convolution_with(Graph& graph, Tensor out, Tensor first, Addition add) {
  if (add.act == ACT_RELU && is_byte(out.dtype())) {
    add.requantize = above_zero(add.requantize);
    add.act = ACT_NONE;
  }
  for (int side = 0; side < 2; ++side) {
    const auto before = sole_product(graph, first);
    const bool mine = before && !before->addition.other;
    const bool same = first.dtype() == add.other.dtype() && first.dtype() == out.dtype() && before &&
                      before->integers == is_byte(out.dtype());
    const bool small = is_factor(add.scale) && is_factor(add.other_scale) && !add.requantize.is_extreme();
    if (mine && same && small && same_shape(graph, first, add.other) && same_shape(graph, first, out)) {
      Product product = *before;
      product.out = out;
      product.addition = add;
      product.addition.other = as_channels_last(graph, add.other);
      offer(graph, product);
      return true;
    }
    std::swap(first, add.other);
    std::swap(add.scale, add.other_scale);
    std::swap(add.zero, add.other_zero);
  }
  return false;
}

}  // namespace pumice::engine
