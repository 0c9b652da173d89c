// SPDX-License-Identifier: Apache-2.0
// Reckoned memory against what was allocated at most, batches of weights to be packed, and the time of a load.
#include <algorithm>
#include <ctime>
#include <set>

#include "graph/pack_plan.h"
#include "test/graph/make.h"

namespace pumice::engine::test {
namespace {

using testing::HasSubstr;
using EngineModel = pumice::engine::Model;

Maker layers(size_t count, int64_t n, int64_t k) {
  Maker maker;
  const uint32_t x = maker.value(ValueKind::input, DType::f32, {fixed(1), fixed(k)}, -1, "x");
  const std::vector<float> weight(static_cast<size_t>(n * k), 1);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t w = maker.constant(DType::f32, {fixed(n), fixed(k)}, weight);
    const uint32_t out = maker.value(ValueKind::output, DType::f32, {fixed(1), fixed(n)});
    maker.op("linear", {tensor(x), tensor(w), {}, integer(0), {}}, {out});
  }
  return maker;
}

// A device that no other test has.
std::shared_ptr<Device> fresh_device() {
  static int count = 0;
  const std::string features(static_cast<size_t>(++count), ',');
  return Device::open({.device = std::string(open_device()->info().name), .features = features, .cache_dir = "off"});
}

TEST(Budget, TheMostBytesAtOnceAreThoseReckoned) {
  for (const auto& [count, n, k] :
       {std::tuple<size_t, int64_t, int64_t>{1, 2048, 1024}, {3, 4096, 2048}, {300, 32, 32}, {2, 300'000, 1}}) {
    const auto device = fresh_device();
    const uint64_t before = device->memory().use().device_bytes;
    const Bytes file = layers(count, n, k).file();
    const auto model = EngineModel::load([&] { return device; }, file);
    EXPECT_EQ(device->memory().use().most_device_bytes - before, model->need().loading);
    const auto session = model->session();
    session->run(0, std::vector{view(DType::f32, std::vector<float>(static_cast<size_t>(k), 1), {1, k})});
    EXPECT_EQ(device->memory().use().most_device_bytes - before, model->need().total());
  }
}

TEST(Budget, StatesThatAreSetBackAfterAnErrorAreReckoned) {
  for (const int64_t size : {5, 1 << 20}) {
    const auto device = fresh_device();
    const uint64_t before = device->memory().use().device_bytes;
    const Bytes file = failing_counter(size).file();
    const auto model = EngineModel::load([&] { return device; }, file);
    const auto session = model->session();
    const std::vector<int64_t> x(static_cast<size_t>(size), 1), ids{0};
    session->run(0, std::vector{view(DType::i64, x, {size}), view(DType::i64, ids, {1})});
    EXPECT_EQ(device->memory().use().most_device_bytes - before, model->need().total());
  }
}

TEST(Budget, WhatIsRefusedAllocatesNothing) {
  const auto device = fresh_device();
  const MemoryUse before = device->memory().use();
  const Bytes file = layers(3, 1024, 1024).file();
  const auto load = [&](const Budget& budget) { EngineModel::load([&] { return device; }, file, {}, budget); };
  const Error error = error_of([&] { load({.max_memory = 1 << 20}); });
  EXPECT_EQ(error.code(), Code::LimitExceeded);
  EXPECT_EQ(error.path(), "max_memory");
  EXPECT_THAT(error.what(), HasSubstr("the limit is 1048576"));
  EXPECT_EQ(device->memory().use().most_device_bytes, before.most_device_bytes);
  load({});
}

TEST(Budget, TheTimeEndsALoadAnywhereAndNothingStays) {
  const auto device = fresh_device();
  const uint64_t before = device->memory().use().device_bytes;
  const Bytes file = layers(4000, 16, 16).file();
  size_t stopped = 0;
  for (double limit = 1e-6; limit < 1e4; limit *= 1.7) {
    try {
      EngineModel::load([&] { return device; }, file, {}, {.max_seconds = limit});
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::Timeout);
      ++stopped;
    }
    EXPECT_EQ(device->memory().use().device_bytes, before);
    EXPECT_FALSE(device->is_lost());
  }
  EXPECT_GT(stopped, 5u);
}

TEST(Budget, TheDefaultIsTheDevicesOrTheProcesss) {
  DeviceInfo info{};
  info.kind = "discrete";
  info.heap_bytes = uint64_t{1} << 60;
  EXPECT_EQ(effective({}, info).max_memory, info.heap_bytes / 5 * 4);
  EXPECT_EQ(effective({}, info).max_seconds, 60);
  info.kind = "cpu";
  EXPECT_LT(effective({}, info).max_memory, uint64_t{1} << 50);
  EXPECT_EQ(effective({.max_memory = 7, .max_seconds = 8}, info).max_memory, 7u);
}

std::vector<std::vector<ConstantRange>> reads(size_t count, uint64_t bytes) {
  std::vector<std::vector<ConstantRange>> all;
  for (uint32_t i = 0; i < count; ++i) all.push_back({{i, DType::f32, 0, bytes}, {i / 2, DType::i8, 0, 16}});
  return all;
}

TEST(PackPlan, EveryRangeIsUploadedOnceAndFreedAfterItsLastUse) {
  auto all = reads(100, uint64_t{3} << 20);
  all.push_back(all[0]);  // the first one is needed to the end
  const std::vector<PackBatch> batches = pack_batches(all, 64);
  std::set<ConstantRange> there;
  std::set<size_t> alive;
  size_t next = 0;
  for (size_t b = 0; b < batches.size(); ++b) {
    uint64_t bytes = 0;
    EXPECT_EQ(batches[b].first, next);
    next = batches[b].last;
    for (const ConstantRange& range : batches[b].ranges) {
      EXPECT_TRUE(there.insert(range).second);
      bytes += padded(range.bytes, 64);
    }
    EXPECT_EQ(batches[b].bytes, bytes);
    EXPECT_LE(bytes, uint64_t{64} << 20);
    if (bytes > 0) alive.insert(b);
    for (size_t i = batches[b].first; i < batches[b].last; ++i) {
      for (const ConstantRange& range : all[i]) EXPECT_TRUE(there.contains(range));
    }
    for (const size_t done : batches[b].done) EXPECT_EQ(alive.erase(done), 1u);
    EXPECT_LE(alive.size(), 3u);
  }
  EXPECT_EQ(next, all.size());
  EXPECT_TRUE(alive.empty());
}

TEST(PackPlan, ABatchHasAnEndAlsoWhereNothingIsUploaded) {
  const std::vector<PackBatch> batches = pack_batches(std::vector<std::vector<ConstantRange>>(5000), 64);
  EXPECT_GE(batches.size(), 5u);
  EXPECT_EQ(batches.back().last, 5000u);
}

TEST(PackPlan, IsLinear) {
  const auto seconds = [](size_t count) {  // of the processor, as other processes may run; the best of three
    const auto all = reads(count, 4);
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const std::clock_t begin = std::clock();
      pack_batches(all, 64);
      best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return best;
  };
  const double small = seconds(10'000);
  EXPECT_LT(seconds(160'000), 16 * 5 * std::max(small, 1e-3));
}

}  // namespace
}  // namespace pumice::engine::test
