// SPDX-License-Identifier: Apache-2.0
#include "serialization/signature.h"

#include <optional>

namespace pumice::engine {
namespace {

constexpr std::string_view kTypes[] = {"Tensor", "Tensors", "operand", "int",  "float",
                                       "bool",   "dtype",   "size",    "ints", "sizes"};

[[noreturn]] void bad(const Signature& signature, const char* what, std::string_view part) {
  fail(Code::Internal, Stage::semantics, std::string(signature.name), "signature '%s': %s '%s'",
       std::string(signature.params).c_str(), what, std::string(part).c_str());
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes what stands before the next comma off `rest`.
std::string_view next(std::string_view& rest) {
  const size_t comma = rest.find(',');
  const std::string_view item = trim(rest.substr(0, comma));
  rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  return item;
}

Param param(const Signature& signature, std::string_view item, bool needs_name) {
  const size_t space = item.find(' ');
  std::string_view type = item.substr(0, space);
  Param out{};
  out.name = space == std::string_view::npos ? std::string_view() : trim(item.substr(space));
  out.optional = !type.empty() && type.back() == '?';
  if (out.optional) type.remove_suffix(1);
  if (needs_name && out.name.empty()) bad(signature, "a parameter without a name:", item);
  for (size_t i = 0; i < std::size(kTypes); i++) {
    if (type == kTypes[i]) {
      out.type = static_cast<ParamType>(i);
      return out;
    }
  }
  bad(signature, "unknown type", type);
}

}  // namespace

const char* name(ParamType type) {
  return kTypes[static_cast<size_t>(type)].data();
}

Parameters parse(const Signature& signature) {
  const size_t arrow = signature.params.find("->");
  if (arrow == std::string_view::npos) bad(signature, "no", "->");
  Parameters out;
  for (std::string_view rest = trim(signature.params.substr(0, arrow)); !rest.empty();) {
    out.params.push_back(param(signature, next(rest), true));
  }
  for (std::string_view rest = trim(signature.params.substr(arrow + 2)); !rest.empty();) {
    const std::string_view item = next(rest);
    const Param output = param(signature, item, false);
    const bool many = output.type == ParamType::tensors;
    if ((output.type != ParamType::tensor && !many) || output.optional || out.any_outputs ||
        (many && out.outputs > 0)) {
      bad(signature, "an output is Tensor, or the only one Tensors, not", item);
    }
    out.any_outputs = many;
    out.outputs++;
  }
  if (out.outputs == 0) bad(signature, "no output behind", "->");
  return out;
}

}  // namespace pumice::engine
