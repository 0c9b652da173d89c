// SPDX-License-Identifier: Apache-2.0
#include "ops/common/conv_matrix.h"

#include <algorithm>
#include <cinttypes>
#include <string>

#include "glsl/conv2d_cells.h"
#include "glsl/conv2d_dot.h"
#include "glsl/conv2d_matrix.h"
#include "glsl/conv2d_matrix_int8.h"
#include "glsl/conv2d_pack.h"
#include "glsl/conv2d_row_sums.h"
#include "glsl/conv2d_sum.h"
#include "glsl/conv2d_sum_int8.h"
#include "ops/common/conv_kernel.h"
#include "ops/common/divide.h"
#include "ops/common/qparams.h"
#include "ops/common/shape.h"

namespace pumice {
namespace {

constexpr int64_t kCellBytes = 16, kChunkCells = 4;

// What a convolution reads for one of these kernels, and how it lies.
struct Product : Convolution {
  bool integers;
  int64_t channels, in_channels, taps, cells;  // of the output, of x; cells of a pixel
  Tensor packed = {}, sums = {};               // the weight, and the sums of its rows
  Tensor partial = {};                         // sums of splits

  explicit Product(const Convolution& c) : Convolution(c), integers(!is_float(x.dtype())), channels(weight.dim(0)) {
    taps = patches.kernel[0] * patches.kernel[1];
    in_channels = weight.dim(1) / taps;
    cells = ceil_div(in_channels * device_bytes(x.dtype()), kCellBytes);
  }

  int64_t width(size_t axis) const {
    return x.dim(2 + static_cast<int64_t>(axis)) + patches.pads[axis] + patches.pads[axis + 2];
  }
  int64_t cells_of_x() const { return x.dim(0) * width(0) * width(1) * cells; }
  int64_t pixels() const { return out.dim(0) * out.dim(2) * out.dim(3); }
  ConvShape shape() const { return {channels, pixels(), taps * cells, integers}; }
  // x may be read as it lies: a row of the matrix of patches is a channel; and is, in quads of pixels.
  bool is_plain() const { return !integers && is_pointwise(); }
  bool planes() const { return is_plain() && x.dim(2) * x.dim(3) % 4 == 0; }
  // What bytes of x are, signed.
  int64_t signed_zero() const { return x_zero - (x.dtype() == DType::u8 ? 128 : 0); }
};

Tensor pack(Graph& graph, const Product& p) {
  const int64_t chunks = ceil_div(p.taps * p.cells, kChunkCells), count = chunks * p.channels * kChunkCells;
  const std::string what = "conv2d_pack " + std::to_string(p.taps);
  return graph.prepack(what, {p.weight}, DType::i32, {count * 4}, [=](Launch& launch) {
    using namespace glsl::conv2d_pack;
    launch.over(u32(count));
    launch.params(Params{u32(p.channels), u32(p.in_channels), u32(p.taps), u32(p.cells), u32(count)});
    launch.shader = &variant(p.integers ? WEIGHT::i8 : WEIGHT::f16);
  });
}

Tensor row_sums(Graph& graph, const Product& p) {
  return graph.prepack("conv2d_row_sums", {p.weight}, DType::i32, {p.channels}, [=](Launch& launch) {
    launch.over(u32(p.channels));
    launch.params(glsl::conv2d_row_sums::Params{u32(p.channels), u32(p.weight.dim(1))});
    launch.shader = &glsl::conv2d_row_sums::variant();
  });
}

void lay_out(Launch& launch, const Product& p) {
  using namespace glsl::conv2d_cells;
  const int64_t plane = p.x.dim(2) * p.x.dim(3), at_once = plane % 4 == 0 ? 4 : 1;
  const int64_t made = p.x.dim(0) * p.cells * plane / at_once;
  const auto& pads = p.patches.pads;
  Params params{.batch = u32(p.x.dim(0)),
                .channels = u32(p.in_channels),
                .h = u32(p.x.dim(2)),
                .w = u32(p.x.dim(3)),
                .cells = u32(p.cells),
                .top = u32(pads[0]),
                .left = u32(pads[1]),
                .bottom = u32(pads[2]),
                .right = u32(pads[3])};
  if (p.integers) params.border = 0x01010101u * static_cast<uint8_t>(p.signed_zero());
  launch.over(u32(made + p.cells_of_x() - made * at_once));
  launch.params(params);
  const uint32_t together = p.cells % 4 == 0 ? 4 : p.cells % 2 == 0 ? 2 : 1;
  launch.spec.insert(launch.spec.end(), {at_once == 4, together});
  launch.shader = &variant(in(p.x.dtype()));
}

// Params of all shaders that end a convolution (glsl/include/conv_end.glslh), and their constants 1 to 3.
template <class Params>
void describe(Launch& launch, const Product& p, const Tile& tile) {
  const Patches& patches = p.patches;
  const int64_t row = p.width(1) * p.cells;
  Params params{};
  params.channels = u32(p.channels);
  params.pixels = u32(p.pixels());
  params.plane = u32(p.out.dim(2) * p.out.dim(3));
  params.out_h = u32(p.out.dim(2));
  params.out_w = u32(p.out.dim(3));
  params.in_channels = u32(p.in_channels);
  params.row_blocks = u32(ceil_div(p.channels, tile.bm));
  params.column_blocks = u32(ceil_div(p.pixels(), tile.bn));
  params.image_cells = u32(p.width(0) * row);
  params.step_y = u32(patches.stride[0] * row);
  params.step_x = u32(patches.stride[1] * p.cells);
  params.tap_y = u32(patches.dilation[0] * row);
  params.tap_x = u32(patches.dilation[1] * p.cells);
  params.x_zero = static_cast<int32_t>(p.signed_zero());
  params.x_scale = static_cast<float>(p.x_scale);
  put(params, p.again);
  launch.params(params);
  launch.spec.insert(launch.spec.end(), {bool(p.bias), params.plane % 4 == 0, static_cast<uint32_t>(p.act)});
}

void multiply_by_dots(Launch& launch, const Product& p, const ConvPick& made) {
  using namespace glsl::conv2d_dot;
  const Tile& t = made.kernel->tile;
  describe<Params>(launch, p, t);
  launch.shader = &variant(dtype(p.out.dtype()));
  launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn, u32(p.cells), u32(p.patches.kernel[1]),
                                         u32(p.taps * p.cells), made.splits});
}

