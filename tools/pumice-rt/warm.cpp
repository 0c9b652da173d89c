// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/pumice-rt/tool.h"

namespace tool {

int warm(const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); };
  const auto begin = Clock::now();
  const pumice::Model model = pumice::Model::load_file(arguments.model, arguments.options);
  pumice::Session session(model);
  const Interruptible interruptible(session);
  const auto loaded = Clock::now();
  const std::vector<Array> inputs = random_inputs(model, arguments);
  const auto ready = Clock::now();
  session.prepare(views(inputs));
  const double load_ms = ms(loaded - begin), warm_ms = ms(Clock::now() - ready);
  const std::string shape = shape_text(model, inputs);
  if (arguments.json) {
    const nlohmann::json row = {
        {"schema", 1}, {"model", arguments.model}, {"shape", shape}, {"load_ms", load_ms}, {"warm_ms", warm_ms}};
    std::printf("%s\n", row.dump().c_str());
  } else {
    std::printf("%s at %s: loaded in %.1f ms, prepared in %.1f ms\n", arguments.model.c_str(), shape.c_str(), load_ms,
                warm_ms);
  }
  return 0;
}

}  // namespace tool
