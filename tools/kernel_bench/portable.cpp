// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/portable.h"

#include "tools/kernel_bench/call_data.h"
#include "tools/kernel_bench/check.h"
#include "tools/kernel_bench/harness.h"

namespace pumice::engine::kernel_bench {
namespace {

std::vector<std::vector<double>> run(const std::shared_ptr<Device>& device, const CallData& data) {
  const Forced pick{"", 1};
  const Loaded loaded = load(device, make_file(data, data.shape().op), std::span(&pick, 1), baseline_features());
  Harness harness(loaded, *loaded.graphs[0], {});
  const std::vector<Data> inputs = inputs_of(data);
  harness.reset(0xffffffffu, inputs);
  Commands commands(device);
  commands.begin();
  harness.dispatch(commands, 0);
  commands.end();
  harness.run(commands);
  std::vector<std::vector<double>> results;
  for (const Output& output : data.outputs()) {
    const Bytes bytes = harness.read_output(results.size());
    std::vector<double>& values = results.emplace_back();
    for (uint64_t i = 0; i < bytes.size() / device_bytes(output.dtype); ++i)
      values.push_back(element(bytes, output.dtype, i));
  }
  return results;
}

}  // namespace

std::unique_ptr<CaseData> make_data(const std::shared_ptr<Device>& device, const BenchOp& op, const Case& c,
                                    uint64_t seed) {
  std::unique_ptr<CaseData> made = op.make(c, seed);
  if (!op.is_call()) return made;
  auto& data = static_cast<CallData&>(*made);
  if (data.needs_run()) data.set_results(run(device, data.portable()));
  return made;
}

}  // namespace pumice::engine::kernel_bench