void multiply(Launch& launch, const Product& p, const ConvPick& made) {
  const ConvKernel& kernel = *made.kernel;
  const Features& features = launch.features;
  const Tile& t = kernel.tile;
  const int64_t groups = ceil_div(p.channels, t.bm) * ceil_div(p.pixels(), t.bn) * made.splits;
  over_groups(launch, static_cast<uint64_t>(groups), conv_lanes(kernel, features));
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  if (kernel.dot) return multiply_by_dots(launch, p, made);
  if (p.integers) {
    describe<glsl::conv2d_matrix_int8::Params>(launch, p, t);
    launch.shader = &glsl::conv2d_matrix_int8::variant(glsl::conv2d_matrix_int8::dtype(p.out.dtype()));
  } else {
    using namespace glsl::conv2d_matrix;
    describe<Params>(launch, p, t);
    launch.shader = &variant(p.planes() ? X::planes : X::cells);
  }
  const MatrixShape& shape = conv_matrix(kernel, features);
  launch.spec.insert(launch.spec.end(),
                     {t.bm, t.bn, t.tm, t.tn, shape.m, shape.n, shape.k, conv_shared_bytes(kernel, features) / 16,
                      u32(p.cells), u32(p.patches.kernel[1]), u32(p.taps * p.cells), made.splits});
  require_subgroups(launch);
}

void add_splits(Launch& launch, const Product& p, uint32_t splits) {
  const bool quads = p.out.dim(2) * p.out.dim(3) % 4 == 0;
  launch.over(u32(p.channels * (quads ? p.pixels() / 4 : p.pixels())));
  if (p.integers) {
    describe<glsl::conv2d_sum_int8::Params>(launch, p, {1, 1, 1, 1});
    launch.shader = &glsl::conv2d_sum_int8::variant(glsl::conv2d_sum_int8::dtype(p.out.dtype()));
  } else {
    describe<glsl::conv2d_sum::Params>(launch, p, {1, 1, 1, 1});
    launch.shader = &glsl::conv2d_sum::variant();
  }
  launch.spec.push_back(splits);
}

// What the end of a convolution reads.
std::vector<Tensor> with_end(const Product& p, std::vector<Tensor> reads) {
  reads.push_back(p.bias ? p.bias : p.packed);
  if (p.integers) reads.insert(reads.end(), {p.scale, p.sums});
  return reads;
}

// The node that reads x as it lies, or in cells; the one that is not for the live shape does not run.
void add_product(Graph& graph, const Product& p, bool planes) {
  Tensor x = p.x;
  if (!planes) {
    x = graph.scratch(DType::i32, 1);
    graph.dispatch({x}, {p.x}, [=](Launch& launch) {
      const bool runs = p.x.numel() != 0 && !p.planes();
      x.resize({runs ? p.cells_of_x() * kCellBytes / 4 : 0});
      if (runs) lay_out(launch, p);
    });
  }
  graph.dispatch({p.out, p.partial}, with_end(p, {x, p.packed}), [=](Launch& launch) {
    p.out.resize(p.out_shape());
    const bool runs = p.out.numel() != 0;
    const ConvPick made = runs ? pick_conv(p.shape(), launch.features) : ConvPick{};
    const int64_t words = made.splits * p.channels * ceil_div(p.pixels(), 4) * 4;
    p.partial.resize({made.splits > 1 ? words : 4});
    if (runs && p.planes() == planes) multiply(launch, p, made);
  });
}

}  // namespace

bool takes_matrices(const Convolution& c, const Features& features) {
  if (!why_no_cells(c.facts()).empty()) return false;
  const Product p(c);
  const ConvShape shape{p.channels, std::max<int64_t>(1, p.x.dim(0) * p.x.dim(2) * p.x.dim(3)), p.taps * p.cells,
                        p.integers};
  const uint64_t bytes = static_cast<uint64_t>(p.cells_of_x()) * kCellBytes;
  return pick_conv(shape, features).kernel != nullptr && (p.planes() || bytes <= features.max_storage_bytes);
}

void convolution_by_matrices(Graph& graph, const Convolution& convolution) {
  auto p = Product(convolution);
  p.packed = pack(graph, p);
  if (p.integers) p.sums = row_sums(graph, p);
  p.partial = graph.scratch(DType::i32, 1);
  add_product(graph, p, false);
  if (p.is_plain()) add_product(graph, p, true);
  graph.dispatch({p.out}, with_end(p, {p.partial}), [=](Launch& launch) {
    p.out.resize(p.out_shape());
    const uint32_t splits = p.out.numel() == 0 ? 1 : pick_conv(p.shape(), launch.features).splits;
    if (splits > 1) add_splits(launch, p, splits);
  });
}

}  // namespace pumice
