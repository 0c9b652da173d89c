// SPDX-License-Identifier: Apache-2.0
#include "runtime/trial.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <queue>

#include "graph/bind.h"
#include "graph/layout.h"
#include "graph/need.h"
#include "graph/pipelines.h"
#include "ops/shared/shape.h"
#include "runtime/expected.h"
#include "runtime/model.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kReplays = 20, kLeastReplays = 4;
constexpr int64_t kPlaces = 72;  // outputs compared with fp64: a third by doubt, the others spread over all
constexpr int64_t kTerms = 100'000, kLeast = 8;  // multiplications of them, and outputs at least

using Bytes = std::vector<std::byte>;
using Outputs = std::vector<Bytes>;

class Runner {
 public:
  // Takes what it needs from the budget.
  Runner(const OneCall& call, std::unique_ptr<Graph> graph, const std::shared_ptr<Device>& device,
         const ExternalData& external, Budget& budget)
      : call_(call) {
    std::vector<std::unique_ptr<Graph>> graphs;
    graphs.push_back(std::move(graph));
    const auto allow = [&](MemoryNeed need) {
      const std::vector layouts{layout(*graphs.front())};
      add_session(*device, *call.program(), graphs, layouts, need);
      require_memory(need, budget);
      budget.max_memory -= need.total();
      return true;
    };
    // Alone: the load that tests its kernels may hold what is shared.
    const auto weights = std::make_shared<Weights>(device, *call.program(), external, graphs, allow, Deadline(), true);
    session_ = std::make_unique<Session>(device, call.program(), SessionParts{weights, std::move(graphs)});
  }
  void fill_caches(OneCall& call) {
    for (const int64_t position : call.positions()) {
      call.set_position(position);
      run(position % 2 != 0);
    }
  }
  Outputs run(bool other = false) {
    session_->run(0, call_.inputs(other));
    Outputs all;
    for (uint32_t i = 0; i < call_.outputs(); ++i) {
      Bytes& out = all.emplace_back(session_->output(i).bytes);
      session_->read(i, out.data(), out.size());
    }
    return all;
  }

 private:
  const OneCall& call_;
  std::unique_ptr<Session> session_;
};

// The features with which only portable kernels run, and those that a GPU would get.
Features without_any(Features features) {
  features.bits = 0;
  features.cpu = false;
  features.tuned = nullptr;
  return features;
}

// `most` outputs, spread over all; of integers, over those that no limit cut off, as most of the others are alike.
std::vector<int64_t> spread(int64_t most, const CallTensor& out, int64_t count) {
  std::vector<int64_t> open;
  const bool integers = !is_float(out.dtype);
  const double low = out.dtype == DType::i8 ? -128 : 0;
  for (int64_t i = 0; i < count && integers; ++i)
    if (out.at(i) > low && out.at(i) < low + 255) open.push_back(i);
  const int64_t of = std::ssize(open) < most ? count : std::ssize(open);
  most = std::min(most, count);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < most; ++i) places.push_back(most < 2 ? 0 : (of - 1) * i / (most - 1));
  if (of == std::ssize(open))
    std::ranges::transform(places, places.begin(), [&](int64_t i) { return open[static_cast<size_t>(i)]; });
  return places;
}

// `most` of `count` outputs, where both differ most.
std::vector<int64_t> doubtful(const CallTensor& a, const CallTensor& b, int64_t count, size_t most) {
  using Doubt = std::pair<double, int64_t>;
  std::priority_queue<Doubt, std::vector<Doubt>, std::greater<>> doubts;
  for (int64_t i = 0; i < count; ++i) {
    const double off = std::fabs(a.at(i) - b.at(i)), doubt = std::isnan(off) ? INFINITY : off;
    if (doubts.size() == most && doubt <= doubts.top().first) continue;
    doubts.emplace(doubt, i);
    if (doubts.size() > most) doubts.pop();
  }
  std::vector<int64_t> places;
  for (; !doubts.empty(); doubts.pop()) places.push_back(doubts.top().second);
  return places;
}

std::optional<std::string> judge(const CallTensor& got, const Expected& expected, const std::vector<int64_t>& places,
                                 size_t output) {
  std::optional<Expected::Element> first;
  int64_t telling = 0, known = 0;
  for (const int64_t place : places) {
    const auto want = expected.element(place, output);
    if (!want) continue;
    ++known;
    const double value = got.at(place);
    if (!(std::fabs(value - want->value) <= want->error))
      return format("output %lld is %.6g, not %.6g", static_cast<long long>(place), value, want->value);
    if (!first) first = want;
    telling += std::fabs(want->value - first->value) > want->error + first->error;
  }
  return telling * 4 >= known && known > 1 ? std::optional<std::string>("") : std::nullopt;
}

