// SPDX-License-Identifier: Apache-2.0
// Operators whose output is the input read in another order: permute, expand, slice, select, flip, repeat, patches.
// Each computes the strides with which the output walks over the input; one kernel copies.
#include "glsl/copy.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/divide.h"
#include "glsl/include/core/modes.glslh"
#include "graph/boxes.h"
#include "graph/deferred.h"
#include "ops/linear/patches_x.h"
#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// The output's elements in order read the input at base + sum(coordinate * stride), coordinates counting over `sizes`.
struct Reading {
  Shape shape;  // of the output
  Shape sizes;  // of the walk; as many elements as `shape`
  Shape strides;
  int64_t base = 0;
  int64_t zeros = 0;  // elements of the output in front of those
};

uint32_t path(const Walk& walk) {
  if (walk.rank == 0 || walk.size[walk.rank - 1] % 4 != 0) return COPY_ANY;
  uint32_t offsets = walk.base;
  for (uint32_t d = 0; d + 1 < walk.rank; ++d) offsets |= walk.stride[d];
  return walk.stride[walk.rank - 1] == 1 && offsets % 4 == 0 ? COPY_VEC4 : COPY_ROW;
}

void walk_over(Launch& launch, DType dtype, const Walk& walk, uint32_t zeros = 0) {
  glsl::copy::Params params{};
  params.count = 1;
  for (uint32_t d = 0; d < walk.rank; ++d) params.count *= walk.size[d];
  params.count += zeros;
  params.zeros = zeros;
  params.rank = walk.rank;
  params.base = walk.base;
  params.step = walk.rank > 0 ? walk.stride[walk.rank - 1] : 0;
  std::copy(walk.size.begin(), walk.size.end(), params.size);
  std::copy(walk.stride.begin(), walk.stride.end(), params.stride);
  launch.params(params);
  launch.writes_once = true;
  launch.shader = &glsl::copy::variant(bits<glsl::copy::BITS>(dtype));
  launch.over((params.count + 3) / 4);
  launch.spec.insert(launch.spec.end(), {path(walk), zeros > 0});
}

// The same where one of the tensors is larger than a binding.
void walk_boxes(Launch& launch, const Tensor& out, const Tensor& in, const Walk& walk) {
  const int64_t element = device_bytes(out.dtype());
  const auto signed_of = [](uint32_t stride) { return int64_t{static_cast<int32_t>(stride)}; };
  Dims sizes{};
  Touched written{.unit = static_cast<uint64_t>(element), .total = out.bytes(), .stride = {}};
  Touched read{.unit = written.unit, .total = in.bytes(), .stride = {}, .base = walk.base * element, .shifts = true};
  int64_t inner = element;
  for (uint32_t d = walk.rank; d-- > 0;) {
    sizes[d] = walk.size[d];
    written.stride[d] = inner;
    inner *= sizes[d];
    read.stride[d] = signed_of(walk.stride[d]) * element;
  }
  const std::array touched{written, read};
  for (const Box& box : boxes(sizes, touched, launch.features)) {
    launch.binding_ranges = ranges_of(touched, box, launch.features);
    Walk part = walk;
    int64_t base = walk.base - static_cast<int64_t>(launch.binding_ranges[1].begin) / element;
    for (uint32_t d = 0; d < walk.rank; ++d) {
      part.size[d] = u32(box.count[d]);
      base += box.first[d] * signed_of(walk.stride[d]);
    }
    part.base = u32(base);
    walk_over(launch, out.dtype(), part);
    launch.next_dispatch();
  }
}

