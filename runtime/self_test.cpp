// SPDX-License-Identifier: Apache-2.0
#include "runtime/self_test.h"

#include <algorithm>

#include "base/log.h"
#include "graph/bind.h"
#include "runtime/model.h"
#include "runtime/trial.h"
#include "vulkan/kernel_verdicts.h"

namespace pumice::engine {
namespace {

using std::chrono::milliseconds;

// After so long no other test begins.
milliseconds time_of(const Device& device) {
  return device.info().kind == "cpu" ? milliseconds(150) : milliseconds(25);
}

// Calls function(node) of all nodes with a dispatch that runs.
template <class Function>
void for_dispatches(std::span<const std::unique_ptr<Graph>> graphs, const Function& function) {
  for (const auto& graph : graphs) {
    for (const Node& node : graph->impl().nodes) {
      for (const Dispatch& dispatch : node.dispatches) function(*graph, node, dispatch);
    }
  }
}

std::vector<PipelineKey> keys_of(const Graph& graph, uint32_t call) {
  std::vector<PipelineKey> keys;
  for (const Node& node : graph.impl().nodes) {
    if (node.call != call) continue;
    for (const Dispatch& dispatch : node.dispatches) keys.push_back(pipeline_key(dispatch));
  }
  return keys;
}

}  // namespace

const char* name(KernelTest::Result result) {
  constexpr const char* kNames[] = {"right", "wrong", "untested"};
  return kNames[static_cast<size_t>(result)];
}

SelfTest::SelfTest(std::shared_ptr<Device> device, const ExternalData& external, std::shared_ptr<ConstantFacts> facts,
                   const Deadline& deadline)
    : device_(std::move(device)),
      external_(external),
      facts_(std::move(facts)),
      deadline_(deadline),
      end_(std::chrono::steady_clock::now() + time_of(*device_)) {}

bool SelfTest::is_over() const {
  return std::chrono::steady_clock::now() > end_;
}

bool SelfTest::is_tested(const Shader& shader) const {
  return device_->verdicts().find(shader).has_value();
}

// The cheapest first.
std::vector<SelfTest::Candidate> SelfTest::candidates(std::span<const std::unique_ptr<Graph>> graphs) const {
  std::map<std::pair<const Graph*, uint32_t>, Candidate> all;
  for_dispatches(graphs, [&](const Graph& graph, const Node& node, const Dispatch& dispatch) {
    if (node.call == kNone || !OneCall::is_known(graph.impl().method().ops[node.call])) return;
    Candidate& found = all.try_emplace({&graph, node.call}, Candidate{&graph, node.call, {}, 0}).first->second;
    found.shaders.insert(dispatch.shader);
    found.cost += static_cast<double>(dispatch.flops);
    for (const uint32_t id : node.reads)  // weights are packed again
      found.cost += id == kNone ? 0 : 20 * static_cast<double>(graph.impl().bytes(id));
  });
  std::vector<Candidate> sorted;
  for (auto& [key, candidate] : all) sorted.push_back(std::move(candidate));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  return sorted;
}

std::optional<OneCall> SelfTest::call_of(const Candidate& candidate) const {
  const std::vector<PipelineKey> wanted = keys_of(*candidate.graph, candidate.call);
  for (const bool small : {true, false}) {
    std::optional<OneCall> call = OneCall::of(*candidate.graph, candidate.call, small, external_);
    if (!call) continue;
    const auto graph = build_method(*call->program(), 0, candidate.graph->features(), facts_);
    if (keys_of(*graph, 0) == wanted || !small) return call;
  }
  return std::nullopt;
}

void SelfTest::test(const Candidate& candidate) {
  const std::optional<OneCall> call = call_of(candidate);
  if (!call) return;
  // The call has kernels besides the one that multiplies: what is wrong is its fault where it needs most.
  auto family = KernelFamily::portable;
  for (const Shader* shader : candidate.shaders) family = std::max(family, family_of(*shader));
  const Trial trial{device_, external_, facts_, candidate.graph->features(), family == KernelFamily::portable, end_};
  const std::optional<std::string> wrong = find_wrong(*call, trial);
  if (!wrong) return;
  for (const Shader* shader : candidate.shaders) {
    if (wrong->empty() || (family_of(*shader) == family && !is_tested(*shader)))
      device_->verdicts().set(*shader, *wrong);
  }
}

uint64_t SelfTest::run(std::span<const std::unique_ptr<Graph>> graphs) {
  const Features& features = graphs.front()->features();
  if (features.untested || !features.kernel.empty()) return 0;
  std::lock_guard lock(device_->verdicts().testing());
  bool tested = false;
  for (const Candidate& candidate : candidates(graphs)) {
    if (std::ranges::all_of(candidate.shaders, [&](const Shader* each) { return is_tested(*each); })) continue;
    deadline_.require(Stage::prepack, "testing a kernel");
    if (is_over()) break;
    try {
      test(candidate);
      tested = true;
    } catch (const Error& error) {  // what the model itself cannot do here, its own load says
      if (device_->is_lost() || error.code() == Code::Timeout || error.code() == Code::Cancelled) throw;
      log(LogLevel::debug, "self test of %s: %s", (*candidate.shaders.begin())->name, error.what());
    }
  }
  if (tested) device_->verdicts().save();
  return conclude(graphs);
}

uint64_t SelfTest::conclude(std::span<const std::unique_ptr<Graph>> graphs) {
  uint64_t lying = 0;
  for_dispatches(graphs, [&](const Graph& graph, const Node&, const Dispatch& dispatch) {
    const Shader& shader = *dispatch.shader;
    const std::string kernel = shader.name;
    const std::optional<std::string> wrong = device_->verdicts().find(shader);
    const KernelFamily family = family_of(shader);
    if ((!wrong && family == KernelFamily::portable) || !known_.insert(kernel).second) return;
    using Result = KernelTest::Result;
    const Result result = !wrong ? Result::untested : wrong->empty() ? Result::right : Result::wrong;
    kernels_.push_back({result, kernel, name(family), wrong.value_or("")});
    if (result != Result::wrong) return;
    lying |= needs(family) & graph.features().bits;
    log(LogLevel::warning, "%s, %s: kernel %s is wrong: %s; %s", device_->info().name.c_str(),
        device_->info().driver_version.c_str(), kernel.c_str(), wrong->c_str(),
        needs(family) == 0 ? "no other can take its place, results may be wrong"
                           : format("kernels of the family '%s' are switched off", name(family)).c_str());
  });
  return lying;
}

}  // namespace pumice::engine
