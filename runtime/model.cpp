// SPDX-License-Identifier: Apache-2.0
#include "runtime/model.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <system_error>

#include "graph/build.h"
#include "graph/infer.h"
#include "graph/layout.h"
#include "graph/limits.h"
#include "graph/need.h"
#include "graph/pipelines.h"
#include "ops/op.h"
#include "ops/shared/decoder_layers.h"
#include "ops/shared/textures.h"
#include "runtime/file_bytes.h"
#include "serialization/read.h"

namespace pumice::engine {
namespace {

const OperatorCallbacks& builder() {
  static const OperatorCallbacks kBuilder{
      .add_nodes = [](Graph& graph, const Method& method,
                      const OpCall& call) { op_table()[call.op].build(graph, Args(graph, method, call)); },
      .op_name = [](uint32_t op) { return std::string(op_table()[op].signature.name); },
      .copy_storage = copy_storage,
      .merge = merge_decoder_layers,
  };
  return kBuilder;
}

std::vector<std::unique_ptr<Graph>> build_all(const Program& program, const Features& features,
                                              const std::shared_ptr<ConstantFacts>& facts,
                                              const Deadline& deadline = {}) {
  std::vector<std::unique_ptr<Graph>> graphs;
  for (uint32_t m = 0; m < program.methods.size(); ++m) {
    deadline.require(Stage::plan, "building a method");
    graphs.push_back(build_method(program, m, features, facts));
  }
  return graphs;
}

// Gate 4: every launch runs once, every value has its place.
std::vector<Layout> plan_all(const Program& program, std::span<const std::unique_ptr<Graph>> graphs) {
  std::vector<Layout> layouts;
  for (uint32_t m = 0; m < graphs.size(); ++m) {
    layouts.push_back(layout(*graphs[m]));
    const InputRules rules(program, m);
  }
  states(program, graphs);
  return layouts;
}

// Of a file of 5 GB, opening the device, hashing, copying and unmapping take 0.1 to 0.3 s each: they go on side by
// side.
bool is_large(std::span<const std::byte> file) {
  constexpr size_t kLarge = size_t{256} << 20;
  return file.size() >= kLarge;
}

// Pipelines of a run at the hints, made while weights are packed and kernels tested. A CPU driver would take the
// processor from these.
void begin_pipelines(Device& device, std::span<const std::unique_ptr<Graph>> graphs) {
  if (device.features().cpu) return;
  std::vector<PipelineKey> keys;
  for (const auto& graph : graphs) std::ranges::copy(pack_pipelines(*graph), std::back_inserter(keys));
  for (const auto& graph : graphs) std::ranges::copy(run_pipelines(*graph), std::back_inserter(keys));
  device.pipelines().begin(std::move(keys));
}

// Those of runs at other sizes, of which the first then need not wait for the driver. The graphs are made anew, in the
// thread that needs them: a launch changes its graph. All facts are known.
void begin_other_pipelines(Device& device, const std::shared_ptr<const Program>& program, const Features& features,
                           const std::shared_ptr<ConstantFacts>& facts) {
  const auto& methods = program->methods;
  if (features.cpu || std::ranges::all_of(methods, [](const Method& each) { return each.symbols.empty(); })) return;
  device.pipelines().begin_idle([program, features, facts](const Deadline& deadline) {
    std::vector<PipelineKey> keys;
    for (uint32_t m = 0; m < program->methods.size(); ++m) {
      if (program->methods[m].symbols.empty()) continue;
      std::ranges::move(bound_pipelines(*build_method(*program, m, features, facts), deadline),
                        std::back_inserter(keys));
    }
    return keys;
  });
}

// Does it now in another thread, where there is one to be had, else when the result is asked for.
template <class F>
auto beside(bool now, F function) -> std::future<decltype(function())> {
  try {
    if (now) return std::async(std::launch::async, function);
  } catch (const std::system_error&) {  // no thread
  }
  return std::async(std::launch::deferred, function);
}

}  // namespace

std::unique_ptr<Graph> build_method(const Program& program, uint32_t method, const Features& features,
                                    const std::shared_ptr<ConstantFacts>& facts) {
  std::unique_ptr<Graph> graph = build(program, method, features, builder(), facts);
  infer(*graph, hints(program.methods[method]));
  return graph;
}

std::shared_ptr<Model> Model::load_bytes(const OpenDevice& open_device, std::span<const std::byte> file,
                                         const ExternalData& external, const Budget& budget) {
  const Deadline deadline(budget.max_seconds != 0 ? budget.max_seconds : kMaxSeconds);
  const bool large = is_large(file);
  std::future<std::shared_ptr<Device>> opening = beside(large, open_device);
  const std::shared_ptr<Model> model(new Model);
  model->program_ = std::make_shared<Program>(read(file, op_signatures(), {}, !large));
  const Program& program = *model->program_;
  std::future<void> hashing = beside(large, [&] {
    if (large) check_hashes(program);
  });
  try {
    model->fill(opening, external, budget, deadline);
  } catch (...) {
    hashing.get();  // of damaged bytes, this is the error to tell
    throw;
  }
  hashing.get();
  model->program_->data = {};
  model->facts_->loaded();
  return model;
}

void Model::fill(std::future<std::shared_ptr<Device>>& opening, const ExternalData& external, const Budget& budget,
                 const Deadline& deadline) {
  facts_ = std::make_shared<ConstantFacts>();
  facts_->external = external;
  const Program& program = *program_;
  plan_all(program, build_all(program, baseline_features(), facts_, deadline));
  device_ = opening.get();
  budget_ = effective(budget, device_->info());
  features_ = device_->features();
  if (program.precision == Precision::fp32) features_.bits &= ~bit(Feature::split);
  SelfTest test(device_, external, facts_, budget_, deadline);
  while (const uint64_t lying = load_weights(external, test, deadline)) features_.bits &= ~lying;
  self_test_ = test.kernels();
  for (const Method& method : program.methods) bounds_.push_back(pumice::engine::bounds(method));
}

uint64_t Model::load_weights(const ExternalData& external, SelfTest& test, const Deadline& deadline) {
  const Program& program = *program_;
  const auto graphs = build_all(program, features_, facts_, deadline);
  const std::vector<Layout> layouts = plan_all(program, graphs);
  // Values of other sizes than those at the hints are checked when they come.
  for (const auto& graph : graphs) {
    check_weights(*graph);
    if (graph->impl().method().symbols.empty()) check_bindings(*graph);
  }
  check_pipelines(graphs);
  uint64_t lying = 0;
  const auto allow = [&](const MemoryNeed& weights) {
    need_ = weights;
    add_session(*device_, program, graphs, layouts, need_);
    require_memory(need_, budget_);
    test.begin(graphs);
    begin_pipelines(*device_, graphs);
    begin_other_pipelines(*device_, program_, features_, facts_);
    lying = test.run(graphs);
    return lying == 0;
  };
  weights_ = std::make_shared<Weights>(device_, program, external, graphs, allow, deadline);
  return lying;
}

std::shared_ptr<const Model> Model::load(const OpenDevice& open_device, std::span<const std::byte> file,
                                         const ExternalData& external, const Budget& budget) {
  return load_bytes(open_device, file, external, budget);
}

std::shared_ptr<const Model> Model::load_file(const OpenDevice& open_device, const std::string& path,
                                              const ExternalData& external, const Budget& budget) {
  auto file = std::make_shared<FileBytes>(path);
  const std::shared_ptr<Model> model = load_bytes(open_device, file->bytes(), external, budget);
  file->check_unchanged();
  if (is_large(file->bytes())) model->unmapping_ = beside(true, [last = std::move(file)]() mutable { last.reset(); });
  return model;
}

std::unique_ptr<Session> Model::session(const SessionOptions& options) const {
  SessionOptions all = options;
  all.budget = budget_;
  return std::make_unique<Session>(device_, program_, weights_, build_all(*program_, features_, facts_), all);
}

void validate(std::span<const std::byte> file) {
  const Program program = read(file, op_signatures());
  plan_all(program, build_all(program, baseline_features(), std::make_shared<ConstantFacts>()));
}

void validate_file(const std::string& path) {
  const FileBytes file(path);
  validate(file.bytes());
  file.check_unchanged();
}

}  // namespace pumice::engine
