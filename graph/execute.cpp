// SPDX-License-Identifier: Apache-2.0
#include "graph/execute.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>

#include "base/log.h"
#include "graph/infer.h"
#include "graph/limits.h"
#include "graph/need.h"
#include "graph/refuse_data.h"
#include "graph/state_values.h"
#include "vulkan/command.h"

namespace pumice::engine {
namespace {

constexpr size_t kEncodings = 8;       // kept for each method
constexpr uint32_t kMostSteps = 4096;  // of one run
constexpr uint32_t kRecordings = 4;    // of the same symbols, each in parts that fit better

// In debug builds, and where tests set the variable.
bool checks_hazards() {
#ifdef NDEBUG
  static const bool kIsSet = std::getenv("PUMICE_CHECK_HAZARDS") != nullptr;
  return kIsSet;
#else
  return true;
#endif
}

}  // namespace

Session::Session(std::shared_ptr<Device> device, std::shared_ptr<const Program> program, SessionParts parts,
                 const SessionOptions& options)
    : device_(std::move(device)),
      program_(std::move(program)),
      timeout_ns_(options.timeout_ns),
      budget_(effective(options.budget, device_->info())),
      finish_load_(options.finish_load),
      in_place_(device_->memory().unified()) {
  for (uint32_t m = 0; m < parts.graphs.size(); ++m)
    methods_.push_back({.graph = {}, .rules = InputRules(*program_, m), .symbols = {}, .encodings = {}});
  take(std::move(parts));
}

// Before the first run.
void Session::take(SessionParts parts) {
  weights_ = std::move(parts.weights);
  state_infos_ = states(*program_, parts.graphs);
  states_.clear();
  for (const StateInfo& info : state_infos_) {
    states_.push_back(info.used ? device_->memory().buffer(info.bytes, MemoryKind::device, "state") : Buffer());
  }
  undo_ = StateUndo(*device_, states_, state_infos_, parts.graphs);
  words_ = device_->memory().buffer(words_bytes(parts.graphs), MemoryKind::device, "status and counters");
  for (size_t m = 0; m < methods_.size(); ++m) methods_[m].graph = std::move(parts.graphs[m]);
  clear_words();
  reset_state();
}

void Session::finish_load() {
  if (!finish_load_) return;
  if (auto parts = finish_load_(Deadline(budget_.max_seconds, [this] { poll(); }))) take(std::move(*parts));
  finish_load_ = nullptr;
}

Session::MethodState& Session::method_at(uint32_t method) {
  if (method >= methods_.size())
    fail(Code::InvalidArgument, Stage::api, "", "method %u of %zu", method, methods_.size());
  return methods_[method];
}

void Session::run(uint32_t method, std::span<const InputView> inputs, uint32_t steps) {
  const Lock lock(*this);
  last_ = &execute(method, inputs, false, steps);
}

void Session::call(uint32_t method, std::span<const InputView> inputs, const OutputDestination& destination,
                   uint32_t steps) {
  const Lock lock(*this);
  last_ = &execute(method, inputs, false, steps);
  for (uint32_t i = 0; i < last_->ports.outputs.size(); ++i) {
    const Port& output = last_->ports.outputs[i];
    if (void* data = destination(i, {output.dtype, output.shape, host_bytes(output)})) copy_out(output, data);
  }
}

void Session::prepare(uint32_t method_index, std::span<const InputView> inputs) {
  const Lock lock(*this);
  last_ = nullptr;
  MethodState& method = method_at(method_index);
  method.rules.bind(inputs, method.symbols);
  const Running running(*this);
  finish_load();
  encoding(method, false, false, false);
}

Encoding& Session::execute(uint32_t method_index, std::span<const InputView> inputs, bool timed, uint32_t steps) {
  last_ = nullptr;
  if (steps < 1 || steps > kMostSteps)
    fail(Code::InvalidArgument, Stage::api, "steps", "%u steps in one call; 1 to %u are possible", steps, kMostSteps);
  MethodState& method = method_at(method_index);
  if (half_updated_)
    fail(Code::WrongState, Stage::api, "",
         "a run failed when it had updated a part of the state; reset() gives the state its first values");
  method.rules.bind(inputs, method.symbols);
  const Running running(*this);
  finish_load();
  bool several_steps = steps > 1 && Merging::suits(*method.graph, inputs);
  while (true) {
    Encoding& chosen = encoding(method, timed, steps > 1, several_steps);
    copy_in(chosen.ports.inputs, inputs, method.rules);
    submit(method, chosen, steps);
    if (merging_.gave_up(chosen)) {
      run_unmerged(method, chosen);
    } else if (Merging::declined(chosen)) {
      several_steps = false;
      clear_words();
    } else {
      check_status(method, chosen);
      return chosen;
    }
  }
}

// After a run whose merged dispatch gave up. States that are not set back get the same rows again.
void Session::run_unmerged(const MethodState& method, const Encoding& encoding) {
  merging_.stop(*device_);
  undo_states(method.graph->impl().method_index, encoding.saves);
  half_updated_ = false;
  clear_words();
  for (MethodState& each : methods_) each.encodings.clear();
}

Encoding& Session::encoding(MethodState& method, bool timed, bool repeated, bool several_steps) {
  ++clock_;
  std::unique_ptr<Encoding> measured;  // a recording of the same, whose parts fit badly
  for (auto& known : method.encodings) {
    if (known->timed != timed || known->repeated != repeated || known->several_steps != several_steps ||
        known->symbols != method.symbols)
      continue;
    known->used = clock_;
    if (fits(*known)) return *known;
    measured = std::move(known);
    std::swap(known, method.encodings.back());
    method.encodings.pop_back();
    break;
  }
  std::vector<double> factors;
  if (measured) factors = measured_factors(measured->parts, measured->factors, measured->steps.size());
  const uint32_t recordings = measured ? measured->recordings + 1 : 1;
  measured.reset();  // gives its memory back
  std::unique_ptr<Encoding> fresh = encode(method, timed, repeated, several_steps, std::move(factors));
  fresh->recordings = recordings;
  fresh->used = clock_;
  auto& all = method.encodings;
  if (all.size() >= kEncodings)
    all.erase(std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->used < b->used; }));
  all.push_back(std::move(fresh));
  return *all.back();
}