// `skips`: whether nothing reads the output at a launch.
void copy(Graph& graph, Tensor out, Tensor in, std::function<Reading(const Launch&)> reading_of,
          std::function<bool(const Launch&)> skips = nullptr) {
  check(in.dtype() == out.dtype(), "copy: input is %s, output %s", name(in.dtype()), name(out.dtype()));
  graph.dispatch({out}, {in}, [=](Launch& launch) {
    const Reading reading = reading_of(launch);
    out.resize(reading.shape);
    if (out.numel() == 0 || (skips && skips(launch))) return;
    const Walk walk = collapse(reading.sizes, reading.strides, reading.base);
    if (reading.zeros == 0 && std::max(in.bytes(), out.bytes()) > launch.features.max_storage_bytes)
      return walk_boxes(launch, out, in, walk);
    launch.bytes = out.bytes() + std::min(in.bytes(), out.bytes());
    walk_over(launch, out.dtype(), walk, u32(reading.zeros));
  });
}

void permute(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  std::vector<uint32_t> order;
  for (const int64_t d : args.ints(1)) order.push_back(axis(d, x.rank(), "permute"));
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool complete = order.size() == x.rank();
  for (size_t d = 0; complete && d < sorted.size(); ++d) complete = sorted[d] == d;
  check(complete, "permute: the dims are no permutation of %u dimensions", x.rank());
  copy(graph, args.out(), x, [=](const Launch&) {
    const Shape strides = contiguous_strides(x.shape());
    Reading reading;
    for (const uint32_t d : order) {
      reading.sizes.push_back(x.dim(d));
      reading.strides.push_back(strides[d]);
    }
    reading.shape = reading.sizes;
    return reading;
  });
}

void expand(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  const std::vector<SymInt> sizes = args.sizes(1);
  check(sizes.size() >= x.rank(), "expand: %zu sizes for a tensor of rank %u", sizes.size(), x.rank());
  copy(graph, args.out(), x, [=](const Launch& launch) {
    const Shape strides = contiguous_strides(x.shape());
    Reading reading;
    const size_t added = sizes.size() - x.rank();
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t from = d < added ? 1 : x.shape()[d - added];
      int64_t to = launch.size(sizes[d]);
      if (to == -1) to = from;
      check(to >= 0 && (from == 1 || from == to), "expand: size %lld cannot become %lld", static_cast<long long>(from),
            static_cast<long long>(to));
      reading.sizes.push_back(to);
      reading.strides.push_back(from == 1 ? 0 : strides[d - added]);
    }
    reading.shape = reading.sizes;
    return reading;
  });
}

// Whether nothing is in front of the places of dimension `dim` from `begin` on: they are then the tensor's first
// elements.
bool are_first(const Graph& graph, const Tensor& x, uint32_t dim, const SymInt& begin) {
  bool first = !begin.is_expr && begin.value == 0 && x.dtype() != DType::i4;
  for (uint32_t d = 0; first && d < dim; ++d) first = is_always_one(graph, x, d);
  return first;
}

// Position of index `at` in a dimension, as in PyTorch: negative ones count from the end, others are clamped.
void slice(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  const uint32_t dim = axis(args.integer(1), x.rank(), "slice");
  const SymInt start = args.size(2), end = args.size(3);
  const int64_t step = slice_step(args.integer(4), "slice");
  if (step == 1 && are_first(graph, x, dim, start)) {
    check(x.dtype() == args.out().dtype(), "slice: input is %s, output %s", name(x.dtype()), name(args.out().dtype()));
    return graph.view_first(args.out(), x, [=, out = args.out()](const Launch& launch) {
      Shape shape = x.shape();
      shape[dim] = bounded(launch.place(end), shape[dim]);
      out.resize(shape);
    });
  }
  copy(graph, args.out(), x, [=](const Launch& launch) {
    const int64_t size = x.dim(dim), first = bounded(launch.place(start), size);
    const int64_t count = ceil_div(std::max(bounded(launch.place(end), size), first) - first, step);
    Reading reading{x.shape(), x.shape(), contiguous_strides(x.shape())};
    reading.shape[dim] = reading.sizes[dim] = count;
    reading.base = first * reading.strides[dim];
    reading.strides[dim] *= step;
    return reading;
  });
}

