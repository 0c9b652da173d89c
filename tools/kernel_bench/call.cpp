// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/call.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "base/text.h"
#include "ops/shared/shape.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::kernel_bench {
namespace {

constexpr DType kDtypes[] = {DType::f32,     DType::f16, DType::i32, DType::i64,
                             DType::boolean, DType::u8,  DType::i8,  DType::i4};
constexpr std::string_view kFloats[] = {"f32", "f16"};  // indices are those of DType
constexpr size_t kMostCases = 4096;

[[noreturn]] void wrong(const Op& op, std::string_view what, std::string_view text) {
  fail(Code::InvalidArgument, Stage::api, "case", "%s: '%s': %s", std::string(op.signature.name).c_str(),
       printable(text).c_str(), std::string(what).c_str());
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::string_view word = cut(text, ' ');
    if (!word.empty()) all.push_back(word);
  }
  return all;
}

// A list of integers: "[1,-1]" or "[]".
std::vector<int64_t> integers(const Op& op, std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') wrong(op, "a list is [1,2]", text);
  std::string_view rest = text.substr(1, text.size() - 2);
  std::vector<int64_t> all;
  while (!rest.empty()) {
    int64_t number = 0;
    if (!read_number(cut(rest, ','), number)) wrong(op, "a list has whole numbers", text);
    all.push_back(number);
  }
  return all;
}

DType dtype_of(const Op& op, std::string_view word) {
  std::vector<std::string_view> known;
  for (const DType each : kDtypes) {
    if (name(each) == word) return each;
    known.push_back(name(each));
  }
  wrong(op, "no dtype of a case; did you mean " + std::string(nearest(word, known)) + "?", word);
}

// A tensor: "const:i8[3,4]{-5..5}".
CallTensor tensor(const Op& op, std::string_view text, DType t) {
  CallTensor result;
  std::string_view rest = text;
  constexpr std::string_view kConstant = "const:";
  result.is_constant = rest.starts_with(kConstant);
  if (result.is_constant) rest.remove_prefix(kConstant.size());
  const size_t open = rest.find('['), close = rest.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    wrong(op, "a tensor is dtype[sizes], like T[3,37]", text);
  const std::string_view dtype = rest.substr(0, open), range = rest.substr(close + 1);
  result.is_t = dtype == "T";
  result.dtype = result.is_t ? t : dtype_of(op, dtype);
  if (result.dtype == DType::i4 && !result.is_constant) wrong(op, "only constants are i4", text);
  result.shape = integers(op, rest.substr(open, close + 1 - open));
  for (const int64_t size : result.shape)
    if (size < 0 || size > int64_t{1} << 30) wrong(op, "a size is 0 to 2^30", text);
  if (!is_float(result.dtype)) {
    const bool is_bool = result.dtype == DType::boolean, is_i4 = result.dtype == DType::i4;
    result.low = is_bool || result.dtype == DType::u8 ? 0 : is_i4 ? -8 : -100;
    result.high = is_bool ? 1 : is_i4 ? 7 : result.dtype == DType::u8 ? 200 : 100;
  }
  if (range.empty()) return result;
  if (range.front() != '{' || range.back() != '}') wrong(op, "a range is {-1..1}", text);
  const std::string_view inside = range.substr(1, range.size() - 2);
  const size_t dots = inside.find("..");
  if (inside == "special" && is_float(result.dtype)) {
    result.has_special = true;
  } else if (inside.find(',') != std::string_view::npos) {
    for (std::string_view left = inside; !left.empty();) {
      if (!read_number(cut(left, ','), result.numbers.emplace_back())) wrong(op, "numbers in turn are {1,0.5}", text);
    }
  } else if (dots == std::string_view::npos || !read_number(inside.substr(0, dots), result.low) ||
             !read_number(inside.substr(dots + 2), result.high) || !(result.low <= result.high)) {
    wrong(op, "a range is {-1..1}, or {special} for floats", text);
  }
  return result;
}

CallArgument argument(const Op& op, const Param& param, std::string_view value, DType t) {
  CallArgument result{.name = std::string(param.name), .type = param.type};
  const bool is_tensor = value.find('[') != std::string_view::npos && value.front() != '[';
  const bool takes_tensor =
      param.type == ParamType::tensor || param.type == ParamType::tensors || param.type == ParamType::operand;
  if (is_tensor != takes_tensor && param.type != ParamType::operand)
    wrong(op, std::string("the argument is a ") + name(param.type), value);
  if (is_tensor) {
    while (!value.empty()) result.tensors.push_back(tensor(op, cut(value, '+'), t));
    if (result.tensors.size() != 1 && param.type != ParamType::tensors) wrong(op, "one tensor is wanted", value);
    return result;
  }
  switch (param.type) {
    case ParamType::ints:
    case ParamType::sizes:
      result.list = integers(op, value);
      return result;
    case ParamType::dtype:
      result.dtype = value == "T" ? t : dtype_of(op, value);
      return result;
    default:
      break;
  }
  int64_t integer = 0;
  result.is_integer = read_number(value, integer);
  if (!read_number(value, result.number)) wrong(op, "no number", value);
  if (!result.is_integer && param.type != ParamType::real && param.type != ParamType::operand)
    wrong(op, "a whole number is wanted", value);
  return result;
}

