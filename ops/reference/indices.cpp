// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/indices.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine::reference {
namespace {

// The row that the index at `position` means. One out of range is reported and gives row 0.
int64_t row_of(HostCall& call, double given, size_t position, int64_t rows, bool from_end = true) {
  const auto index = static_cast<int64_t>(given), row = from_end && index < 0 ? index + rows : index;
  if (row >= 0 && row < rows) return row;
  call.reports.push_back({static_cast<uint32_t>(position), static_cast<int32_t>(index), static_cast<int32_t>(rows)});
  return 0;
}

// A tensor as [outer][extent of `dim`][inner].
struct Slabs {
  size_t outer = 1, extent = 1, inner = 1;
  Slabs(const Shape& shape, size_t dim) {
    for (size_t d = 0; d < shape.size(); ++d) {
      size_t& part = d < dim ? outer : d == dim ? extent : inner;
      part *= static_cast<size_t>(shape[d]);
    }
  }
  size_t at(size_t o, size_t e, size_t i) const { return (o * extent + e) * inner + i; }
};

// Calls to(i, value) for every p in order and every value of values[.., p, ..], which is for element i of self.
template <class To>
void each_value(HostCall& call, const To& to) {
  const HostTensor &self = call.tensor(0), &index = call.tensor(1), &values = call.tensor(2);
  const Slabs slabs(self.shape, axis_of(call.integer(3), self.shape));
  for (size_t p = 0; p < index.values.size(); ++p) {
    const auto row = static_cast<size_t>(row_of(call, index.values[p], p, static_cast<int64_t>(slabs.extent)));
    for (size_t o = 0; o < slabs.outer; ++o) {
      for (size_t i = 0; i < slabs.inner; ++i)
        to(slabs.at(o, row, i), values.values.at((o * index.values.size() + p) * slabs.inner + i));
    }
  }
}

// self with values[.., p, ..] joined to self[.., index[p], ..], for every p in order; `join(old, new)` has an error.
template <class Join>
void scatter(HostCall& call, const Join& join) {
  std::vector<HostResult>& out = call.out().elements;
  for (const double x : call.tensor(0).values) out.push_back({x, 0});
  each_value(call, [&](size_t i, double value) { join(out[i], value); });
}

// The error of a sum of so many terms in any order: no partial sum is larger than the sizes of all terms.
double in_any_order(double terms, double sizes) {
  return 0x1p-24 * terms * sizes;
}

}  // namespace

void index_select(HostCall& call) {
  const HostTensor &x = call.tensor(0), &index = call.tensor(1);
  const Slabs slabs(x.shape, axis_of(call.integer(2), x.shape));
  std::vector<size_t> rows;
  for (size_t p = 0; p < index.values.size(); ++p)
    rows.push_back(static_cast<size_t>(row_of(call, index.values[p], p, static_cast<int64_t>(slabs.extent))));
  for (size_t o = 0; o < slabs.outer; ++o)
    for (const size_t row : rows)
      for (size_t i = 0; i < slabs.inner; ++i) call.out().push(x.values[slabs.at(o, row, i)]);
}

void gather(HostCall& call) {
  const HostTensor &x = call.tensor(0), &index = call.tensor(1);
  const size_t dim = axis_of(call.integer(2), x.shape);
  for (size_t i = 0; i < index.values.size(); ++i) {
    Shape at = coordinates(i, index.shape);
    at[dim] = row_of(call, index.values[i], i, x.shape[dim]);
    call.out().push(x.values[index_at(at, x.shape)]);
  }
}

void index_linear(HostCall& call) {
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    const int64_t row = row_of(call, broadcast_to(call.args[0], at), i, call.integer(2));
    const int64_t column = row_of(call, broadcast_to(call.args[1], at), i, call.integer(3));
    out.push(static_cast<double>(row * call.integer(3) + column));
  }
}

void index_put(HostCall& call) {
  scatter(call, [](HostResult& to, double value) { to.value = value; });
}

namespace {

void add(HostResult& to, const HostResult& by, DType dtype) {
  to.value += by.value;
  to.error += by.error;
  if (is_float(dtype)) to.error += 0x1p-24 * std::fabs(to.value);
  if (!is_float(dtype) && dtype != DType::i64) to.value = wrapped(static_cast<int64_t>(to.value), dtype);
}

// Lane p % kTogetherLanes adds the value of position p, then halves of the lanes are added.
void add_by_lanes(HostCall& call) {
  const HostTensor &self = call.tensor(0), &index = call.tensor(1), &values = call.tensor(2);
  const Slabs slabs(self.shape, axis_of(call.integer(3), self.shape));
  const size_t positions = index.values.size();
  std::vector<std::vector<size_t>> places(slabs.extent);
  for (size_t p = 0; p < positions; ++p)
    places[static_cast<size_t>(row_of(call, index.values[p], p, static_cast<int64_t>(slabs.extent)))].push_back(p);
  for (size_t e = 0; e < self.values.size(); ++e) {
    const size_t i = e % slabs.inner, row = e / slabs.inner % slabs.extent, o = e / slabs.inner / slabs.extent;
    std::array<HostResult, kTogetherLanes> lanes = {};
    for (const size_t p : places[row])
      add(lanes[p % kTogetherLanes], {values.values.at((o * positions + p) * slabs.inner + i), 0}, call.out().dtype);
    for (size_t step = kTogetherLanes / 2; step > 0; step /= 2)
      for (size_t lane = 0; lane < step; ++lane) add(lanes[lane], lanes[lane + step], call.out().dtype);
    HostResult sum{self.values[e], 0};
    add(sum, lanes[0], call.out().dtype);
    call.out().elements.push_back(sum);
  }
}

}  // namespace

