// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/channels_last_product.h"

#include <algorithm>
#include <cinttypes>
#include <string>

#include "base/divide.h"
#include "glsl/conv2d_dot.h"
#include "glsl/conv2d_fragments.h"
#include "glsl/conv2d_fragments_int8.h"
#include "glsl/conv2d_matrix.h"
#include "glsl/conv2d_matrix_int8.h"
#include "glsl/conv2d_split_k.h"
#include "glsl/conv2d_split_k_int8.h"
#include "glsl/include/math/activation.glslh"
#include "graph/deferred.h"
#include "ops/conv/chain.h"
#include "ops/conv/channels_last.h"
#include "ops/conv/product_weight.h"
#include "ops/conv/scaled_image.h"
#include "ops/linear/packed_weight.h"
#include "ops/quant/qparams.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

using Product = ConvProduct;

bool is_padded(const Product& p) {
  return p.window.pads != std::array<int64_t, 4>{};
}

ConvShape shape_of(const Product& p, int64_t pixels) {
  using Packing = ConvShape::Packing;
  const Packing packing = bool(p.chunks) == bool(p.fragments) ? Packing::any
                          : p.chunks                          ? Packing::chunks
                                                              : Packing::fragments;
  return {p.channels, pixels, p.taps * p.pixel_groups, p.integers ? DType::i8 : p.x.dtype(), packing};
}

// Params of all shaders that end a convolution (glsl/include/conv/epilogue.glslh), and their first constants.
template <class Params>
void describe(Launch& launch, const Product& p, const Tile& tile) {
  const Patches& window = p.window;
  const Addition& add = p.addition;
  const auto pair = [](int64_t y, int64_t x) { return u32(y) | u32(x) << 16; };
  Params params{};
  params.channels = u32(p.channels);
  params.pixels = u32(p.pixels());
  params.plane = u32(p.out.dim(2) * p.out.dim(3));
  params.out_h = u32(p.out.dim(2));
  params.out_w = u32(p.out.dim(3));
  params.in_channels = u32(p.columns);
  params.row_blocks = u32(ceil_div(p.channels, tile.bm));
  params.column_blocks = u32(ceil_div(p.pixels(), tile.bn));
  params.in_h = u32(p.x.dim(2));
  params.in_w = u32(p.in_width());
  params.stride = pair(window.stride[0], window.stride[1]);
  params.dilation = pair(window.dilation[0], window.dilation[1]);
  params.pads = pair(window.pads[0], window.pads[1]);
  if (p.integers) params.border = 0x01010101u * static_cast<uint8_t>(p.signed_zero());
  params.x_zero = static_cast<int32_t>(p.signed_zero());
  params.x_scale = static_cast<float>(p.x_scale);
  put(params, p.requantize);
  params.sum_scale = static_cast<float>(add.scale);
  params.sum_zero = static_cast<int32_t>(add.zero);
  params.other_scale = static_cast<float>(add.other_scale);
  params.other_zero = static_cast<int32_t>(add.other_zero);
  params.total_inverse = add.requantize.inverse();
  params.total_zero = static_cast<float>(add.requantize.zero);
  params.total_low = static_cast<float>(add.requantize.low);
  params.total_high = static_cast<float>(add.requantize.high);
  launch.params(params);
  launch.spec.insert(launch.spec.end(), {bool(p.bias), params.plane % 4 == 0, static_cast<uint32_t>(p.act),
                                         bool(add.other), static_cast<uint32_t>(add.act)});
}

void multiply_by_dots(Launch& launch, const Product& p, const ConvPick& pick) {
  using namespace glsl::conv2d_dot;
  const Tile& t = pick.kernel->tile;
  describe<Params>(launch, p, t);
  launch.shader = &variant(dtype(p.out.dtype()));
  launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn, u32(p.pixel_groups), u32(p.window.kernel[1]),
                                         u32(p.taps * p.pixel_groups), pick.splits, is_padded(p), last_adds(pick)});
}

