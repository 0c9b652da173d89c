// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/operators.h"

#include <algorithm>

#include "base/nearest.h"
#include "ops/shared/decoder_layers.h"
#include "ops/shared/textures.h"
#include "tools/kernel_bench/baseline.h"

namespace pumice::engine::kernel_bench {

std::span<const Signature> signatures() {
  static const std::vector<Signature> kAll = [] {
    std::vector<Signature> all(op_signatures().begin(), op_signatures().end());
    for (const Op& op : baselines()) all.push_back(op.signature);
    return all;
  }();
  return kAll;
}

const OperatorCallbacks& builder() {
  static constexpr auto kOp = [](uint32_t op) -> const Op& {
    const size_t count = op_table().size();
    return op < count ? op_table()[op] : baselines()[op - count];
  };
  static const OperatorCallbacks kBuilder{
      .add_nodes = [](Graph& graph, const Method& method,
                      const OpCall& call) { kOp(call.op).build(graph, Args(graph, method, call)); },
      .op_name = [](uint32_t op) { return std::string(kOp(op).signature.name); },
      .copy_storage = copy_storage,
      .merge = merge_decoder_layers,
  };
  return kBuilder;
}

const Op* find_op(std::string_view name) {
  for (const Op& op : op_table()) {
    if (op.signature.name == name) return &op;
  }
  return nullptr;
}

void must_be_one_of(const char* what, std::string_view got, std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), got) != known.end()) return;
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::api, what, "unknown %s '%s': did you mean '%s'? There are %s", what,
       printable(got).c_str(), std::string(nearest(got, known)).c_str(), list.c_str());
}

void must_be_operator(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Op& op : op_table()) names.push_back(op.signature.name);
  must_be_one_of("operator", name, names);
}

}  // namespace pumice::engine::kernel_bench
