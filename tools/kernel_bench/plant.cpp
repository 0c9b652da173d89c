// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/plant.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "glsl/spirv.h"
#include "graph/graph_impl.h"
#include "ops/quant/qparams.h"
#include "ops/shared/shape.h"
#include "tools/kernel_bench/check.h"
#include "tools/kernel_bench/integers.h"

namespace pumice::engine::kernel_bench {
namespace {

class Planted : public CaseData {
 public:
  Planted(const CaseData& right, std::vector<Argument> arguments)
      : CaseData(right.shape()), right_(right), arguments_(std::move(arguments)) {}
  std::vector<Argument> arguments() const override { return arguments_; }
  std::vector<Output> outputs() const override { return right_.outputs(); }
  bool has_rows() const override { return right_.has_rows(); }
  std::vector<Expected> expect(size_t output, std::span<const uint64_t> indices) const override {
    return right_.expect(output, indices);
  }

 private:
  const CaseData& right_;
  std::vector<Argument> arguments_;
};

Argument* find(std::vector<Argument>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Argument& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void set(Data& data, size_t element, std::byte byte) {
  const size_t size = device_bytes(data.dtype);
  std::fill_n(data.bytes.begin() + static_cast<std::ptrdiff_t>(element * size), size, byte);
}

// The byte of x that stands for 0, in a row.
std::byte nothing(std::vector<Argument>& all, const Data& x, size_t row) {
  if (is_float(x.dtype)) return std::byte{0};
  const Argument* zeros = find(all, "x_zero");
  return zeros != nullptr && zeros->role == Argument::Role::input
             ? zeros->data.bytes[row]
             : static_cast<std::byte>(zero_of(kRowNumbers, x.dtype));
}

// The last column whose element of row 0 is at least half as large as the largest; not the largest itself, whose
// absence changes the scale of a row that is quantized.
size_t a_column(const Data& x, size_t width, double zero) {
  std::vector<double> sizes(width);
  for (size_t at = 0; at < width; ++at) sizes[at] = std::fabs(element(x.bytes, x.dtype, at) - zero);
  const double most = *std::ranges::max_element(sizes);
  for (size_t at = width; at-- > 0;)
    if (sizes[at] >= most / 2 && sizes[at] < most) return at;
  return width - 1;
}

// That of row 0, as a number.
double zero_of_row(std::vector<Argument>& all, const Data& x) {
  if (is_float(x.dtype)) return 0;
  const std::byte zero = nothing(all, x, 0);
  return element({&zero, 1}, x.dtype, 0);
}

bool plant_columns(const Case& c, std::vector<Argument>& all, bool one) {
  Data& x = find(all, "x")->data;
  const auto rows = static_cast<size_t>(c.m), width = x.bytes.size() / device_bytes(x.dtype) / rows;
  const int64_t columns = c.is_conv() ? c.h * c.w : one ? 1 : c.group == c.k ? 32 : c.group;
  if (c.is_conv() && !one) return false;
  size_t first = width - static_cast<size_t>(columns);
  if (!c.is_conv() && one) first = a_column(x, width, zero_of_row(all, x));
  for (size_t row = 0; row < rows; ++row)
    for (size_t at = first; at < first + static_cast<size_t>(columns); ++at)
      set(x, row * width + at, nothing(all, x, row));
  return true;
}

// Of the last group of each row; where each row has one, of the last row.
bool plant_parameters(Argument* argument) {
  if (argument == nullptr) return false;
  const auto groups = static_cast<size_t>(argument->data.shape.at(1));
  const auto count = static_cast<size_t>(argument->data.shape.at(0)) * groups;
  for (size_t at = groups == 1 ? count - 1 : groups - 1; at < count; at += groups) {
    const bool is_nothing = argument->data.bytes[at * device_bytes(argument->data.dtype)] == std::byte{0};
    set(argument->data, at, static_cast<std::byte>(is_nothing && argument->data.dtype == DType::i8 ? 1 : 0));
  }
  return true;
}

// Of the last columns, as a kernel reads four at once.
bool plant_bias(Argument* bias) {
  if (bias == nullptr) return false;
  const auto count = static_cast<size_t>(bias->data.shape.at(0));
  for (size_t at = count - std::min<size_t>(count, 4); at < count; ++at) set(bias->data, at, std::byte{0});
  return true;
}

// Of a tensor, or of the last one of a list.
bool plant_input(Argument* argument) {
  if (argument == nullptr) return false;
  const bool is_list = argument->role == Argument::Role::inputs;
  Data& data = is_list ? argument->list.back() : argument->data;
  // A number x becomes -x / 2 - 1/4, which differs in sign and in size; a scale, which is above 0, half of it; of
  // integers a bit changes.
  const bool is_scale = argument->name.starts_with("scale");
  const auto other = [&](float x) { return is_scale ? x / 2 : -x / 2 - 0.25f; };
  constexpr size_t kEach = 5;
  const size_t size = file_bytes(data.dtype, Shape{1}), count = data.bytes.size() / size;
  for (size_t at = count; at > 0; at -= std::min(at, kEach)) {
    std::byte* element = data.bytes.data() + (at - 1) * size;
    if (data.dtype == DType::f32) {
      float x;
      std::memcpy(&x, element, sizeof(x));
      x = other(x);
      std::memcpy(element, &x, sizeof(x));
    } else if (data.dtype == DType::f16) {
      uint16_t bits;
      std::memcpy(&bits, element, sizeof(bits));
      bits = half_bits(other(half_value(bits)));
      std::memcpy(element, &bits, sizeof(bits));
    } else {
      *element ^= std::byte{is_byte(data.dtype) ? uint8_t{16} : uint8_t{1}};
    }
  }
  return count > 0;
}

}  // namespace

bool is_of_data(std::string_view mistake) {
  return mistake.starts_with(kInput) || std::ranges::find(kDataMistakes, mistake) != std::end(kDataMistakes);
}

std::unique_ptr<CaseData> planted(const CaseData& right, std::string_view mistake) {
  std::vector<Argument> all = right.arguments();
  bool is_planted = false;
  if (mistake.starts_with(kInput)) is_planted = plant_input(find(all, mistake.substr(kInput.size())));
  if (mistake == "column" || mistake == "group") is_planted = plant_columns(right.shape(), all, mistake == "column");
  if (mistake == "scale" || mistake == "zero") is_planted = plant_parameters(find(all, mistake));
  if (mistake == "bias") is_planted = plant_bias(find(all, "bias"));
  if (Argument* act = find(all, "act"); mistake == "act" && act != nullptr && act->number != 0) {
    act->number = 0;
    is_planted = true;
  }
  return is_planted ? std::make_unique<Planted>(right, std::move(all)) : nullptr;
}

CutOff cut_off(std::span<const uint32_t> spirv) {
  constexpr size_t kHeader = 5, kBound = 3;  // in words; the word with the number of ids
  constexpr uint32_t kImport = 11, kExtInst = 12, kConstant = 43, kComposite = 44, kConstruct = 80;
  constexpr uint32_t kAdd = 129;                                     // these of SPIR-V
  constexpr uint32_t kRoundEven = 2, kTrunc = 3;                     // of GLSL.std.450
  constexpr uint32_t kWhole = std::bit_cast<uint32_t>(12582912.0f);  // glsl/include/quant/quantize.glslh
  CutOff result;
  std::set<uint32_t> wholes;  // ids of this constant, and of vectors of it
  uint32_t extended = 0;      // the one set of extended instructions of every shader
  std::vector<uint32_t>& out = result.spirv;
  out.assign(spirv.begin(), spirv.begin() + kHeader);
  for (size_t at = kHeader; at < spirv.size();) {
    const uint32_t op = spirv[at] & 0xffff, words = spirv[at] >> 16;
    if (words == 0 || at + words > spirv.size()) fail(Code::Internal, Stage::api, "mistake", "the SPIR-V is damaged");
    const std::span<const uint32_t> each = spirv.subspan(at, words);  // op, type, result, operands
    at += words;
    if (op == kImport) extended = each[1];
    if (op == kConstant && each.back() == kWhole) wholes.insert(each[2]);
    if ((op == kComposite || op == kConstruct) && words > 3 && wholes.contains(each[3])) wholes.insert(each[2]);
    const bool is_sum = op == kAdd && (wholes.contains(each[3]) || wholes.contains(each[4]));
    if (is_sum) {
      const size_t other = wholes.contains(each[3]) ? 4 : 3;
      const uint32_t cut = out[kBound]++;
      out.insert(out.end(), {6u << 16 | kExtInst, each[1], cut, extended, kTrunc, each[other]});
      out.insert(out.end(), each.begin(), each.end());
      out[out.size() - words + other] = cut;
    } else {
      out.insert(out.end(), each.begin(), each.end());
    }
    const bool is_rounding = op == kExtInst && each[4] == kRoundEven;
    if (is_rounding) out[out.size() - words + 4] = kTrunc;
    result.found += is_sum || is_rounding ? 1 : 0;
  }
  return result;
}

uint32_t plant_rounding(Graph& graph) {
  struct Changed {
    CutOff code;
    Spirv block = {};
    Shader shader = {};
  };
  // Pipelines know a shader by its address, so these stay.
  static std::map<const Shader*, Changed> all;
  static SpirvBlocks blocks;
  uint32_t found = 0;
  for (Node& node : graph.impl().nodes) {
    for (Dispatch& dispatch : node.dispatches) {
      const auto is_changed = [&](const auto& each) { return &each.second.shader == dispatch.shader; };
      if (std::any_of(all.begin(), all.end(), is_changed)) continue;
      const auto [place, is_new] = all.try_emplace(dispatch.shader);
      Changed& changed = place->second;
      if (is_new) {
        changed.code = cut_off(blocks.words(*dispatch.shader));
        const std::vector<uint32_t>& words = changed.code.spirv;
        changed.block = {words.data(), words.data() + words.size(), static_cast<uint32_t>(words.size())};
        changed.shader = *dispatch.shader;
        changed.shader.block = &changed.block;
        changed.shader.first_word = 0;
        changed.shader.num_words = changed.block.num_words;
      }
      found += changed.code.found;
      if (changed.code.found != 0) dispatch.shader = &changed.shader;
    }
  }
  return found;
}

}  // namespace pumice::engine::kernel_bench
