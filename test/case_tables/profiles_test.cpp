// SPDX-License-Identifier: Apache-2.0
// Selection on devices that are not here: for every profile of test/profiles, every operator, and its cases, a kernel
// is picked, and what it dispatches fits the device's limits.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "glsl/spirv.h"
#include "graph/bind.h"
#include "graph/infer.h"
#include "graph/limits.h"
#include "ops/conv/kernels.h"
#include "ops/linear/pick.h"
#include "test/case_tables/workgroup_memory.h"
#include "test/support/error_of.h"
#include "tools/kernel_bench/file_graph.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/profile.h"
#include "tools/kernel_bench/table.h"
#include "vulkan/runnable.h"

namespace pumice::engine::test {
namespace {

using namespace kernel_bench;

constexpr uint32_t kBuffers = 16;  // of a shader, at most: attention over caches of bytes

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PUMICE_TEST_DIR "/profiles"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

DeviceInfo profile(const std::string& name) {
  return read_profile(PUMICE_TEST_DIR "/profiles/" + name + ".json");
}

struct CaseFile {
  const BenchOp* op;
  Case c;
  Bytes bytes;
};

// One call each of every operator, in its cases; numbers choose no kernel, but for those that make data alike.
const std::vector<CaseFile>& files() {
  static const std::vector<CaseFile> all = [] {
    std::vector<CaseFile> made;
    for (const BenchOp& op : bench_ops()) {
      Options options;
      options.ops = {std::string(op.op)};
      options.full = !op.is_linear();  // whose longer list is of weights that take long to make
      for (Case& c : choose(options, Purpose::test, false))
        if (c.values == Values::random) made.push_back({&op, c, make_file(*op.make(c, 1), op.op)});
    }
    return made;
  }();
  return all;
}

// The shared memory of pipelines does not depend on the device: it is counted once.
uint64_t shared_bytes(const PipelineKey& key) {
  static SpirvBlocks blocks;
  static std::map<std::pair<const Shader*, std::vector<uint32_t>>, uint64_t> known;
  const auto [at, is_new] = known.try_emplace({key.shader, key.spec});
  if (is_new) at->second = workgroup_bytes(blocks.words(*key.shader), key.spec);
  return at->second;
}

// Why a dispatch does not fit; empty where it does.
std::string unfit(const Dispatch& dispatch, const Features& limits) {
  const PipelineKey key = pipeline_key(dispatch);
  if (std::string reason = unrunnable_reason(limits, key); !reason.empty()) return reason;
  if (const uint64_t bytes = shared_bytes(key); bytes > limits.max_shared_bytes)
    return format("takes %llu bytes of shared memory, there are %u", static_cast<unsigned long long>(bytes),
                  limits.max_shared_bytes);
  for (int axis = 0; axis < 3; ++axis)
    if (dispatch.groups[axis] > limits.max_groups[axis]) return "has too many workgroups";
  // Matrices are a subgroup's: its size must be known, and workgroups whole subgroups.
  const uint32_t size = key.subgroup_size != 0                                 ? key.subgroup_size
                        : limits.min_subgroup_size == limits.max_subgroup_size ? limits.subgroup_size
                                                                               : 0;
  if ((key.shader->features & bit(Feature::coopmat)) != 0 && (size == 0 || key.spec.at(0) % size != 0))
    return format("has matrices in workgroups of %u with subgroups of %u", key.spec.at(0), size);
  return "";
}

struct Found {
  size_t dispatches = 0;
  std::set<std::string> wrong;
};

void look(const CaseFile& file, const Features& features, const Features& limits, Found& found) try {
  if (!unsupported_reason(*file.op, "pick", file.c, features).empty()) return;  // textures larger than any of it
  const FileGraph built = graph_for(file.bytes, features, {"", file.c.m});
  check_weights(*built.graph);
  check_bindings(*built.graph);
  const auto all = [&](const std::vector<Dispatch>& dispatches) {
    for (const Dispatch& dispatch : dispatches) {
      ++found.dispatches;
      if (const std::string reason = unfit(dispatch, limits); !reason.empty())
        found.wrong.insert(title(file.c) + ": " + dispatch.shader->name + " " + reason);
    }
  };
  const Graph::Impl& impl = built.graph->impl();
  for (const Node& node : impl.nodes) all(node.dispatches);
  for (const PackedConstant& packed : impl.packed_constants)
    all(launch(*built.graph, packed.launch, packed.inputs.size() + 1));
} catch (const Error& error) {
  found.wrong.insert(title(file.c) + ": " + error.what());
}

// Shapes of real models, whose weights would take long to make: the choice alone.
void look_at_convolutions(const Features& features, Found& found) {
  for (const int64_t channels : {16, 64, 256, 2048})
    for (const int64_t pixels : {49, 784, 3136, 100352})
      for (const int64_t k_groups : {1, 18, 72, 288})
        for (const DType x : {DType::f16, DType::f32, DType::i8}) {
          const ConvPick pick = pick_conv({channels, pixels, k_groups, x}, features);
          ++found.dispatches;
          if (pick.kernel == nullptr) continue;  // conv_tiled
          if (const std::string reason = unsupported_reason(*pick.kernel, features); !reason.empty())
            found.wrong.insert(std::string(pick.kernel->name) + " " + reason);
        }
}

void look_at_products(const Features& features, Found& found) {
  const int64_t sizes[][2] = {{384, 384}, {512, 2048}, {4096, 4096}, {14336, 4096}, {4096, 14336}, {151936, 1024}};
  for (const auto& [n, k] : sizes)
    for (const int64_t m : {1, 2, 4, 7, 16, 33, 64, 128, 512, 2048})
      for (const WeightType weight : {WeightType::q4, WeightType::q8, WeightType::f16, WeightType::f32})
        for (const DType dtype : {DType::f32, DType::f16})
          for (const uint32_t group : {0u, 32u, 128u})
            for (const bool integers : {false, true}) {
              const bool quantized = weight == WeightType::q4 || weight == WeightType::q8;
              if (!quantized && (group != 0 || integers || (weight == WeightType::f16) != (dtype == DType::f16)))
                continue;
              const LinearShape shape{.m = m,
                                      .n = n,
                                      .k = k,
                                      .group = group,
                                      .weight = weight,
                                      .dtype = dtype,
                                      .scale_f16 = dtype == DType::f16,
                                      .integers = integers,
                                      .may_split = !integers,
                                      .split_weight = !integers};
              const LinearKernel& kernel = pick_linear(shape, features);
              ++found.dispatches;
              std::string reason = pumice::engine::unsupported_reason(kernel, shape, features);
              const bool dots = features.has(Feature::int_dot) && !features.cpu;
              if (integers && dots && m > 64 && kernel.family == Family::tiled) reason = "computes integers in fp32";
              if (!reason.empty())
                found.wrong.insert(format("%lldx%lldx%lld: %s %s", static_cast<long long>(m), static_cast<long long>(n),
                                          static_cast<long long>(k), std::string(kernel.name).c_str(), reason.c_str()));
            }
}

class Profiles : public testing::TestWithParam<std::string> {};

TEST_P(Profiles, EveryOperatorHasAKernelThatFits) {
  const Features features = features_of(profile(GetParam()), "");
  Found found;
  for (const CaseFile& file : files()) look(file, features, features, found);
  look_at_products(features, found);
  look_at_convolutions(features, found);
  EXPECT_GT(found.dispatches, 1000u);
  EXPECT_THAT(found.wrong, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Every, Profiles, testing::ValuesIn(profile_names()),
                         [](const auto& each) { return each.param; });

// Every limit at Vulkan's minimum and nothing optional, but for storage buffers of a shader: Vulkan promises 4.
TEST(ProfileLimits, VulkansMinimaAreEnoughButForStorageBuffers) {
  const auto wrong = [](uint32_t buffers) {
    Features limits = baseline_features();
    limits.max_storage_buffers = buffers;
    Found found;
    for (const CaseFile& file : files()) look(file, baseline_features(), limits, found);
    return found.wrong;
  };
  EXPECT_THAT(wrong(kBuffers), testing::IsEmpty());
  EXPECT_THAT(wrong(kBuffers - 1), testing::Not(testing::IsEmpty())) << "docs/devices.md says how many";
}

// Selection believes the profile; the device has less.
TEST(ProfileLimits, LessThanTheProfileSaysIsSeen) {
  const Features features = features_of(profile("navi31"), "");
  const auto wrong = [&](void (*lower)(Features&)) {
    Features limits = features;
    lower(limits);
    Found found;
    for (const CaseFile& file : files()) look(file, features, limits, found);
    return found.wrong.size();
  };
  EXPECT_EQ(wrong([](Features&) {}), 0u);
  EXPECT_GT(wrong([](Features& f) { f.max_shared_bytes = 16384; }), 0u);
  EXPECT_GT(wrong([](Features& f) { f.max_invocations = 128; }), 0u);
  EXPECT_GT(wrong([](Features& f) { f.max_storage_buffers = 4; }), 0u);
  EXPECT_GT(wrong([](Features& f) { f.max_push_bytes = 16; }), 0u);
  EXPECT_GT(wrong([](Features& f) {
              f.min_subgroup_size = 128;
              f.max_subgroup_size = 128;
            }),
            0u);
  EXPECT_GT(wrong([](Features& f) { f.bits &= ~bit(Feature::coopmat); }), 0u);
}

}  // namespace
}  // namespace pumice::engine::test