bool Session::fits(const Encoding& known) const {
  return known.recordings == kRecordings || device_->features().submit_us != 0 ||
         !fit_badly(known.parts, known.runs, submit_ns(device_->features()));
}

std::unique_ptr<Encoding> Session::encode(MethodState& method, bool timed, bool repeated, bool several_steps,
                                          std::vector<double> factors) {
  const Deadline deadline(budget_.max_seconds, [this] { poll(); });
  num_launches_ += infer(*method.graph, method.symbols);
  check_bindings(*method.graph);
  check_pipelines(*method.graph);
  Layout layout = pumice::engine::layout(*method.graph, repeated);
  auto fresh = std::make_unique<Encoding>();
  fresh->symbols = method.symbols;
  fresh->timed = timed;
  fresh->repeated = repeated;
  fresh->several_steps = several_steps;
  fresh->factors = std::move(factors);
  // A step may write over the memory of an input that the next step reads: it is then copied in each of them.
  const bool in_place = in_place_ && !repeated;
  fresh->ports = ports(*method.graph, layout, in_place);
  const auto keeps = [&](uint32_t state) { return undo_.saves(method.graph->impl().method_index, states_[state]); };
  auto merged = merging_.find(device_, *method.graph, several_steps, keeps);
  if (!merged.empty() && merged.front()->runs_steps) add_steps(fresh->ports);
  if (need_of(fresh->ports, layout, merged_bytes(merged)).running() > budget_.max_memory) merged = {};
  if (!in_place && !repeated && merged.empty()) bind_staged(*method.graph, layout, device_->memory(), fresh->ports);
  fresh->steps = steps(*method.graph, layout, fresh->ports, in_place, timed, merged);
  if (repeated) once(updated_inputs(method.graph->impl()), fresh->before, fresh->steps, fresh->after);
  if (fresh->factors.empty() && device_->features().submit_us == 0)
    fresh->factors.assign(fresh->steps.size(), pace_.factor());
  if (checks_hazards()) {
    const std::string hazard = find_hazard(in_order(*fresh));
    if (!hazard.empty()) fail(Code::Internal, Stage::encode, "", "%s", hazard.c_str());
  }
  make_room(fresh->ports, layout, merged_bytes(merged));
  record(device_, *method.graph, layout, buffers(in_place), deadline, *fresh);
  fresh->plan = std::move(layout.plan);
  ++num_encodings_;
  return fresh;
}

