// SPDX-License-Identifier: Apache-2.0
// Sessions: the submits of a run, and what follows where it ends before it is through.
#include <algorithm>

#include "base/log.h"
#include "graph/execute.h"
#include "vulkan/command.h"

namespace pumice::engine {

void Session::submit(const MethodState& method, Encoding& encoding, uint32_t steps) {
  const Part& part = encoding.parts[0];
  const double step_ns = encoding.runs > 0 ? static_cast<double>(part.measured_ns) : part.ns;
  Run run{.timeout_ns = timeout_ns_,
          .times = steps,
          .times_a_submit = static_cast<uint32_t>(std::clamp(
              static_cast<double>(submit_ns(device_->features())) / std::max(step_ns, 1.0), 1.0, 1.0 * steps)),
          .first = encoding.save.get(),
          .poll = [this] { poll(); }};
  try {
    device_->run(*encoding.commands, run);
  } catch (const std::exception&) {
    if (run.began) undo_stopped(method, encoding);
    throw;
  }
  ++encoding.runs;
  for (size_t p = 0; p < encoding.parts.size(); ++p)
    encoding.parts[p].measured_ns = std::min(encoding.parts[p].measured_ns, run.part_ns[p]);
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
  if (graph.status != kNone) clear_status();  // an error that nobody will hear of
  undo_states(graph.method_index, encoding.saves);
} catch (const std::exception& error) {
  log(LogLevel::debug, "after a run that was stopped: %s", error.what());
}

void Session::clear_status() {
  run_once([&](Commands& commands) { commands.fill({status_.handle(), 0, 16}, 0); });
}

}  // namespace pumice::engine