void multiply_by_fragments(Launch& launch, const Product& p, const ConvKernel& kernel, bool channels_last_out) {
  const ConvShape shape = shape_of(p, p.pixels());
  const Tile& t = kernel.tile;
  constexpr uint32_t kLeastNchwLanes = 128;  // which all store, though some may multiply nothing
  const uint32_t lanes =
      std::max(fragment_lanes(kernel, shape, launch.features), channels_last_out ? 0 : kLeastNchwLanes);
  launch.over_groups(static_cast<uint64_t>(ceil_div(p.channels, t.bm) * ceil_div(p.pixels(), t.bn)), lanes);
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  launch.writes_once = channels_last_out;
  launch.arithmetic = p.units ? Arithmetic::split3 : p.integers ? Arithmetic::i8 : Arithmetic::f16;
  if (p.integers) {
    using namespace glsl::conv2d_fragments_int8;
    describe<Params>(launch, p, t);
    launch.shader = &variant(dtype(p.out.dtype()), channels_last_out ? OUT::channels_last : OUT::nchw);
  } else {
    using namespace glsl::conv2d_fragments;
    describe<Params>(launch, p, t);
    launch.shader = &variant(p.units ? DTYPE::f32 : DTYPE::f16, channels_last_out ? OUT::channels_last : OUT::nchw);
  }
  launch.spec.insert(launch.spec.end(), {t.bm / kPanelRows, t.bn / 8, u32(p.pixel_groups), u32(p.window.kernel[1]),
                                         u32(p.taps * p.pixel_groups), is_padded(p), p.is_pointwise()});
  require_subgroups(launch);
}

void multiply(Launch& launch, const Product& p, const ConvPick& pick, bool channels_last_out) {
  const ConvKernel& kernel = *pick.kernel;
  const Features& features = launch.features;
  const Tile& t = kernel.tile;
  const int64_t tiles = ceil_div(p.channels, t.bm) * ceil_div(p.pixels(), t.bn);
  if (pick.splits > 1 && last_adds(pick) && tiles > most_split_tiles(features))
    fail(Code::Internal, Stage::plan, "", "%" PRId64 " tiles of a convolution in splits have no tickets", tiles);
  launch.over_groups(static_cast<uint64_t>(tiles * pick.splits), conv_lanes(kernel, features));
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  launch.writes_once = channels_last_out;
  launch.arithmetic = p.integers ? Arithmetic::i8 : Arithmetic::f16;
  if (kernel.family == ConvFamily::dot) return multiply_by_dots(launch, p, pick);
  if (p.integers) {
    using namespace glsl::conv2d_matrix_int8;
    describe<Params>(launch, p, t);
    launch.shader = &variant(dtype(p.out.dtype()), channels_last_out ? OUT::channels_last : OUT::nchw);
  } else {
    using namespace glsl::conv2d_matrix;
    describe<Params>(launch, p, t);
    launch.shader =
        &variant(p.reads_nchw() ? X::nchw : X::channels_last, channels_last_out ? OUT::channels_last : OUT::nchw);
  }
  const MatrixShape& shape = conv_matrix(kernel, features);
  launch.spec.insert(
      launch.spec.end(),
      {t.bm, t.bn, t.tm, t.tn, shape.m, shape.n, shape.k, conv_shared_bytes(kernel, features) / 16, u32(p.pixel_groups),
       u32(p.window.kernel[1]), u32(p.taps * p.pixel_groups), pick.splits, is_padded(p), last_adds(pick)});
  if (p.reads_nchw()) launch.spec.push_back(bool(p.factors));
  require_subgroups(launch);
}

void add_splits(Launch& launch, const Product& p, uint32_t splits, bool channels_last_out) {
  const bool vec4 = channels_last_out || p.out.dim(2) * p.out.dim(3) % 4 == 0;
  launch.over(u32(p.channels * p.pixels() / (vec4 ? 4 : 1)));
  if (p.integers) {
    using namespace glsl::conv2d_split_k_int8;
    describe<Params>(launch, p, {1, 1, 1, 1});
    launch.shader = &variant(dtype(p.out.dtype()), channels_last_out ? OUT::channels_last : OUT::nchw);
  } else {
    using namespace glsl::conv2d_split_k;
    describe<Params>(launch, p, {1, 1, 1, 1});
    launch.shader = &variant(channels_last_out ? OUT::channels_last : OUT::nchw);
  }
  launch.spec.push_back(splits);
}

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
  graph.dispatch({into}, with_end(p, {p.x_channels_last, p.fragments}, channels_last_out), [=](Launch& launch) {
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

void convolution_by_matrices(Graph& graph, const Convolution& convolution) {
  auto p = Product(convolution);
  const ScaledImage scaled = scaled_image(graph, p.x);
  const Tensor image = scaled.image ? scaled.image : p.x;
  p.may_read_nchw = takes_nchw(p) && !has_channels_last(graph, image);
  if (waits_for_chain(graph, p)) {
    p.waits = true;
  } else if (p.may_read_nchw) {
    p.x = image;
    p.factors = scaled.factors;
    p.x_channels_last = odd_as_channels_last(graph, image, p.factors);
  } else if (p.row_taps > 1) {
    p.x_channels_last = row_taps_as_channels_last(graph, p, p.signed_zero());
  } else if (scaled.image && p.x.dtype() == DType::f32 && !has_channels_last(graph, image)) {
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
