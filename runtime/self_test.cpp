// SPDX-License-Identifier: Apache-2.0
#include "runtime/self_test.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/on_threads.h"
#include "graph/pipelines.h"
#include "ops/op.h"
#include "runtime/fused_calls.h"
#include "vulkan/kernel_verdicts.h"

namespace pumice::engine {
namespace {

using std::chrono::milliseconds;

// After runs of so long no other test begins.
milliseconds time_of(const Device& device) {
  return device.info().kind == "cpu" ? milliseconds(150) : milliseconds(50);
}

// A CPU driver compiles and runs in one thread whatever several threads submit: each would wait for all kernels.
size_t threads_for(const Device& device) {
  constexpr size_t kMost = 4;
  return device.info().kind == "cpu" ? 1 : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMost);
}

constexpr double kLast = 1e18;  // as the cost of a call

// Sizes that a smaller call is tried at: rows, or rows and columns of an image.
constexpr int64_t kSizes[] = {8, 16, 32, 64, 128};

double volume(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
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

KernelFamily family_of(const std::set<const Shader*>& shaders) {
  auto family = KernelFamily::portable;
  for (const Shader* shader : shaders) family = std::max(family, family_of(*shader));
  return family;
}

// Files of shaders: "conv2d_matrix".
std::set<std::string_view> files_of(const std::set<const Shader*>& shaders) {
  std::set<std::string_view> files;
  for (const Shader* shader : shaders)
    files.insert(std::string_view(shader->name).substr(0, std::string_view(shader->name).find('[')));
  return files;
}

std::set<const Shader*> shaders_of(const std::vector<PipelineKey>& pipelines) {
  std::set<const Shader*> shaders;
  for (const PipelineKey& key : pipelines) shaders.insert(key.shader);
  return shaders;
}

}  // namespace

const char* name(KernelTest::Result result) {
  constexpr const char* kNames[] = {"right", "wrong", "untested"};
  return kNames[static_cast<size_t>(result)];
}

SelfTest::SelfTest(std::shared_ptr<Device> device, const ExternalData& external, std::shared_ptr<ConstantFacts> facts)
    : device_(std::move(device)), external_(external), facts_(std::move(facts)) {}

bool SelfTest::is_tested(const Shader& shader) const {
  return device_->verdicts().find(shader).has_value();
}

// The cheapest first; attention over caches last, whose kernels take drivers longest to compile: llvmpipe, for the
// GPU's portable kernel in fp16, seconds, so that it is left out there.
std::vector<SelfTest::Candidate> SelfTest::candidates(std::span<const std::unique_ptr<Graph>> graphs) const {
  std::map<std::pair<const Graph*, uint32_t>, Candidate> all;
  for_dispatches(graphs, [&](const Graph& graph, const Node& node, const Dispatch& dispatch) {
    if (node.call == kNone) return;
    const OpCall& call = graph.impl().method().ops[node.call];
    const bool fused = std::string_view(dispatch.shader->name).starts_with("conv2d");  // a norm's node may be one
    if (!OneCall::is_known(call) && (!fused || fused_calls(graph.impl(), node.call).empty())) return;
    const bool caches = OneCall::has_caches(call);
    if (caches && graph.features().cpu) return;
    Candidate& found = all.try_emplace({&graph, node.call}, Candidate{&graph, node.call, {}, 0}).first->second;
    found.shaders.insert(dispatch.shader);
    found.cost += static_cast<double>(dispatch.flops) + (caches ? kLast : 0);
    for (const uint32_t id : node.reads)  // weights are packed again
      found.cost += id == kNone ? 0 : 20 * static_cast<double>(graph.impl().bytes(id));
  });
  std::vector<Candidate> sorted;
  for (auto& [key, candidate] : all) sorted.push_back(std::move(candidate));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  return sorted;
}

// A smaller call, where it has the pipelines that the whole one has when it is alone. Selection counts what fills the
// device: a smaller one that is as much smaller.
std::optional<Trial> SelfTest::smaller(const Candidate& candidate, const Trial& whole) const {
  const std::vector<PipelineKey> wanted = pipelines_of(*whole.graph, 0);
  const double of = volume(whole.call.out_shape());
  Shape last = whole.call.out_shape();
  for (const int64_t most : kSizes) {
    std::optional<OneCall> call = OneCall::of(*candidate.graph, {&candidate.call, 1}, most, external_);
    if (!call || call->out_shape() == std::exchange(last, call->out_shape())) continue;
    Features features = candidate.graph->features();
    features.as_if_units = std::max(1u, static_cast<uint32_t>(features.units() * volume(last) / of));
    Trial trial(std::move(*call), features, facts_);
    if (pipelines_of(*trial.graph, 0) == wanted) return trial;
  }
  return std::nullopt;
}

// With the pipelines of the model. Between others a convolution has another variant than alone, for its neighbours'
// layouts: then the variant of the call alone stands for it. A kernel that alone it does not have at all may be of
// several calls.
std::optional<Trial> SelfTest::trial_of(const Candidate& candidate) const {
  std::vector<std::vector<uint32_t>> tries = fused_calls(candidate.graph->impl(), candidate.call);
  if (OneCall::is_known(candidate.graph->impl().method().ops[candidate.call]))
    tries.insert(tries.begin(), {candidate.call});
  const auto needed = files_of(candidate.shaders);
  for (const std::vector<uint32_t>& calls : tries) {
    std::optional<OneCall> call = OneCall::of(*candidate.graph, calls, {}, external_);
    if (!call) continue;
    Trial whole(std::move(*call), candidate.graph->features(), facts_);
    const bool alone = calls.size() == 1;
    const auto files = files_of(shaders_of(alone ? pipelines_of(*whole.graph, 0) : run_pipelines(*whole.graph)));
    if (!std::ranges::includes(files, needed)) continue;
    std::optional<Trial> small = alone ? smaller(candidate, whole) : std::nullopt;
    Trial trial = small ? std::move(*small) : std::move(whole);
    if (family_of(candidate.shaders) != KernelFamily::portable) trial.add_portable(facts_);
    return trial;
  }
  return std::nullopt;
}

void SelfTest::guarded(const Candidate& candidate, const Deadline& deadline, const std::function<void()>& body) const {
  deadline.require(Stage::prepack, "testing a kernel");
  try {
    body();
  } catch (const Error& error) {
    if (device_->is_lost() || error.code() == Code::Timeout || error.code() == Code::Cancelled) throw;
    log(LogLevel::debug, "self test of %s: %s", (*candidate.shaders.begin())->name, error.what());
  }
}

// The call has kernels besides the one that multiplies: what is wrong is the fault of those that need most.
void SelfTest::note(const Candidate& candidate, const std::optional<std::string>& wrong) const {
  if (!wrong) return;
  const KernelFamily family = family_of(candidate.shaders);
  for (const Shader* shader : candidate.shaders) {
    if (wrong->empty() || (family_of(*shader) == family && !is_tested(*shader)))
      device_->verdicts().set(*shader, *wrong);
  }
}

void SelfTest::begin(std::span<const std::unique_ptr<Graph>> graphs, const Deadline& deadline) {
  trials_.clear();
  shaders_.clear();
  planning_ = {};
  const Features& features = graphs.front()->features();
  if (features.untested || !features.kernel.empty()) return;
  features_ = features.bits;
  for_dispatches(graphs, [&](const Graph&, const Node&, const Dispatch& each) { shaders_.push_back(each.shader); });
  const auto begin = Clock::now();
  Shaders covered;
  for (const Candidate& each : candidates(graphs)) {
    const auto done = [&](const Shader* shader) { return covered.contains(shader) || is_tested(*shader); };
    if (std::ranges::all_of(each.shaders, done)) continue;
    guarded(each, deadline, [&] {
      std::optional<Trial> trial = trial_of(each);
      if (!trial) return;
      covered.insert(each.shaders.begin(), each.shaders.end());
      trials_.emplace_back(each, std::move(*trial));
    });
  }
  planning_ = Clock::now() - begin;
}

void SelfTest::begin_pipelines() const {
  std::vector<PipelineKey> pipelines;
  for (const auto& [candidate, trial] : trials_) std::ranges::move(trial.pipelines(), std::back_inserter(pipelines));
  if (!pipelines.empty()) device_->pipelines().begin(std::move(pipelines));
}

// Tests one call, in a part of the memory, if there is time. Returns false where the call needs more memory.
bool SelfTest::test_one(std::pair<Candidate, Trial>& each, const Budget& part, Turns& turns) const {
  const auto is_known = [&](const Shader* shader) { return is_tested(*shader); };
  if (turns.over() || std::ranges::all_of(each.first.shaders, is_known)) return true;
  bool fits = true;
  guarded(each.first, turns.deadline, [&] {
    if (each.second.graph == nullptr) each.second = each.second.again(facts_);  // a test of it did not come to its end
    device_->pipelines().prepare(each.second.pipelines(), turns.deadline);
    const auto now = Clock::now();
    const OneCall& call = each.second.call;
    const std::string title = std::string(call.op(call.calls() - 1)) + ", [" + text(call.out_shape()) + "]";
    try {
      note(each.first, find_wrong(each.second, device_, external_, part, now + turns.left()));
    } catch (const Error& error) {
      if (error.code() != Code::LimitExceeded || part.max_memory == turns.budget.max_memory) throw;
      fits = false;
    }
    const std::chrono::duration<double, std::milli> compiling = each.second.compiling,
                                                    took = Clock::now() - now - each.second.compiling;
    log(LogLevel::debug, "self test of %s: %.1f ms, and %.1f ms until its kernels were compiled", title.c_str(),
        took.count(), compiling.count());
    turns.add(Clock::now() - now - each.second.compiling);
    turns.calls += fits;
  });
  return fits;
}

// Several calls at a time, each in its part of the memory: the host prepares one and computes its fp64 while the device
// runs another. The pipelines of the next calls are made meanwhile.
void SelfTest::test(const Budget& budget, const Deadline& deadline) {
  if (trials_.empty()) return;
  const auto begin = Clock::now();
  const size_t threads = threads_for(*device_);
  Turns turns{.threads = static_cast<int64_t>(threads),
              .most = time_of(*device_) - planning_,
              .budget = budget,
              .deadline = deadline};
  Budget part = budget;
  part.max_memory /= threads;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<size_t> larger;  // than their part of the memory
  on_threads(std::min(threads, trials_.size()), [&] {
    for (size_t i = next++; i < trials_.size(); i = next++) try {
        if (test_one(trials_[i], part, turns)) continue;
        std::lock_guard lock(mutex);
        larger.push_back(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = trials_.size();
      }
  });
  if (failure) std::rethrow_exception(failure);
  for (const size_t i : larger) test_one(trials_[i], budget, turns);
  const std::chrono::duration<double, std::milli> all = Clock::now() - begin + planning_,
                                                  of_runs = turns.each() + planning_;
  log(LogLevel::debug, "self test: %zu of %zu calls in %.1f ms, and %.1f ms waiting for pipelines", turns.calls.load(),
      trials_.size(), of_runs.count(), (all - of_runs).count());
  trials_.clear();
  device_->verdicts().save();
}

uint64_t SelfTest::run(const Budget& budget, const Deadline& deadline) {
  if (shaders_.empty()) return 0;
  std::lock_guard lock(device_->verdicts().testing());
  test(budget, deadline);
  return conclude();
}

uint64_t SelfTest::postpone() {
  const uint64_t lying = conclude();
  if (lying == 0)
    for (auto& [candidate, trial] : trials_) trial.call.keep_constants();
  return lying;
}

uint64_t SelfTest::conclude() {
  uint64_t lying = 0;
  for (const Shader* shader : shaders_) {
    const std::string kernel = shader->name;
    const std::optional<std::string> wrong = device_->verdicts().find(*shader);
    const KernelFamily family = family_of(*shader);
    if (!wrong && family == KernelFamily::portable) continue;
    using Result = KernelTest::Result;
    const Result result = !wrong ? Result::untested : wrong->empty() ? Result::right : Result::wrong;
    if (result == Result::wrong) lying |= needs(family) & features_;
    const auto [at, fresh] = known_.try_emplace(kernel, kernels_.size());
    if (fresh) kernels_.push_back({Result::untested, kernel, name(family)});
    KernelTest& known = kernels_[at->second];
    if (known.result != Result::untested || result == Result::untested) continue;
    known.result = result;
    known.wrong = *wrong;
    if (result != Result::wrong) continue;
    log(LogLevel::warning, "%s, %s: kernel %s is wrong: %s; %s", device_->info().name.c_str(),
        device_->info().driver_version.c_str(), kernel.c_str(), wrong->c_str(),
        needs(family) == 0 ? "no other can take its place, results may be wrong"
                           : format("kernels of the family '%s' are switched off", name(family)).c_str());
  }
  return lying;
}

}  // namespace pumice::engine