// The words before "->" and the words after it.
struct Sides {
  std::vector<std::string_view> left, right;
  bool has_arrow = false;
};
Sides sides(std::string_view text) {
  Sides result;
  for (const std::string_view word : words(text)) {
    if (word == "->")
      result.has_arrow = true;
    else
      (result.has_arrow ? result.right : result.left).push_back(word);
  }
  return result;
}

uint32_t index_of(const Op& op, std::string_view got, std::span<const std::string_view> known) {
  for (uint32_t i = 0; i < known.size(); ++i)
    if (known[i] == got) return i;
  wrong(op, "did you mean '" + std::string(nearest(got, known)) + "'?", got);
}

// The alternatives of a word: {"dim=0", "dim=1"} for "dim=0|1".
std::vector<std::string> alternatives(const Op& op, std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) wrong(op, "no '='; a case is text like x=T[3,37] dim=-1", word);
  const std::string key(word.substr(0, equals + 1));
  std::string_view values = word.substr(equals + 1);
  std::vector<std::string> all;
  do all.push_back(key + std::string(cut(values, '|')));
  while (!values.empty());
  return all;
}

// All combinations with one alternative of each word.
std::vector<std::vector<std::string>> combinations(const Op& op, std::span<const std::string_view> words) {
  std::vector<std::vector<std::string>> all = {{}};
  for (const std::string_view word : words) {
    std::vector<std::vector<std::string>> more;
    for (const std::vector<std::string>& each : all) {
      for (const std::string& choice : alternatives(op, word)) {
        more.push_back(each);
        more.back().push_back(choice);
      }
    }
    if (more.size() > kMostCases) fail(Code::LimitExceeded, Stage::api, "case", "more than 4096 combinations");
    all = std::move(more);
  }
  return all;
}

void add_cases(const Op& op, std::string_view text, std::vector<Case>& all) {
  const std::string op_name(op.signature.name);
  Sides words = sides(text);
  std::erase_if(words.left, [&](std::string_view word) { return word == "op=" + op_name; });
  const auto has = [&](std::string_view key) {
    return std::any_of(words.left.begin(), words.left.end(), [&](auto word) { return word.starts_with(key); });
  };
  const bool uses_t = text.find("T[") != std::string_view::npos || text.find("=T") != std::string_view::npos;
  if (uses_t && !has("T=")) words.left.push_back("T=f32|f16");
  for (const std::vector<std::string>& combination : combinations(op, words.left)) {
    Case c{.op = op_name, .m = 1, .n = 1, .k = 1};
    for (const std::string_view word : combination) {
      if (word.starts_with("T="))
        c.dtype = c.scale = static_cast<DType>(index_of(op, word.substr(2), kFloats));
      else if (word.starts_with("storage="))
        c.storage = kStorages[index_of(op, word.substr(word.find('=') + 1), kStorages)];
      else
        c.call += (c.call.empty() ? "" : " ") + std::string(word);
    }
    if (!words.right.empty()) c.call += " ->";
    for (const std::string_view word : words.right) c.call += " " + std::string(word);
    parse_call(op, c.call, c.dtype);  // throws when the text is wrong
    all.push_back(std::move(c));
  }
}

}  // namespace

Call parse_call(const Op& op, std::string_view text, DType t) {
  const Sides words = sides(text);
  const Parameters parameters = parse(op.signature);
  Call call;
  std::vector<std::string_view> known;
  for (const Param& param : parameters.params) known.push_back(param.name);
  for (const std::string_view word : words.left) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string_view key = word.substr(0, equals);
    const Param& param = parameters.params[index_of(op, key, known)];
    if (equals + 1 == word.size()) wrong(op, "nothing stands after '='", word);
    call.arguments.push_back(argument(op, param, word.substr(equals + 1), t));
  }
  for (const Param& param : parameters.params) {
    const auto given = std::count_if(call.arguments.begin(), call.arguments.end(),
                                     [&](const CallArgument& each) { return each.name == param.name; });
    if (given > 1 || (given == 0 && !param.optional))
      wrong(op, std::string(param.name) + (given > 1 ? " is given twice" : " is missing"), text);
  }
  for (const std::string_view word : words.right) call.outputs.push_back(tensor(op, word, t));
  for (const CallArgument& each : call.arguments) {
    if (call.outputs.empty() && !each.tensors.empty()) call.outputs = {each.tensors[0]};
  }
  if (call.outputs.empty() || (!parameters.any_outputs && call.outputs.size() != parameters.outputs))
    wrong(op, "after '->' stand the outputs, " + std::to_string(parameters.outputs), text);
  return call;
}

std::vector<Case> call_cases(const Op& op, std::string_view text) {
  std::vector<Case> all;
  while (!text.empty()) {
    const std::string_view call = cut(text, ';');
    if (!words(call).empty()) add_cases(op, call, all);
  }
  return all;
}

}  // namespace pumice::engine::kernel_bench
