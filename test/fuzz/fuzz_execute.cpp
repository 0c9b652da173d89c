// SPDX-License-Identifier: Apache-2.0
// Loads arbitrary bytes on the CPU driver and runs each method in a session twice, and in another: errors are typed,
// the device is not lost, no barrier is missing (PUMICE_CHECK_HAZARDS), and both sessions have the same bits.
//
//   fuzz_execute -max_len=20000 build/fuzz-corpus test/fuzz/corpus/execute
#include "base/dtype.h"
#include "base/log.h"
#include "runtime/model.h"
#include "serialization/expr.h"
#include "test/fuzz/program_mutator.h"

using namespace pumice::engine;  // NOLINT: the functions below are C

namespace {

constexpr uint64_t kMaxMemory = 64 << 20;
constexpr double kMaxSeconds = 5;
constexpr unsigned kLoadsOfADevice = 500;  // its pipelines stay until it is closed

std::shared_ptr<Device> device() {
  static std::shared_ptr<Device> open;
  static unsigned loads = 0;
  if (open == nullptr || ++loads % kLoadsOfADevice == 0) {
    open = nullptr;
    open = Device::open({"llvmpipe", "", "off"});
  }
  return open;
}

// An input at the sizes of the export, of small numbers.
struct Input {
  std::vector<int64_t> dims;
  std::vector<std::byte> data;
  DType dtype;
};

std::vector<Input> inputs_of(const Method& method) {
  std::vector<int64_t> symbols;
  for (const Symbol& symbol : method.symbols) symbols.push_back(symbol.hint);
  const std::vector<int64_t> sizes = evaluate(method, symbols);
  std::vector<Input> inputs;
  for (const uint32_t id : method.inputs) {
    const Value& value = method.values[id];
    Input input{{}, {}, value.dtype};
    for (const SymInt& dim : value.dims) {
      input.dims.push_back(dim.is_expr ? sizes[static_cast<size_t>(dim.value)] : dim.value);
    }
    const uint64_t bytes = file_bytes(value.dtype, input.dims);
    if (bytes > kMaxMemory) fail(Code::LimitExceeded, Stage::input, "inputs", "%llu bytes", (unsigned long long)bytes);
    input.data.resize(bytes);
    const uint64_t item = value.dtype == DType::i64 ? 8 : value.dtype == DType::i4 ? 1 : device_bytes(value.dtype);
    for (uint64_t i = 0; i + item <= bytes; i += item) {
      if (value.dtype == DType::f32) {
        const float number = static_cast<float>(i % 13) - 6;
        std::memcpy(&input.data[i], &number, sizeof(number));
      } else {
        input.data[i] = static_cast<std::byte>(i / item % (value.dtype == DType::boolean ? 2 : 5));
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

using Outputs = std::vector<std::vector<std::byte>>;

Outputs outputs_of(Session& session, uint32_t method, std::span<const InputView> views) {
  Outputs outputs;
  session.call(method, views,
               [&](uint32_t, const OutputInfo& output) { return outputs.emplace_back(output.bytes).data(); });
  return outputs;
}

void execute(std::span<const std::byte> file) {
  std::shared_ptr<const pumice::engine::Model> model;
  try {
    model = pumice::engine::Model::load(device, file, {}, {kMaxMemory, kMaxSeconds});
  } catch (const Error& error) {
    return test::must_be_typed(error, error.code() != Code::DeviceLost);
  }
  try {
    const auto session = model->session(), other = model->session();
    for (uint32_t m = 0; m < model->program().methods.size(); ++m) {
      const std::vector<Input> inputs = inputs_of(model->program().methods[m]);
      std::vector<InputView> views;
      for (const Input& input : inputs)
        views.push_back({input.dtype, input.dims, input.data.data(), input.data.size()});
      const Outputs first = outputs_of(*session, m, views);
      if (outputs_of(*other, m, views) != first) {
        std::fprintf(stderr, "methods[%u]: two sessions differ\n", m);
        std::abort();
      }
      outputs_of(*session, m, views);
    }
  } catch (const Error& error) {
    test::must_be_typed(error, error.code() != Code::DeviceLost && error.code() != Code::Timeout);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool kQuiet = (set_log([](LogLevel, const std::string&) {}, LogLevel::error), true);
  static const bool kOpens = (device(), true);  // or PUMICE_FEATURES is wrong, and nothing would run
  (void)kQuiet;
  (void)kOpens;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  test::Bytes file(bytes, bytes + size);
  test::reseal(file);
  execute(file);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return test::mutate_program(data, size, max_size, seed);
}