void select(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  const uint32_t dim = axis(args.integer(1), x.rank(), "select");
  const SymInt index = args.size(2);
  copy(graph, args.out(), x, [=](const Launch& launch) {
    const int64_t at = launch.size(index), size = x.dim(dim);
    check(at >= -size && at < size, "select: index %lld is outside of %lld", static_cast<long long>(at),
          static_cast<long long>(size));
    Reading reading{x.shape(), x.shape(), contiguous_strides(x.shape())};
    reading.base = (at < 0 ? at + size : at) * reading.strides[dim];
    reading.sizes[dim] = 1;
    reading.shape.erase(reading.shape.begin() + dim);
    return reading;
  });
}

void flip(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  std::vector<uint32_t> dims;
  for (const int64_t d : args.ints(1)) dims.push_back(axis(d, x.rank(), "flip"));
  copy(graph, args.out(), x, [=](const Launch&) {
    Reading reading{x.shape(), x.shape(), contiguous_strides(x.shape())};
    for (const uint32_t d : dims) {
      reading.base += (x.dim(d) - 1) * reading.strides[d];
      reading.strides[d] = -reading.strides[d];
    }
    return reading;
  });
}

void repeat(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  const std::vector<SymInt> repeats = args.sizes(1);
  check(repeats.size() >= x.rank(), "repeat: %zu repeats for a tensor of rank %u", repeats.size(), x.rank());
  copy(graph, args.out(), x, [=](const Launch& launch) {
    const Shape strides = contiguous_strides(x.shape());
    Reading reading;
    const size_t added = repeats.size() - x.rank();
    for (size_t d = 0; d < repeats.size(); ++d) {
      const int64_t times = launch.size(repeats[d]), size = d < added ? 1 : x.shape()[d - added];
      check(times >= 0, "repeat: %lld times", static_cast<long long>(times));
      reading.sizes.insert(reading.sizes.end(), {times, size});
      reading.strides.insert(reading.strides.end(), {0, d < added ? 0 : strides[d - added]});
      reading.shape.push_back(times * size);
    }
    return reading;
  });
}

constexpr std::string_view kFloatTypes[] = {"f32", "f16"};
constexpr Axis kFloats[] = {{"DTYPE", kFloatTypes}};

// Whole patches of an image, a row each, with the order of a convolution's weight inside. Of floats: no layer of others
// reads them.
void patches(Graph& graph, Args args) {
  constexpr int64_t kMostZeros = 65535;
  const Tensor x = args.tensor(0);
  const std::vector<int64_t> kernel = args.ints(1);
  const int64_t zeros = args.integer(2);
  const bool channels_last = args.boolean(3);
  check(x.rank() == 4, "patches: an image has rank 4, not %u", x.rank());
  check(is_float(x.dtype()), "patches: an image is of floats, not %s", name(x.dtype()));
  check(kernel.size() == 2 && kernel[0] > 0 && kernel[1] > 0, "patches: a kernel is two sizes of at least 1");
  check(zeros >= 0 && zeros <= kMostZeros, "patches: %lld rows of zeros, of 0 to %lld", static_cast<long long>(zeros),
        static_cast<long long>(kMostZeros));
  const PatchesX* const noted =
      channels_last ? nullptr : &note_patches(graph, args.out(), x, kernel[0], kernel[1], zeros);
  const auto is_read = [=](const Launch& launch) { return noted != nullptr && noted->is_read(launch); };
  const auto reading_of = [=](const Launch&) {
    const uint32_t of_y = channels_last ? 1 : 2, of_c = channels_last ? 3 : 1;
    const int64_t batch = x.dim(0), channels = x.dim(of_c);
    const int64_t ky = kernel[0], kx = kernel[1], y = x.dim(of_y) / ky, w = x.dim(of_y + 1) / kx;
    check(y > 0 && w > 0 && y * ky == x.dim(of_y) && w * kx == x.dim(of_y + 1),
          "patches: an image of %lld x %lld is no whole patches of %lld x %lld", static_cast<long long>(x.dim(of_y)),
          static_cast<long long>(x.dim(of_y + 1)), static_cast<long long>(ky), static_cast<long long>(kx));
    const Shape strides = contiguous_strides(x.shape());
    const int64_t sy = strides[of_y], sx = strides[of_y + 1], sc = strides[of_c];
    Reading reading{.shape = {batch, zeros + y * w, channels * ky * kx}};
    reading.sizes = {batch, y, w};
    reading.strides = {strides[0], ky * sy, kx * sx};
    if (channels_last) {
      reading.sizes.insert(reading.sizes.end(), {ky, kx, channels});
      reading.strides.insert(reading.strides.end(), {sy, sx, sc});
    } else {
      reading.sizes.insert(reading.sizes.end(), {channels, ky, kx});
      reading.strides.insert(reading.strides.end(), {sc, sy, sx});
    }
    reading.zeros = zeros * reading.shape[2];
    check(zeros == 0 || (batch == 1 && reading.shape[2] % 4 == 0),
          "patches: rows of zeros are of one image, and of whole vec4 groups");
    return reading;
  };
  copy(graph, args.out(), x, reading_of, is_read);
}

}  // namespace

