// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

// The numbers of "1x128", none of ""; nothing where it is another text.
std::optional<std::vector<int64_t>> parse_dims(const std::string& dims) {
  std::vector<int64_t> result;
  for (size_t at = 0; !dims.empty() && at <= dims.size();) {
    const size_t end = std::min(dims.find('x', at), dims.size());
    const std::string number = dims.substr(at, end - at);
    if (number.empty() || number.size() > 12 || number.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    result.push_back(std::stoll(number));
    at = end + 1;
  }
  return result;
}

// fp32 to fp16, rounded to nearest even; for random inputs, without NaN and overflow.
uint16_t half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value * 0x1p-112f);  // fp16's exponent bias, as a scaling
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1)) >> 13);
}

void fill(Array& array, std::mt19937& generator) {
  std::normal_distribution<float> normal;
  const uint64_t size = dtype_bytes(array.dtype);
  for (uint64_t at = 0; at < array.data.size(); at += size) {
    if (array.dtype == PUMICE_F32) {
      const float value = normal(generator);
      std::memcpy(&array.data[at], &value, 4);
    } else if (array.dtype == PUMICE_F16) {
      const uint16_t value = half(normal(generator));
      std::memcpy(&array.data[at], &value, 2);
    } else {
      array.data[at] = static_cast<std::byte>(generator() & 1);
    }
  }
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

// --shape, by the name of the input.
Shapes given_shapes(const std::vector<pumice_tensor_info>& infos, std::span<const std::string> shapes) {
  Shapes wanted;
  for (const std::string& text : shapes) {
    const size_t equal = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equal);
    bool known = false;
    for (const auto& info : infos) known |= name == info.name;
    if (!known) throw UsageError("--shape " + text + ": no input '" + name + "'");
    const auto dims = parse_dims(equal < text.size() ? text.substr(equal + 1) : "");
    if (!dims) throw UsageError("--shape " + text + ": sizes are whole numbers joined by 'x', as in ids=1x128");
    if (!wanted.emplace(name, *dims).second) throw UsageError("--shape " + text + ": '" + name + "' is given twice");
  }
  return wanted;
}

// Sizes by name: from --size, and those that a --shape says.
std::map<std::string, int64_t> named_sizes(const std::vector<pumice_tensor_info>& infos,
                                           std::span<const std::string> sizes, const Shapes& wanted) {
  std::map<std::string, int64_t> named;
  std::set<std::string> known;
  for (const auto& info : infos)
    for (size_t d = 0; d < info.rank; ++d)
      if (info.symbol[d] != nullptr) known.insert(info.symbol[d]);
  for (const std::string& text : sizes) {
    const size_t equal = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equal), number = equal < text.size() ? text.substr(equal + 1) : "";
    if (!known.contains(name)) throw UsageError("--size " + text + ": no dynamic size '" + name + "'");
    const auto size = parse_dims(number);
    if (!size || size->size() != 1)
      throw UsageError("--size " + text + ": a size is a whole number, as in " + name + "=128");
    if (!named.emplace(name, size->front()).second)
      throw UsageError("--size " + text + ": '" + name + "' is given twice");
  }
  for (const auto& info : infos) {
    const auto shape = wanted.find(info.name);
    for (size_t d = 0; shape != wanted.end() && d < std::min<size_t>(info.rank, shape->second.size()); ++d) {
      if (info.symbol[d] == nullptr) continue;
      const int64_t size = named.emplace(info.symbol[d], shape->second[d]).first->second;
      if (size != shape->second[d])
        throw UsageError(std::string("the size ") + info.symbol[d] + " is both " + std::to_string(size) + " and " +
                         std::to_string(shape->second[d]));
    }
  }
  return named;
}

}  // namespace

std::vector<Array> random_inputs(const pumice::Model& model, const Arguments& arguments) {
  const auto infos = model.inputs();
  const auto wanted = given_shapes(infos, arguments.shapes);
  const auto named = named_sizes(infos, arguments.sizes, wanted);
  const auto facts = nlohmann::json::parse(model.describe());
  std::vector<Array> arrays;
  std::mt19937 generator(0);
  for (size_t i = 0; i < infos.size(); ++i) {
    Array array;
    array.dtype = infos[i].dtype;
    if (const auto found = wanted.find(infos[i].name); found != wanted.end()) {
      array.dims = found->second;
    } else {
      array.dims = facts.at("methods").at(0).at("inputs").at(i).at("example").get<std::vector<int64_t>>();
      for (size_t d = 0; d < array.dims.size(); ++d)
        if (const char* symbol = infos[i].symbol[d]; symbol != nullptr && named.contains(symbol))
          array.dims[d] = named.at(symbol);
    }
    uint64_t bytes = dtype_bytes(array.dtype);
    for (const int64_t dim : array.dims) bytes *= static_cast<uint64_t>(dim);
    array.data.resize(bytes);
    fill(array, generator);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

std::vector<Array> bench_inputs(const pumice::Model& model, const Arguments& arguments) {
  if (arguments.inputs.empty()) return random_inputs(model, arguments);
  if (!arguments.shapes.empty() || !arguments.sizes.empty())
    throw UsageError("--inputs have their own shapes: leave out --shape and --size");
  std::vector<Array> arrays;
  for (const std::string& path : arguments.inputs) arrays.push_back(read_npy(path));
  return arrays;
}

std::vector<pumice_tensor> views(const std::vector<Array>& arrays) {
  std::vector<pumice_tensor> result;
  for (const Array& array : arrays)
    result.push_back(pumice::view(array.dtype, array.dims, array.data.data(), array.data.size()));
  return result;
}

std::string shape_text(const pumice::Model& model, const std::vector<Array>& arrays) {
  std::string text;
  const auto infos = model.inputs();
  for (size_t i = 0; i < arrays.size(); ++i) {
    text += (i ? "," : "") + std::string(infos[i].name) + "=";
    for (size_t d = 0; d < arrays[i].dims.size(); ++d) text += (d ? "x" : "") + std::to_string(arrays[i].dims[d]);
  }
  return text;
}

}  // namespace tool
