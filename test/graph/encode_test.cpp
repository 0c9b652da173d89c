// SPDX-License-Identifier: Apache-2.0
// What is done once where steps run several times; words that calls count with.
#include "graph/encode.h"

#include <gtest/gtest.h>

#include "graph/graph_impl.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kA = 1, kB = 2, kY = 3;

Step copy(Range to, Range from) {
  return {.kind = StepKind::copy, .writes = {to}, .reads = {from}};
}

TEST(Once, InputsThatNoStepWritesOverAndOutputs) {
  const Range a{kArena, 0, 16, kA}, b{kArena, 16, 32, kB}, y{kArena, 16, 32, kY};  // y takes the memory of b
  const Range up_a{kUpload, 0, 16, kA}, up_b{kUpload, 16, 32, kB}, down{kDownload, 0, 16, kY};
  std::vector<Step> before, after,
      steps = {{.kind = StepKind::host, .writes = {up_a}},
               copy(a, up_a),
               {.kind = StepKind::host, .writes = {up_b}},
               copy(b, up_b),
               {.kind = StepKind::dispatch, .node = 0, .writes = {y}, .reads = {a, b}},
               copy(down, y)};
  once({}, before, steps, after);

  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[1].writes[0].content, kA);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].writes[0].content, kB) << "in each step, as the kernel writes over it";
  EXPECT_FALSE(steps[0].barrier) << "a recording begins with one";
  EXPECT_TRUE(steps[1].barrier);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].writes[0].space, kDownload);
}

TEST(Once, AnInputWithANewValueForTheNextStep) {
  const Range x{kArena, 0, 16, kA}, next{kArena, 0, 16, kY}, up{kUpload, 0, 16, kA};
  const std::vector<Step> all = {
      {.kind = StepKind::host, .writes = {up}},
      copy(x, up),
      {.kind = StepKind::dispatch, .node = 0, .writes = {next}, .reads = {x}},
  };
  std::vector<Step> before, after, steps = all;
  once(std::vector{kA}, before, steps, after);
  EXPECT_EQ(before.size(), 2u);
  EXPECT_EQ(steps.size(), 1u);
  before.clear();
  steps = all;
  once({}, before, steps, after);
  EXPECT_EQ(steps.size(), 2u) << "another input, over which a step writes, is copied in again";
}

TEST(Counters, SetsLieOneAfterAnother) {
  Graph graph;
  const uint32_t two = graph.counters(3, 2).id(), five = graph.counters(100, 5).id();
  EXPECT_EQ(graph.counters(70, 2).id(), two) << "280 bytes";
  EXPECT_NE(five, two);
  EXPECT_EQ(graph.impl().counters_begin(two), 0u);
  EXPECT_EQ(graph.impl().counters_begin(five), 512u);
  EXPECT_EQ(graph.impl().counters_begin(kNone), 1024u);
}

}  // namespace
}  // namespace pumice::engine