std::span<const Op> copy_ops() {
  static constexpr Op kOps[] = {
      {{"permute", 1, "Tensor x, ints dims -> Tensor"},
       permute,
       glsl::copy::axes,
       {"x=T[3,4,5] dims=[2,0,1] -> T[5,3,4]; "
        "x=i64[2,3,4,5] dims=[0,2,-1,1] -> i64[2,4,5,3]; "
        "x=i8[3,8] dims=[1,0] -> i8[8,3]",
        "x=f16[32,128,256] dims=[0,2,1] -> f16[32,256,128]", reference::permute}},
      {{"expand", 1, "Tensor x, sizes shape -> Tensor"},
       expand,
       glsl::copy::axes,
       {"x=T[3,1] shape=[2,3,5] -> T[2,3,5]", "x=f16[32,1,256] shape=[32,128,256] -> f16[32,128,256]",
        reference::expand}},
      {{"slice", 1, "Tensor x, int dim, size start, size end, int step -> Tensor"},
       slice,
       glsl::copy::axes,
       {"x=T[3,9,5] dim=1 start=1 end=8 step=2 -> T[3,4,5]",
        "x=f16[32,256,256] dim=1 start=64 end=192 step=1 -> f16[32,128,256]", reference::slice}},
      {{"select", 1, "Tensor x, int dim, size index -> Tensor"},
       select,
       glsl::copy::axes,
       {"x=T[3,9,5] dim=1 index=-2|0 -> T[3,5]", "", reference::select}},
      {{"flip", 1, "Tensor x, ints dims -> Tensor"},
       flip,
       glsl::copy::axes,
       {"x=T[3,5] dims=[0,1]|[1]", "", reference::flip}},
      {{"repeat", 1, "Tensor x, sizes repeats -> Tensor"},
       repeat,
       glsl::copy::axes,
       {"x=T[3,5] repeats=[2,1,3] -> T[2,3,15]", "", reference::repeat}},
      {{"patches", 1, "Tensor x, ints kernel, int zeros, bool channels_last -> Tensor"},
       patches,
       kFloats,
       {"x=T[2,3,6,10] kernel=[3,5] zeros=0 channels_last=0 -> T[2,4,45]; "
        "x=T[2,6,10,3] kernel=[3,5] zeros=0 channels_last=1 -> T[2,4,45]; "
        "x=T[1,3,8,12] kernel=[4,4] zeros=2 channels_last=0 -> T[1,8,48]; "
        "x=T[1,2,6,8] kernel=[3,2] zeros=1 channels_last=0 -> T[1,9,12]; "
        "x=T[1,8,12,3] kernel=[4,4] zeros=1 channels_last=1 -> T[1,7,48]",
        "x=f16[1,3,224,224] kernel=[16,16] zeros=1 channels_last=0 -> f16[1,197,768]", reference::patches}},
  };
  return kOps;
}

}  // namespace pumice::engine
