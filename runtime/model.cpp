// SPDX-License-Identifier: Apache-2.0
#include "runtime/model.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <system_error>

#include "base/interrupt.h"
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

std::shared_ptr<Model> Model::load_bytes(const OpenDevice& open_device, std::span<const std::byte> bytes,
                                         const std::shared_ptr<FileBytes>& file, const ExternalData& external,
                                         const Budget& budget) {
  const Deadline deadline(budget.max_seconds != 0 ? budget.max_seconds : kMaxSeconds);
  const bool large = is_large(bytes);
  std::future<std::shared_ptr<Device>> opening = beside(large, open_device);
  const std::shared_ptr<Model> model(new Model);
  model->program_ = std::make_shared<Program>(read(bytes, op_signatures(), {}, !large));
  model->budget_ = budget;
  const Program& program = *model->program_;
  std::future<void> hashing = beside(large, [&] {
    if (large) check_hashes(program);
  });
  try {
    model->fill(opening, bytes, file, external, deadline);
  } catch (...) {
    hashing.get();  // of damaged bytes, this is the error to tell
    throw;
  }
  hashing.get();
  model->program_->data = {};
  model->facts_->loaded();
  return model;
}

void Model::fill(std::future<std::shared_ptr<Device>>& opening, std::span<const std::byte> bytes,
                 const std::shared_ptr<FileBytes>& file, const ExternalData& external, const Deadline& deadline) {
  facts_ = std::make_shared<ConstantFacts>();
  facts_->external = external;
  const Program& program = *program_;
  plan_all(program, build_all(program, baseline_features(), facts_, deadline));
  device_ = opening.get();
  budget_ = effective(budget_, device_->info());
  Features& features = loaded_.features = device_->features();
  if (program.precision == Precision::fp32) features.bits &= ~bit(Feature::split);
  const auto constants_at = static_cast<size_t>(program.data.data() - bytes.data());
  std::unique_ptr<Unfinished> load(new Unfinished{SelfTest(device_, external, facts_), file, constants_at});
  while (const uint64_t lying = load_weights(program, external, deadline, *load, loaded_)) features.bits &= ~lying;
  for (const Method& method : program.methods) bounds_.push_back(pumice::engine::bounds(method));
  if (!loaded_.tested) unfinished_ = std::move(load);
}

// A CPU driver compiles a kernel when it first runs, for a test as for the model: hundreds of milliseconds that the
// first run takes anyway. Not where the weights could not be loaded anew then, or there is little memory for the tests
// beside them.
bool Model::tests_later(const Unfinished& load, const MemoryNeed& need) const {
  constexpr uint64_t kShare = 4;
  const bool again = unfinished_ != nullptr;
  return !again && load.file != nullptr && device_->info().kind == "cpu" &&
         need.total() <= budget_.max_memory / kShare && std::ranges::none_of(program_->constants, &Constant::external);
}

uint64_t Model::load_weights(const Program& program, const ExternalData& external, const Deadline& deadline,
                             Unfinished& load, Loaded& loaded) const {
  const auto graphs = build_all(program, loaded.features, facts_, deadline);
  const std::vector<Layout> layouts = plan_all(program, graphs);
  // Values of other sizes than those at the hints are checked when they come.
  for (const auto& graph : graphs) {
    check_weights(*graph);
    if (graph->impl().method().symbols.empty()) check_bindings(*graph);
  }
  check_pipelines(graphs);
  uint64_t lying = 0;
  const auto allow = [&](const MemoryNeed& weights) {
    loaded.need = weights;
    add_session(*device_, program, graphs, layouts, loaded.need);
    require_memory(loaded.need, budget_);
    load.test.begin(graphs, deadline);
    loaded.tested = !load.test.has_calls() || !tests_later(load, loaded.need);
    if (loaded.tested) load.test.begin_pipelines();
    begin_pipelines(*device_, graphs);
    begin_other_pipelines(*device_, program_, loaded.features, facts_);
    lying = loaded.tested ? load.test.run(budget_, deadline) : load.test.postpone();
    loaded.self_test = load.test.kernels();
    return lying == 0;
  };
  loaded.weights = std::make_shared<Weights>(device_, program, external, graphs, allow, deadline);
  return lying;
}

Model::Loaded Model::loaded() const {
  const std::lock_guard lock(mutex_);
  return loaded_;
}

void Model::finish_load() const {
  finish_load(Deadline(budget_.max_seconds, check_interrupt));
}

void Model::finish_load(const Deadline& deadline) const {
  if (loaded().tested) return;
  const auto poll = [&] { deadline.require(Stage::prepack, "testing a kernel"); };
  const PolledMutex::Lock lock(finishing_, poll, "this model is used from inside of the tests of its kernels");
  if (unfinished_ == nullptr) return;
  SelfTest& test = unfinished_->test;
  Loaded now = loaded();
  Budget rest = budget_;
  rest.max_memory -= now.need.total();
  test.begin_pipelines();
  unfinished_->lying |= test.run(rest, deadline);
  now.self_test = test.kernels();
  if (unfinished_->lying != 0) load_again(deadline, now);
  now.tested = true;
  unfinished_.reset();
  const std::lock_guard all(mutex_);
  loaded_ = std::move(now);
}

// With other kernels, whose weights are packed in another way.
void Model::load_again(const Deadline& deadline, Loaded& loaded) const {
  if (unmapping_.valid()) unmapping_.wait();
  FileBytes& file = *unfinished_->file;
  file.read_again();
  Program program = *program_;
  program.data = file.bytes().subspan(unfinished_->constants_at);
  check_hashes(program);
  uint64_t& lying = unfinished_->lying;
  loaded.features.bits &= ~lying;
  while (const uint64_t more = load_weights(program, {}, deadline, *unfinished_, loaded)) {
    lying |= more;
    loaded.features.bits &= ~lying;
  }
  file.check_unchanged();
  facts_->loaded();
}

std::shared_ptr<const Model> Model::load(const OpenDevice& open_device, std::span<const std::byte> file,
                                         const ExternalData& external, const Budget& budget) {
  return load_bytes(open_device, file, nullptr, external, budget);
}

std::shared_ptr<const Model> Model::load_file(const OpenDevice& open_device, const std::string& path,
                                              const ExternalData& external, const Budget& budget) {
  auto file = std::make_shared<FileBytes>(path);
  const bool large = is_large(file->bytes());
  const std::shared_ptr<Model> model = load_bytes(open_device, file->bytes(), file, external, budget);
  file->check_unchanged();
  // The file itself stays open if the first run may need it.
  auto free = [last = std::move(file)]() mutable {
    last->let_go();
    last.reset();
  };
  if (large) {
    model->unmapping_ = beside(true, std::move(free));
  } else {
    free();
  }
  return model;
}

std::unique_ptr<Session> Model::session(const SessionOptions& options) const {
  Loaded now = loaded();
  SessionOptions all = options;
  all.budget = budget_;
  const auto parts = [](const Model& model, const Loaded& of) {
    return SessionParts{of.weights, build_all(*model.program_, of.features, model.facts_)};
  };
  SessionParts first = parts(*this, now);
  if (!now.tested) {
    all.finish_load = [model = shared_from_this(), parts,
                       before = now.weights](const Deadline& deadline) -> std::optional<SessionParts> {
      model->finish_load(deadline);
      const Loaded after = model->loaded();
      return after.weights == before ? std::nullopt : std::optional(parts(*model, after));
    };
  }
  return std::make_unique<Session>(device_, program_, std::move(first), all);
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