void Session::submit(const MethodState& method, Encoding& encoding, uint32_t steps) {
  const Part& part = encoding.parts[0];
  const double step_ns = encoding.runs > 0 ? static_cast<double>(part.measured_ns) : part.ns;
  const auto a_submit = static_cast<uint32_t>(
      std::clamp(static_cast<double>(submit_ns(device_->features())) / std::max(step_ns, 1.0), 1.0, 1.0 * steps));
  const uint32_t at_once = set_steps(encoding, steps, a_submit);
  Run run{.timeout_ns = timeout_ns_,
          .times = (steps + at_once - 1) / at_once,
          .times_a_submit = std::max(a_submit / at_once, 1u),
          .first = encoding.first.get(),
          .last = encoding.last.get(),
          .poll = [this] { poll(); }};
  try {
    device_->run(*encoding.commands, run);
  } catch (const std::exception&) {
    if (run.began) undo_stopped(method, encoding);
    throw;
  }
  ++encoding.runs;
  for (size_t p = 0; p < encoding.parts.size(); ++p)
    encoding.parts[p].measured_ns = std::min(encoding.parts[p].measured_ns, run.part_ns[p] / at_once);
  pace_.note(encoding.parts, encoding.factors, encoding.runs);
}

void Session::poll() const {
  if (run_ == RunState::cancelled) fail(Code::Cancelled, Stage::execute, "", "the run was cancelled");
  check_interrupt();
}

void Session::cancel() noexcept {
  RunState runs = RunState::runs;
  run_.compare_exchange_strong(runs, RunState::cancelled);
}

void Session::run_once(const std::function<void(Commands&)>& record) {
  Commands commands(device_);
  commands.begin();
  record(commands);
  commands.end();
  device_->run(commands, timeout_ns_);
}

// `saved`: the run began with saving them.
void Session::undo_states(uint32_t method, bool saved) {
  if (!undo_.is_needed(method)) return;
  half_updated_ = true;  // also should the copies fail
  if (!saved || !undo_.is_complete(method)) return;
  run_once([&](Commands& commands) { undo_.restore(method, commands); });
  half_updated_ = false;
}

// After a run that was stopped between two submits. Its error is the one to tell, so there is none here.
void Session::undo_stopped(const MethodState& method, const Encoding& encoding) noexcept try {
  const Graph::Impl& graph = method.graph->impl();
  half_updated_ = undo_.is_needed(graph.method_index);
  clear_words();  // an error that nobody will hear of, and what a part of a run has counted
  undo_states(graph.method_index, encoding.saves);
} catch (const std::exception& error) {
  log(LogLevel::debug, "after a run that was stopped: %s", error.what());
}

void Session::clear_words() {
  run_once([&](Commands& commands) { commands.fill({words_.handle(), 0, words_.bytes()}, 0); });
}

SessionBuffers Session::buffers(bool in_place) const {
  return {*weights_, buffers_.arena, buffers_.upload, buffers_.download, words_, states_, undo_, in_place};
}

void Session::check_status(const MethodState& method, const Encoding& encoding) {
  if (encoding.status == nullptr || encoding.status[0] == 0) return;
  uint32_t status[4];
  std::copy_n(encoding.status, 4, status);
  const Graph::Impl& graph = method.graph->impl();
  undo_states(graph.method_index, encoding.saves);
  clear_words();
  refuse_data(graph, status);
}

void Session::reset() {
  const Lock lock(*this);
  last_ = nullptr;
  reset_state();
}

void Session::reset_state() {
  if (!states_.empty())
    run_once([&](Commands& commands) { put_first_values(*program_, state_infos_, states_, *weights_, commands); });
  half_updated_ = false;
}

void Session::seed(uint64_t seed) {
  const Lock lock(*this);
  finish_load();  // which may make the states anew
  run_once([&](Commands& commands) { put_seed(*program_, states_, seed, commands); });
}

