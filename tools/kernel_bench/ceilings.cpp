// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/ceilings.h"

#include <algorithm>

#include "glsl/bench_arithmetic.h"
#include "glsl/bench_copy.h"
#include "glsl/bench_matrix.h"
#include "tools/kernel_bench/timer.h"
#include "tools/kernel_bench/values.h"
#include "vulkan/upload.h"

namespace pumice::engine::kernel_bench {
namespace {

constexpr double kSeconds = 0.1;

template <class Params>
std::span<const std::byte> bytes_of(const Params& params) {
  return std::as_bytes(std::span(&params, 1));
}

Slice whole(const Buffer& buffer) {
  return {buffer.handle(), 0, buffer.bytes()};
}

class Meter {
 public:
  Meter(std::shared_ptr<Device> device, double warm_seconds)
      : device_(std::move(device)), cpu_(device_->info().kind == "cpu"), warm_(warm_seconds) {}

  Ceiling memory(glsl::bench_copy::DOES does, const char* name) {
    // Much larger than any cache of a GPU; on a CPU driver, larger than the caches of a core.
    const uint64_t wanted = uint64_t{cpu_ ? 64u : 1024u} << 20;
    const Features& features = device_->features();
    const uint64_t bytes = std::min({wanted, features.max_storage_bytes, features.max_allocation_bytes}) / 4096 * 4096;
    if (!from_ || from_.bytes() != bytes) {
      from_ = device_->memory().buffer(bytes, MemoryKind::device, "read ceiling");
      to_ = device_->memory().buffer(bytes, MemoryKind::device, "copy ceiling");
      Commands commands(device_);
      commands.begin();
      commands.fill(whole(from_), 0x01020304u);
      commands.fill(whole(to_), 0);
      commands.end();
      device_->run(commands);
    }
    const uint32_t lanes = std::min(256u, features.max_invocations);
    Ceiling best{.name = name};
    for (const uint32_t groups : cpu_ ? std::vector<uint32_t>{64u} : std::vector<uint32_t>{1056u, 4224u, 16896u}) {
      const glsl::bench_copy::Params params{static_cast<uint32_t>(bytes / 16), groups * lanes};
      const double us =
          run(glsl::bench_copy::variant(does), {lanes}, {whole(to_), whole(from_)}, bytes_of(params), groups);
      const double moved = static_cast<double>(bytes) * (does == glsl::bench_copy::DOES::copy ? 2 : 1);
      if (moved / us > best.value)
        best = {name, moved / us * 1e6,
                format("%llu MB, %u workgroups of %u", static_cast<unsigned long long>(bytes >> 20), groups, lanes),
                ""};
    }
    return best;
  }

  Ceiling arithmetic(glsl::bench_arithmetic::DOES does, const char* name, double operations) {
    const Shader& shader = glsl::bench_arithmetic::variant(does);
    if (!device_->features().runs(shader)) return missing(name, shader);
    const uint32_t lanes = std::min(256u, device_->features().max_invocations), groups = cpu_ ? 64 : 4096;
    glsl::bench_arithmetic::Params params{cpu_ ? 64u : 1024u, 7};
    const double us = run(shader, {lanes}, {whole(small())}, bytes_of(params), groups);
    // A step does two rounds of sixteen operations.
    const double total = operations * 32 * params.steps * lanes * groups;
    return {name, total / us * 1e6, format("%u workgroups of %u", groups, lanes), ""};
  }

  Ceiling matrix(glsl::bench_matrix::DOES does, const char* name, const MatrixShapes& shapes) {
    const Shader& shader = glsl::bench_matrix::variant(does);
    if (!device_->features().runs(shader)) return missing(name, shader);
    if (shapes[0].m == 0) return {name, 0, "", "the device lists no shape of these"};
    const Features& features = device_->features();
    const uint32_t subgroup = features.subgroup_size, lanes = std::min(4 * subgroup, features.max_invocations);
    const uint32_t groups = cpu_ ? 16 : 2112;
    Ceiling best{.name = name};
    for (const MatrixShape& shape : shapes) {
      if (shape.m == 0) break;
      const glsl::bench_matrix::Params params{cpu_ ? 16u : 512u};
      const uint32_t required = features.has(Feature::subgroup_size_control) ? subgroup : 0;
      const double us = run(shader, {lanes, shape.m, shape.n, shape.k}, {whole(small()), whole(operands(does))},
                            bytes_of(params), groups, required);
      const double total = 2.0 * shape.m * shape.n * shape.k * 8 * params.steps * (lanes / subgroup) * groups;
      if (total / us * 1e6 > best.value)
        best = {name, total / us * 1e6,
                format("%ux%ux%u, %u subgroups a workgroup", shape.m, shape.n, shape.k, lanes / subgroup), ""};
    }
    return best;
  }