// Where fp64 is not known: a lie is far off.
std::string compare(const CallTensor& got, const CallTensor& other, int64_t count) {
  double most = 0, off = 0;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, std::fabs(other.at(i)));
    const double each = std::fabs(got.at(i) - other.at(i));
    off = std::isnan(each) ? INFINITY : std::max(off, each);
  }
  const bool integers = got.dtype == DType::i8 || got.dtype == DType::u8;
  return off <= (integers ? 2 : most / 32) ? ""
                                           : format("outputs are up to %.6g off those of the portable kernel", off);
}

// Of one output. `others`: of the portable kernels, or empty.
std::optional<std::string> judge_output(const OneCall& call, const Expected& expected, size_t output,
                                        const Bytes& first, const Bytes& others) {
  const DType dtype = call.out_dtype(output);
  const auto count = static_cast<int64_t>(first.size() / device_bytes(dtype));
  const CallTensor got{dtype, call.out_shape(output), first}, other{dtype, call.out_shape(output), others};
  if (!expected.is_known()) return others.empty() ? "" : compare(got, other, count);  // then by replays alone
  const int64_t most = std::clamp(kTerms / std::max<int64_t>(expected.terms(), 1), kLeast, kPlaces);
  if (others.empty()) return judge(got, expected, spread(most, got, count), output);
  std::vector<int64_t> places = doubtful(got, other, count, static_cast<size_t>(most / 3));
  const std::vector<int64_t> more = spread(most - most / 3, other, count);
  places.insert(places.end(), more.begin(), more.end());
  return judge(got, expected, places, output);
}

}  // namespace

std::vector<PipelineKey> pipelines_of(const Graph& graph, uint32_t call) {
  std::vector<PipelineKey> keys;
  for (const Node& node : graph.impl().nodes) {
    if (node.call != call) continue;
    for (const Dispatch& dispatch : node.dispatches) keys.push_back(pipeline_key(dispatch));
  }
  return keys;
}

Trial::Trial(OneCall one_call, const Features& of, const std::shared_ptr<ConstantFacts>& facts)
    : call(std::move(one_call)), features(of), graph(build_method(*call.program(), 0, features, facts)) {}

void Trial::add_portable(const std::shared_ptr<ConstantFacts>& facts) {
  compared = true;
  portable = build_method(*call.program(), 0, without_any(features), facts);
}

Trial Trial::again(const std::shared_ptr<ConstantFacts>& facts) const {
  Trial same(call, features, facts);
  if (compared) same.add_portable(facts);
  return same;
}

std::vector<PipelineKey> Trial::pipelines() const {
  std::vector<PipelineKey> keys;
  for (const Graph* each : {portable.get(), graph.get()}) {
    if (each == nullptr) continue;
    std::ranges::move(run_pipelines(*each), std::back_inserter(keys));
    std::ranges::move(pack_pipelines(*each), std::back_inserter(keys));
  }
  return keys;
}

std::optional<std::string> find_wrong(Trial& trial, const std::shared_ptr<Device>& device, const ExternalData& external,
                                      Budget budget, std::chrono::steady_clock::time_point end) {
  OneCall& call = trial.call;
  call.fill();
  const bool compiles = device->info().kind == "cpu";
  auto begin = std::chrono::steady_clock::now();
  Runner tested(call, std::move(trial.graph), device, external, budget);
  tested.fill_caches(call);
  const Outputs first = tested.run();
  if (compiles) trial.compiling += std::chrono::steady_clock::now() - begin;
  const Expected expected(call);
  Outputs others(call.outputs());
  if (trial.portable != nullptr) {
    begin = std::chrono::steady_clock::now();
    Runner portable(call, std::move(trial.portable), device, external, budget);
    portable.fill_caches(call);
    others = portable.run();
    if (compiles) trial.compiling += std::chrono::steady_clock::now() - begin;
  }
  end += trial.compiling;
  for (size_t i = 0; i < call.outputs(); ++i) {
    const std::optional<std::string> wrong = judge_output(call, expected, i, first[i], others[i]);
    if (!wrong || !wrong->empty()) return wrong;
  }
  const Outputs second = tested.run(true);
  for (uint32_t replay = 1; replay <= kReplays; ++replay) {
    if (replay > kLeastReplays && std::chrono::steady_clock::now() > end) break;
    const bool other = replay % 2 == 0;
    if (tested.run(other) != (other ? second : first)) return format("replay %u gave other bits", replay);
  }
  return "";
}

}  // namespace pumice::engine
