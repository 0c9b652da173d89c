// SPDX-License-Identifier: Apache-2.0
// A weight larger than one binding of the CPU driver (128 MiB), used by an embedding and by the last layer: W10, W11.
#include "test/graph/make.h"

namespace pumice::engine::test {
namespace {

constexpr uint32_t kRows = 151'937, kColumns = 2048;  // the vocabulary of a real model, plus one

// A 4-bit value as the file stores it: value + 8.
int value(const std::vector<uint8_t>& weight, size_t row, size_t column) {
  const uint8_t byte = weight[(row * kColumns + column) / 2];
  return ((column & 1) != 0 ? byte >> 4 : byte & 15) - 8;
}

TEST(Large, ATiedWeightOfMoreThanABindingIsSplit) {
  const char* name = std::getenv("PUMICE_DEVICE");
  const auto device = Device::open({name != nullptr && *name != 0 ? name : "llvmpipe", "max_storage=128m", "off"});
  std::vector<uint8_t> weight(size_t{kRows} * kColumns / 2);
  uint32_t random = 1;
  for (uint8_t& byte : weight) byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
  std::vector<float> scale(kRows), x(kColumns);
  for (size_t row = 0; row < kRows; ++row) scale[row] = 1.0f / static_cast<float>(1u << row % 7);
  for (size_t k = 0; k < kColumns; ++k) x[k] = static_cast<float>(k % 3) - 1;  // every sum is exact
  const std::vector<int64_t> index{0, kRows - 1, 131'071, 131'072, 70'000};

  Maker maker;
  const uint32_t in = maker.value(ValueKind::input, DType::f32, {fixed(1), fixed(kColumns)}, -1, "x");
  const uint32_t ids = maker.value(ValueKind::input, DType::i64, {fixed(5)}, -1, "ids");
  const uint32_t w = maker.constant(DType::i4, {fixed(kRows), fixed(kColumns)}, weight);
  const uint32_t s = maker.constant(DType::f32, {fixed(kRows), fixed(1)}, scale);
  const uint32_t out = maker.value(ValueKind::output, DType::f32, {fixed(1), fixed(kRows)});
  const uint32_t rows = maker.value(ValueKind::output, DType::f32, {fixed(5), fixed(kColumns)});
  maker.op("linear_q4gsw", {tensor(in), tensor(w), tensor(s), {}, {}, integer(kColumns), integer(0), {}}, {out});
  maker.op("embedding_q4gsw", {tensor(w), tensor(s), {}, tensor(ids), integer(kColumns)}, {rows});
  const auto model = pumice::engine::Model::load([&] { return device; }, maker.file());
  const auto session = model->session();
  EXPECT_LT(session->memory().weights, weight.size() + (uint64_t{4} << 20)) << "packed once, the raw form is gone";
  EXPECT_GT(weight.size(), uint64_t{1} << 27);

  session->run(0, std::vector{view(DType::f32, x, {1, kColumns}), view(DType::i64, index, {5})});
  const std::vector<float> got = output<float>(*session, 0), looked_up = output<float>(*session, 1);
  size_t wrong = 0;
  for (size_t row = 0; row < kRows; row += 7) {  // with sanitizers all take 20 s
    int sum = 0;
    for (size_t k = 0; k < kColumns; ++k) sum += value(weight, row, k) * (static_cast<int>(k % 3) - 1);
    wrong += got[row] != static_cast<float>(sum) * scale[row];
  }
  EXPECT_EQ(wrong, 0u);
  for (size_t i = 0; i < index.size(); ++i) {
    const size_t row = static_cast<size_t>(index[i]);
    for (size_t k = 0; k < kColumns; ++k)
      wrong += looked_up[i * kColumns + k] != static_cast<float>(value(weight, row, k)) * scale[row];
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace pumice::engine::test
