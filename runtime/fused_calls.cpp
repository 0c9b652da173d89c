// SPDX-License-Identifier: Apache-2.0
#include "runtime/fused_calls.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace pumice::engine {
namespace {

using Calls = std::vector<uint32_t>;

struct Finder {
  const Graph::Impl& graph;
  std::vector<Calls> found = {};

  std::string op(uint32_t call) const { return call == kNone ? "" : graph.op_name(graph.method().ops[call].op); }
  bool is_conv(uint32_t call) const { return op(call).find("conv2d") != std::string::npos; }

  // The call that writes an argument of this one.
  uint32_t writer(uint32_t call, size_t argument) const {
    if (call == kNone) return kNone;
    const Arg& arg = graph.method().ops[call].args.at(argument);
    return arg.kind == ArgKind::value ? graph.writer.at(static_cast<size_t>(arg.i)) : kNone;
  }

  template <class Predicate>
  uint32_t reader(uint32_t call, const Predicate& wanted) const {
    const std::vector<OpCall>& ops = graph.method().ops;
    const auto result = static_cast<int64_t>(ops[call].outputs.at(0));
    for (uint32_t each = call + 1; each < ops.size(); ++each) {
      if (ops[each].args.empty() || !wanted(each)) continue;
      if (ops[each].args[0].kind == ArgKind::value && ops[each].args[0].i == result) return each;
    }
    return kNone;
  }

  void add(Calls calls) {
    std::ranges::sort(calls);
    if (calls.back() != kNone) found.push_back(std::move(calls));
  }

  // A depthwise convolution and the one that expands its channels, whose image a convolution, or its sum with another
  // tensor, leaves channels-last; and what reads the result.
  void add_expanded(uint32_t call) {
    const uint32_t expansion = writer(call, 0), image = writer(expansion, 0);
    if (!is_conv(expansion) || image == kNone) return;
    std::vector<Calls> before;
    if (is_conv(image)) before.push_back({image});
    for (const size_t side : {0u, 1u})
      if (op(image) == "add" && is_conv(writer(image, side))) before.push_back({writer(image, side), image});
    const uint32_t mean = reader(call, [&](uint32_t each) { return op(each) == "mean"; });
    const uint32_t next = reader(call, [&](uint32_t each) { return is_conv(each); });
    for (const Calls& first : before) {
      for (const Calls& after : {Calls{}, Calls{mean}, Calls{next}}) {
        Calls calls = {expansion, call};
        calls.insert(calls.end(), first.begin(), first.end());
        calls.insert(calls.end(), after.begin(), after.end());
        add(std::move(calls));
      }
    }
  }

  // The layout that the kernel writes is asked for by the next convolution.
  void add_chains(uint32_t last) {
    const uint32_t next = reader(last, [&](uint32_t each) { return is_conv(each); }), before = writer(last, 0);
    if (is_conv(before)) add({writer(before, 0), before, last, next});
    for (const size_t side : {0u, 1u}) {
      if (op(before) != "q8ta_add") continue;
      const uint32_t middle = writer(before, side);
      if (is_conv(middle) && is_conv(writer(middle, 0))) add({writer(middle, 0), middle, before, last, next});
    }
  }
};

}  // namespace

std::vector<Calls> fused_calls(const Graph::Impl& graph, uint32_t call) {
  Finder finder{graph};
  if (finder.op(call) == "layer_norm") {
    const uint32_t before = finder.writer(call, 0);
    if (finder.op(before) == "conv2d_depthwise_channels_last") finder.add({before, call});
  }
  if (!finder.is_conv(call)) return finder.found;
  finder.add({call, finder.reader(call, [&](uint32_t each) { return finder.op(each) == "mean"; })});
  finder.add_chains(call);
  finder.add_expanded(call);
  return finder.found;
}

}  // namespace pumice::engine