 private:
  static Ceiling missing(const char* name, const Shader& shader) {
    std::string names;
    for (uint32_t f = 0; f < kNumFeatures; ++f) {
      const auto feature = static_cast<Feature>(f);
      if (shader.features & bit(feature))
        names += (names.empty() ? "" : ", ") + std::string(pumice::engine::name(feature));
    }
    return {name, 0, "", "it takes " + names + ": not here, or switched off"};
  }

  double run(const Shader& shader, std::vector<uint32_t> spec, const std::vector<Slice>& bindings,
             std::span<const std::byte> push, uint32_t groups, uint32_t subgroup = 0) {
    const Pipeline& pipeline = device_->pipelines().get({&shader, std::move(spec), subgroup});
    const Timing timing = time(
        device_, [&](Commands& commands, uint32_t) { commands.dispatch(pipeline, bindings, push, {groups, 1, 1}); },
        {warm_, cpu_ ? 0.02 : kSeconds});
    warm_ = 0.02;
    // Not the median: a ceiling is what the device can do when no other work disturbs it.
    return (cpu_ ? timing.cpu_us : timing.us).p10;
  }

  const Buffer& small() {
    if (!small_) small_ = device_->memory().buffer(1 << 16, MemoryKind::device, "results of a ceiling");
    return small_;
  }

  // Random numbers that stay finite when summed.
  const Buffer& operands(glsl::bench_matrix::DOES does) {
    std::vector<uint32_t> words(1 << 12);
    Random random(1, "operands");
    for (uint32_t& word : words) {
      const auto any = static_cast<uint32_t>(random.next());
      const uint32_t halves = uint32_t{half_bits(random.uniform(-1, 1))} | uint32_t{half_bits(random.uniform(-1, 1))}
                                                                               << 16;
      word = does == glsl::bench_matrix::DOES::f16 ? halves : any;
    }
    operands_ = device_->memory().buffer(words.size() * 4, MemoryKind::device, "operands of a ceiling");
    Uploader uploader(device_, 1 << 16, 1);
    uploader.put(std::as_bytes(std::span(words)), whole(operands_));
    uploader.flush();
    return operands_;
  }

  std::shared_ptr<Device> device_;
  const bool cpu_;
  double warm_;
  Buffer from_, to_, small_, operands_;
};

}  // namespace

void Ceilings::measure(const std::shared_ptr<Device>& device, double warm_seconds,
                       const std::function<void(const Ceiling&)>& report) {
  using Copy = glsl::bench_copy::DOES;
  using Does = glsl::bench_arithmetic::DOES;
  using Matrix = glsl::bench_matrix::DOES;
  Meter meter(device, warm_seconds);
  const auto add = [&](Ceiling ceiling) {
    report(ceiling);
    all_.push_back(std::move(ceiling));
  };
  add(meter.arithmetic(Does::f32, "f32", 2));
  add(meter.arithmetic(Does::f16, "f16", 4));
  add(meter.arithmetic(Does::dot, "dot", 8));
  add(meter.matrix(Matrix::f16, "f16 matrix", device->features().matrix_f16));
  add(meter.matrix(Matrix::s8, "s8 matrix", device->features().matrix_s8));
  add(meter.memory(Copy::read, "read"));
  add(meter.memory(Copy::copy, "copy"));
}

double Ceilings::value(const std::string& name) const {
  for (const Ceiling& each : all_) {
    if (each.name == name) return each.value;
  }
  return 0;
}

double Ceilings::rate(Arithmetic arithmetic) const {
  double most = value("f32");
  switch (arithmetic) {
    case Arithmetic::f32:
      break;
    case Arithmetic::split2:
      most = std::max(most, value("f16 matrix") / 2);
      break;
    case Arithmetic::split3:
      most = std::max(most, value("f16 matrix") / 3);
      break;
    case Arithmetic::i8:
      most = std::max({most, value("dot"), value("s8 matrix")});
      [[fallthrough]];
    case Arithmetic::f16:
      most = std::max({most, value("f16"), value("f16 matrix")});
      break;
  }
  return most;
}

double Ceilings::roof_us(double bytes, double flops, Arithmetic arithmetic, bool& memory) const {
  const double moving = bytes / value("read") * 1e6, computing = flops / rate(arithmetic) * 1e6;
  memory = moving >= computing;
  return std::max(moving, computing);
}

}  // namespace pumice::engine::kernel_bench