const Port& Session::port(uint32_t index) const {
  if (last_ == nullptr)
    fail(Code::WrongState, Stage::api, "", "there are no outputs: there was no run, or the last one failed");
  if (index >= last_->ports.outputs.size())
    fail(Code::InvalidArgument, Stage::api, "", "output %u of %zu", index, last_->ports.outputs.size());
  return last_->ports.outputs[index];
}

OutputInfo Session::output(uint32_t index) const {
  const Lock lock(*this);
  const Port& output = port(index);
  return {output.dtype, output.shape, host_bytes(output)};
}

void Session::read(uint32_t index, void* data, uint64_t bytes) const {
  const Lock lock(*this);
  const Port& output = port(index);
  if (bytes != host_bytes(output) || (data == nullptr && bytes != 0))
    fail(Code::InvalidArgument, Stage::api, format("output %u", index), "room for %" PRIu64 " bytes, it has %" PRIu64,
         bytes, host_bytes(output));
  copy_out(output, data);
}

std::vector<ProfileRow> Session::profile(uint32_t method_index, std::span<const InputView> inputs) {
  const Lock lock(*this);
  const Encoding& timed = execute(method_index, inputs, true);
  MethodState& method = methods_[method_index];
  num_launches_ += infer(*method.graph, method.symbols);  // it may be at other shapes since this was recorded
  std::vector<ProfileRow> rows = profile_rows(*method.graph, timed);
  last_ = &timed;
  return rows;
}

template <class Memory>
uint64_t Session::bytes_of(std::vector<Memory> Encoding::* kept) const {
  uint64_t bytes = 0;
  for (const MethodState& method : methods_) {
    for (const auto& encoding : method.encodings) {
      for (const Memory& memory : (*encoding).*kept) bytes += memory.bytes();
    }
  }
  return bytes;
}

// With another recording. Where something must grow, those that there are go.
MemoryNeed Session::need_of(const Ports& ports, const Layout& layout, uint64_t merged) const {
  const bool grows = buffers_.must_grow(ports, layout);
  const auto size = [](const Buffer& old, uint64_t bytes) { return std::max(old.bytes(), grown_bytes(bytes)); };
  MemoryNeed need{.weights = weights_->bytes(), .weight_textures = weights_->texture_bytes()};
  need.states = state_bytes(state_infos_);
  need.arena = size(buffers_.arena, layout.plan.total);
  need.io = words_.bytes() + undo_.bytes() + size(buffers_.upload, ports.upload_bytes) +
            size(buffers_.download, ports.download_bytes) + merged + (grows ? 0 : bytes_of(&Encoding::merged_memory));
  need.textures = value_texture_bytes(*device_, layout) + (grows ? 0 : bytes_of(&Encoding::images));
  return need;
}

// Grows what is too small. Recordings use the old buffers, so they are dropped first; old memory is freed before the
// new is allocated. Nothing is dropped where the new is beyond the budget.
void Session::make_room(const Ports& ports, const Layout& layout, uint64_t merged) {
  const bool grows = buffers_.must_grow(ports, layout);
  if (!grows && layout.images.empty() && merged == 0) return;
  const MemoryNeed need = need_of(ports, layout, merged);
  require_memory(need, budget_);
  if (!grows) return;
  for (MethodState& method : methods_) method.encodings.clear();
  last_ = nullptr;
  buffers_.grow(*device_, ports, layout, budget_.max_memory - need.running());
}

SessionMemory Session::memory() const {
  const Lock lock(*this);
  const auto size = [](const Buffer& buffer) { return buffer ? buffer.bytes() : 0; };
  SessionMemory memory{.weights = weights_->bytes(),
                       .state = 0,
                       .arena = size(buffers_.arena),
                       .textures = weights_->texture_bytes(),
                       .io = size(buffers_.upload) + size(buffers_.download) + size(words_) + undo_.bytes() +
                             bytes_of(&Encoding::merged_memory)};
  for (const Buffer& state : states_) memory.state += size(state);
  memory.textures += bytes_of(&Encoding::images);
  return memory;
}

}  // namespace pumice::engine