void index_add(HostCall& call) {
  const DType dtype = call.out().dtype;
  if (search_together(static_cast<int64_t>(call.tensor(1).values.size())))
    add_by_lanes(call);
  else
    scatter(call, [&](HostResult& to, double value) { add(to, {value, 0}, dtype); });
  if (dtype == DType::i64) check_i64(call);
  if (!is_float(dtype)) return;
  const std::vector<double>& self = call.tensor(0).values;
  std::vector<double> terms(self.size(), 1), sizes(self.size());
  std::transform(self.begin(), self.end(), sizes.begin(), [](double x) { return std::fabs(x); });
  const size_t reports = call.reports.size();
  each_value(call, [&](size_t i, double value) {
    terms[i] += 1;
    sizes[i] += std::fabs(value);
  });
  call.reports.resize(reports);  // given twice
  for (size_t i = 0; i < self.size(); ++i) call.out().elements[i].in_any_order = in_any_order(terms[i], sizes[i]);
}

void scatter_elements(HostCall& call, int mode) {
  const HostTensor &self = call.tensor(0), &index = call.tensor(1);
  const HostArgument& src = call.args[2];
  const size_t dim = axis_of(call.integer(3), self.shape);
  const DType dtype = call.out().dtype;
  const bool include_self = mode == 0 || call.integer(4) != 0;
  std::vector<HostResult>& out = call.out().elements;
  for (const double x : self.values) out.push_back({x, 0});
  std::vector<int> terms(out.size(), include_self ? 1 : 0);
  std::vector<double> sizes(self.values.size(), 0), summands(self.values.size(), 0);
  for (size_t i = 0; i < index.values.size(); ++i) {
    Shape at = coordinates(i, index.shape);
    const double given = src.is_tensor() ? call.tensor(2).values[index_at(at, call.tensor(2).shape)] : src.number;
    const double term = is_float(dtype) ? in_f32(given) : given;
    at[dim] = row_of(call, index.values[i], i, self.shape[dim], false);
    const size_t to = index_at(at, self.shape);
    double& y = out[to].value;
    const bool first = terms[to]++ == 0;
    if (mode == 0 || first)
      y = term;
    else if (mode == 1 || mode == 3)
      y += term;
    else if (mode == 2)
      y *= term;
    else
      y = std::isnan(y) || std::isnan(term) ? NAN : mode == 4 ? std::max(y, term) : std::min(y, term);
    if (!is_float(dtype) && dtype != DType::i64) y = wrapped(static_cast<int64_t>(y), dtype);
    sizes[to] += std::fabs(y);
    summands[to] += std::fabs(term);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (mode == 3 && terms[i] > 0) out[i].value /= terms[i];
    if (!is_float(dtype) || mode == 0 || mode >= 4) continue;
    out[i].error = mode == 2 ? 0x1p-24 * terms[i] * std::fabs(out[i].value) : 0x1p-24 * sizes[i];
    if (mode == 1) out[i].in_any_order = in_any_order(terms[i], std::fabs(self.values[i]) + summands[i]);
    if (mode == 3) out[i].error += 0x1p-22 * std::fabs(out[i].value);
  }
  if (dtype == DType::i64) check_i64(call);
}

void embedding(HostCall& call) {
  const HostTensor &weight = call.tensor(0), &index = call.tensor(1);
  const auto columns = static_cast<size_t>(weight.dim(1));
  for (size_t p = 0; p < index.values.size(); ++p) {
    const auto row = static_cast<size_t>(row_of(call, index.values[p], p, weight.dim(0), false));
    for (size_t k = 0; k < columns; ++k) call.out().push(weight.values[row * columns + k]);
  }
}

void embedding_packed(HostCall& call) {
  const HostTensor &weight = call.tensor(0), &scale = call.tensor(1), &index = call.tensor(3);
  const auto columns = static_cast<size_t>(weight.dim(1));
  const size_t group = call.integer(4) == 0 ? columns : static_cast<size_t>(call.integer(4));
  const size_t groups = columns / group;
  for (size_t p = 0; p < index.values.size(); ++p) {
    const auto row = static_cast<size_t>(row_of(call, index.values[p], p, weight.dim(0), false));
    for (size_t k = 0; k < columns; ++k) {
      const size_t at = row * groups + k / group;
      const double zero = call.has(2) ? call.tensor(2).values[at] : 0;
      const double y = (weight.values[row * columns + k] - zero) * scale.values[at];
      call.out().push(y, 0x1p-24 * std::fabs(y));
    }
  }
}

}  // namespace pumice::engine::reference
