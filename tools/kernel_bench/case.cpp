// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/case.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/text.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/call.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::kernel_bench {
namespace {

constexpr std::string_view kValues[] = {"random", "low",       "high",    "equal", "huge",
                                        "wide",   "alternate", "special", "one",   "group"};
constexpr std::string_view kZeros[] = {"none", "zero", "random"};
constexpr std::string_view kActs[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "relu6", "hardswish", "hardsigmoid"};
constexpr std::string_view kBools[] = {"0", "1"};
constexpr std::string_view kFloats[] = {"f32", "f16"};  // indices are those of DType
constexpr std::string_view kBytes[] = {"i8", "u8"};

// A size with its key, and its smallest value.
struct Size {
  std::string_view key;
  int64_t Case::* place;
  int64_t least = 1;
};
constexpr Size kProduct[] = {{"m", &Case::m}, {"n", &Case::n}, {"k", &Case::k}, {"g", &Case::group, 0}};
constexpr Size kConv[] = {{"b", &Case::m},        {"c", &Case::c},    {"o", &Case::n},      {"h", &Case::h},
                          {"w", &Case::w},        {"k", &Case::k},    {"s", &Case::stride}, {"p", &Case::pad, 0},
                          {"d", &Case::dilation}, {"g", &Case::group}};
constexpr std::string_view kOthers[] = {"op",   "dtype", "scale", "storage", "bias",
                                        "zero", "act",   "in",    "out",     "values"};

std::span<const Size> sizes(const Case& c) {
  if (c.is_conv()) return kConv;
  return kProduct;
}

[[noreturn]] void unknown(const char* what, std::string_view got, std::span<const std::string_view> known) {
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::api, "case", "%s '%s': did you mean '%s'? There are %s", what,
       printable(got).c_str(), std::string(nearest(got, known)).c_str(), list.c_str());
}

uint32_t index(const char* what, std::string_view got, std::span<const std::string_view> known) {
  for (uint32_t i = 0; i < known.size(); ++i)
    if (known[i] == got) return i;
  unknown(what, got, known);
}

int64_t number(std::string_view key, std::string_view value, int64_t least) {
  int64_t result = 0;
  if (!read_number(value, result) || result < least || result > int64_t{1} << 30)
    fail(Code::InvalidArgument, Stage::api, "case", "%s=%s: a whole number from %lld to 2^30 is wanted",
         printable(key).c_str(), printable(value).c_str(), static_cast<long long>(least));
  return result;
}

void set(Case& c, std::string_view key, std::string_view value) {
  std::vector<std::string_view> known(std::begin(kOthers), std::end(kOthers));
  for (const Size& size : sizes(c)) {
    if (size.key == key) return void(c.*size.place = number(key, value, size.least));
    known.push_back(size.key);
  }
  switch (index("unknown key", key, known)) {
    case 0: {
      bench_op(value);  // throws where there is none
      const bool was_conv = c.is_conv();
      if (usual(value).is_conv() != was_conv)
        c = usual(value);
      else
        c.op = value;
      return;
    }
    case 1:
      c.dtype = c.scale = static_cast<DType>(index("dtype", value, kFloats));
      return;
    case 2:
      c.scale = static_cast<DType>(index("scale", value, kFloats));
      return;
    case 3:
      c.storage = kStorages[index("storage", value, kStorages)];
      return;
    case 4:
      c.bias = index("bias", value, kBools) == 1;
      return;
    case 5:
      c.zeros = static_cast<Zeros>(index("zero", value, kZeros));
      return;
    case 6:
      c.act = index("act", value, kActs);
      return;
    case 7:
      c.in = index("in", value, kBytes) == 0 ? DType::i8 : DType::u8;
      return;
    case 8:
      c.out = index("out", value, kBytes) == 0 ? DType::i8 : DType::u8;
      return;
    default:
      c.values = static_cast<Values>(index("values", value, kValues));
  }
}

// The operator in the text, else that of `base`. It may not exist.
std::string_view op_of(std::string_view text, const Case& base) {
  size_t at = text.find("op=");
  while (at != std::string_view::npos && at > 0 && text[at - 1] != ',' && text[at - 1] != ' ')
    at = text.find("op=", at + 1);
  if (at == std::string_view::npos) return base.op;
  at += 3;
  return text.substr(at, std::min(text.find_first_of(" ,|;", at), text.size()) - at);
}

}  // namespace

