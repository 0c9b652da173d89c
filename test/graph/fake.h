// SPDX-License-Identifier: Apache-2.0
// Programs of two made-up operators, for tests of what happens before any device: "copy(x) -> y" and "inplace(x, y) ->
// z".
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/encode.h"
#include "graph/hazard.h"
#include "graph/infer.h"
#include "test/support/error_of.h"

namespace pumice::engine::test {

// There is no code: nothing runs them.
constexpr Shader fake_shader(const char* name, uint32_t num_bindings) {
  return {.name = name,
          .block = nullptr,
          .first_word = 0,
          .num_words = 0,
          .num_bindings = num_bindings,
          .push_bytes = 0,
          .num_spec = 1,
          .features = 0};
}
inline constexpr Shader kOne = fake_shader("fake_copy", 2), kTwo = fake_shader("fake_in_place", 3);
enum FakeOp : uint32_t { kCopy, kInPlace, kView, kBad, kSilent };

inline SymInt fixed(int64_t size) {
  return {false, size};
}
inline SymInt expr(int64_t node) {
  return {true, node};
}

struct Fake {
  Program program;
  uint32_t launches = 0;
  uint32_t (*local_size)(int64_t numel) = nullptr;  // of copies

  Fake() {
    program.methods.emplace_back();
    method().name = "forward";
  }
  Method& method() { return program.methods[0]; }
  uint32_t value(ValueKind kind, std::vector<SymInt> dims, int32_t ref = -1, DType dtype = DType::f32) {
    method().values.push_back({kind, dtype, std::move(dims), ref, ""});
    const uint32_t id = static_cast<uint32_t>(method().values.size() - 1);
    if (kind == ValueKind::input) method().inputs.push_back(id);
    if (kind == ValueKind::output) method().outputs.push_back(id);
    return id;
  }
  void call(FakeOp op, std::vector<uint32_t> in, uint32_t out) {
    OpCall call{op, {}, {out}, "model.py:7"};
    for (const uint32_t id : in) call.args.push_back({ArgKind::value, id, 0, {}});
    method().ops.push_back(std::move(call));
  }
  std::unique_ptr<Graph> build() {
    return pumice::engine::build(program, 0, baseline_features(),
                                 {.add_nodes = [this](Graph& g, const Method&, const OpCall& c) { add(g, c); },
                                  .op_name = [](uint32_t op) { return format("fake%u", op); }},
                                 std::make_shared<ConstantFacts>());
  }

 private:
  void add(Graph& graph, const OpCall& call) {
    const Tensor out(&graph, call.outputs[0]);
    std::vector<Tensor> in;
    for (const Arg& arg : call.args) in.emplace_back(&graph, static_cast<uint32_t>(arg.i));
    const auto launch = [this, out, in](Launch& run) {
      ++launches;
      out.resize(in[0].shape());
      run.shader = in.size() == 1 ? &kOne : &kTwo;
      const auto count = static_cast<uint64_t>(out.numel());
      run.over(count, local_size != nullptr ? local_size(out.numel()) : 128);
    };
    if (call.op == kCopy) graph.dispatch({out}, in, launch);
    if (call.op == kInPlace) graph.dispatch_in_place({out}, in, launch);
    if (call.op == kView) graph.view(out, in[0], [out, in](const Launch&) { out.resize({in[0].numel()}); });
    if (call.op == kBad) check(false, "fake: dimension %d is odd", 3);
  }
};

// Builds, infers at the hints, plans, places barriers; find_hazard must find nothing.
inline std::vector<Step> steps_of(Graph& graph, bool in_place = false) {
  if (!graph.impl().inferred) infer(graph, hints(graph.impl().method()));
  const Layout where = layout(graph);
  std::vector<Step> result = steps(graph, where, ports(graph, where, in_place), in_place, false);
  EXPECT_EQ(find_hazard(result), "");
  return result;
}

}  // namespace pumice::engine::test
