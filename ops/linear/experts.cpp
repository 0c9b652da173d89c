// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/experts.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <string>

#include "base/divide.h"
#include "glsl/expert_gemv.h"
#include "glsl/expert_gemv_fragments.h"
#include "glsl/expert_rows.h"
#include "ops/linear/describe.h"
#include "ops/linear/gemv_lanes.h"
#include "ops/linear/registers.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

void check_sizes(const Experts& e) {
  const Shape &x = e.x.shape(), &chosen = e.chosen.shape();
  check(x.back() == e.weight.k, "expert_linear: x has %" PRId64 " columns, the weight %u", x.back(), e.weight.k);
  check(x[0] == chosen[0] && (x.size() == 2 || x[1] == chosen[1]),
        "expert_linear: x has other rows than the [%" PRId64 ", %" PRId64 "] experts chosen", chosen[0], chosen[1]);
}

// Row blocks of so many rows that there are, whatever was chosen.
uint32_t most_blocks(const Experts& e, uint32_t rows) {
  const uint64_t used = std::min(e.count, e.rows());
  return static_cast<uint32_t>((e.rows() + used * (rows - 1)) / rows);
}

// The fields and constants that only products of experts have.
template <class Params>
void describe_experts(Launch& launch, const Linear& l, const Experts& e, uint32_t blocks, uint32_t call) {
  const LinearKernel& kernel = l.kernel;
  const uint64_t panels = row_panels(l.block.n) / kernel.panels;
  launch.over_groups(panels * blocks,
                     gemv_lanes(kernel, int64_t{blocks} * kernel.rows, l.block.n, l.w.k, launch.features));
  auto params = describe<Params>(launch, l, blocks);
  params.experts = e.count;
  params.call = call;
  launch.params(params);
  const uint64_t read = std::min(e.count, e.rows());
  launch.bytes = read * l.block.n * row_bytes(l.w) + e.x.bytes() + uint64_t{e.rows()} * 4;
}

void launch_product(Launch& launch, const Experts& e, bool list, uint32_t call) {
  const LinearKernel& kernel = expert_kernel(e, launch.features);
  const uint32_t blocks = list ? most_blocks(e, kernel.rows) : e.rows();
  const Linear l{kernel, e.x.dtype(), e.weight, {e.rows(), e.weight.n, 0}, e.epilogue};
  if (kernel.family == Family::gemv_fragments) {
    using namespace glsl::expert_gemv_fragments;
    describe_experts<Params>(launch, l, e, blocks, call);
    launch.spec.insert(launch.spec.end(), {e.weight.n, e.weight.k, kernel.panels, kernel.rows / 8, list ? 8u : 1u, 0,
                                           e.epilogue.gated, list, e.share()});
    require_subgroups(launch);
    launch.shader = &variant(glsl::expert_gemv_fragments::dtype(e.x.dtype()), static_cast<WEIGHT>(e.weight.type),
                             e.weight.k % kTileColumns == 0 ? X::whole : X::tail8);
  } else {
    using namespace glsl::expert_gemv;
    describe_experts<Params>(launch, l, e, blocks, call);
    launch.spec.insert(launch.spec.end(), {kernel.rows, gemv_depth(kernel, false, launch.features), kernel.panels, 0,
                                           e.epilogue.gated, false, false, list, e.share()});
    launch.shader = &variant(glsl::expert_gemv::dtype(e.x.dtype()), static_cast<WEIGHT>(e.weight.type));
  }
}

// The kernel of matrices for `list`, blocks of 16 rows where they are many, or for single rows; null where there is
// none.
const LinearKernel* matrix_kernel(const Experts& e, bool many, bool list, const Features& features) {
  const bool two = e.weight.n % 32 == 0;
  const LinearKernel& kernel = linear_kernel(many ? (two ? "gemvf16x2" : "gemvf16") : two ? "gemvf8x2" : "gemvf8");
  return unsupported_reason(kernel, product_shape(e.weight, e.x.dtype(), list ? kernel.rows : 1), features).empty()
             ? &kernel
             : nullptr;
}

}  // namespace

// H200 thresholds of ops/linear/pick.cpp: 16 rows cost little more than 8 where there are matrices, two row panels a
// workgroup (which a gate needs anyway) are fast from 4 rows of x on.
const LinearKernel& expert_kernel(const Experts& e, const Features& features) {
  const bool list = e.listed(), two = e.weight.n % 32 == 0;
  if (const LinearKernel* matrices = matrix_kernel(e, list && e.rows() >= 8 * e.count, list, features))
    return *matrices;
  const std::string rows = list ? std::to_string(most_listed_rows(e.x.dtype(), features)) : "1";
  return linear_kernel("gemv" + rows + (two ? "x2" : ""));
}

// As many for all calls that share a list, whatever row panels they take. Spills and fills of 4 rows, Mali: int4 47 to
// 173, fp32 38 to 67, of one row none; Adreno 630 up to 181.
uint32_t most_listed_rows(DType dtype, const Features& features) {
  constexpr uint32_t kMost = 4, kPanels = 2;
  uint32_t rows = kMost;
  while (rows > 1 && !holds_pass(rows * kPanels, dtype, features)) rows /= 2;
  return rows;
}

std::shared_ptr<ExpertRows> expert_rows(Graph& graph, const Experts& experts) {
  // Calls share a list where they always have as many rows a block.
  const bool few = matrix_kernel(experts, false, true, graph.features()) != nullptr;
  const bool many = matrix_kernel(experts, true, true, graph.features()) != nullptr;
  const std::string key = format("experts %u %u %d %d %u", experts.chosen.id(), experts.count, few, many,
                                 most_listed_rows(experts.x.dtype(), graph.features()));
  const std::shared_ptr<ExpertRows> made = graph.shared<ExpertRows>(key);
  if (made->list) return made;
  made->list = graph.scratch(DType::i32, 1);
  const Tensor list = made->list;
  const uint32_t call = graph.call_id();
  graph.dispatch({list, graph.status()}, {experts.chosen}, [=](Launch& launch) {
    const bool wanted = experts.rows() != 0 && experts.listed();
    const uint32_t rows = wanted ? expert_kernel(experts, launch.features).rows : 1;
    const uint32_t blocks = wanted ? most_blocks(experts, rows) : 0;
    list.resize({wanted ? 4 * int64_t{blocks} + experts.rows() : 0});
    if (!wanted) return;
    launch.params(glsl::expert_rows::Params{experts.rows(), experts.count, rows, blocks, call});
    launch.over_groups(1, std::min(1024u, std::bit_floor(launch.features.max_invocations)));
    launch.shader = &glsl::expert_rows::variant();
  });
  return made;
}

void expert_product(Graph& graph, Tensor out, const Experts& experts, bool list) {
  std::vector<Tensor> reads = linear_reads(experts.x, experts.weight, experts.epilogue);
  const Tensor from = list ? expert_rows(graph, experts)->list : experts.chosen;
  if (quantized(experts.weight.type)) reads.back() = from;
  if (!quantized(experts.weight.type)) reads.push_back(from);
  const uint32_t call = graph.call_id();
  graph.dispatch({out, graph.status()}, reads, [=](Launch& launch) {
    check_sizes(experts);
    const Shape& chosen = experts.chosen.shape();
    out.resize({chosen[0], chosen[1], experts.epilogue.gated ? experts.weight.n / 2 : experts.weight.n});
    if (experts.rows() != 0 && experts.listed() == list) launch_product(launch, experts, list, call);
  });
}

}  // namespace pumice::engine