Case usual(std::string_view op) {
  const BenchOp& known = bench_op(op);
  if (known.is_call()) return call_cases(*known.row, known.row->cases.test).at(0);
  Case c{.op = std::string(op)};
  if (known.is_conv()) {
    c.n = c.c = 64;
    c.h = c.w = 56;
    c.k = 3;
    c.group = 1;
  }
  return c;
}

std::string text(const Case& c) {
  if (!c.call.empty()) return "op=" + c.op + " T=" + name(c.dtype) + " storage=" + c.storage + " " + c.call;
  std::string all = "op=" + c.op;
  for (const Size& size : sizes(c)) all += "," + std::string(size.key) + "=" + std::to_string(c.*size.place);
  return all + ",dtype=" + name(c.dtype) + ",scale=" + name(c.scale) + ",storage=" + c.storage +
         ",bias=" + (c.bias ? "1" : "0") + ",zero=" + std::string(kZeros[static_cast<size_t>(c.zeros)]) +
         ",act=" + std::string(kActs[c.act]) + (c.in == DType::u8 ? ",in=u8" : "") +
         (c.out == DType::u8 ? ",out=u8" : "") + ",values=" + std::string(kValues[static_cast<size_t>(c.values)]);
}

std::string title(const Case& c) {
  if (!c.call.empty()) {
    const bool is_t = c.call.find("T[") != std::string::npos || c.call.find("=T") != std::string::npos;
    return c.op + " " + c.call + (is_t ? " T=" + std::string(name(c.dtype)) : "") +
           (c.in_textures() ? " " + c.storage : "");
  }
  const Case usual;
  std::string all = c.op;
  for (const Size& size : sizes(c)) all += " " + std::string(size.key) + "=" + std::to_string(c.*size.place);
  all += " " + std::string(name(c.dtype));
  if (c.scale != c.dtype) all += " scale=" + std::string(name(c.scale));
  if (c.storage != usual.storage) all += " " + c.storage;
  if (c.bias) all += " bias";
  if (c.zeros != usual.zeros) all += " zero=" + std::string(kZeros[static_cast<size_t>(c.zeros)]);
  if (c.act != usual.act) all += " " + std::string(kActs[c.act]);
  if (c.in != usual.in) all += " in=" + std::string(name(c.in));
  if (c.out != usual.out) all += " out=" + std::string(name(c.out));
  if (c.values != usual.values) all += " values=" + std::string(kValues[static_cast<size_t>(c.values)]);
  return all;
}

std::vector<Case> parse(std::string_view all, const Case& base) {
  const Op* row = find_op(op_of(all, base));
  if (row != nullptr && row->cases.linear == nullptr && row->cases.conv == nullptr) return call_cases(*row, all);
  std::vector<std::pair<std::string_view, std::string_view>> pairs;  // keys and their values
  while (!all.empty()) {
    std::string_view pair = cut(all, ',');
    while (!pair.empty() && pair.front() == ' ') pair.remove_prefix(1);
    while (!pair.empty() && pair.back() == ' ') pair.remove_suffix(1);
    if (pair.empty()) continue;
    if (pair.find('=') == std::string_view::npos)
      fail(Code::InvalidArgument, Stage::api, "case", "'%s' has no '='; a case is text like m=17,n=4097,k=384,g=32",
           printable(pair).c_str());
    const std::string_view key = cut(pair, '=');
    pairs.emplace_back(key, pair);
  }
  // The operator first: it decides which keys there are.
  std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first == "op"; });
  std::vector<Case> cases = {base};
  for (auto& [key, rest] : pairs) {
    std::vector<std::string_view> values;
    do values.push_back(cut(rest, '|'));
    while (!rest.empty());
    std::vector<Case> more;
    for (const Case& c : cases) {
      for (const std::string_view value : values) {
        more.push_back(c);
        set(more.back(), key, value);
      }
    }
    if (more.size() > 4096) fail(Code::LimitExceeded, Stage::api, "case", "more than 4096 combinations");
    cases = std::move(more);
  }
  return cases;
}

}  // namespace pumice::engine::kernel_bench
