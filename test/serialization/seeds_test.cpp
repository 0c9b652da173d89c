// SPDX-License-Identifier: Apache-2.0
// What the Python writer wrote (test/support/make_seeds.py) is what the reader reads.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ops/op.h"
#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

Bytes seed(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

const std::filesystem::path kFolder = std::filesystem::path(PUMICE_TEST_DIR) / "fuzz" / "corpus" / "load";

TEST(Seeds, AreAccepted) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    SCOPED_TRACE(entry.path().string());
    const Bytes bytes = seed(entry.path());
    EXPECT_EQ(read(bytes, op_signatures()).producer, "make_seeds.py");
    count++;
  }
  EXPECT_GE(count, 6);
}

TEST(Seeds, EveryFieldArrives) {
  const Bytes bytes = seed(kFolder / "sizes.pumice");
  const Program program = read(bytes, op_signatures());
  const Method& m = program.methods.at(0);
  EXPECT_EQ(m.name, "forward");
  EXPECT_EQ(m.in_spec, "*");
  ASSERT_EQ(m.symbols.size(), 1u);
  EXPECT_EQ(m.symbols[0].name, "s");
  EXPECT_EQ(m.symbols[0].max, 64);
  EXPECT_EQ(m.ops.at(0).source, "model.py:10");
  EXPECT_EQ(m.ops[0].args[0].list, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(m.ops[1].args[1].kind, ArgKind::exprs);  // [1, flat]: the number became an expression, too
  const std::vector<int64_t> values = evaluate(m, std::vector<int64_t>{5});
  EXPECT_EQ(values[static_cast<size_t>(m.ops[1].args[1].list[0])], 1);
  EXPECT_EQ(values[static_cast<size_t>(m.ops[1].args[1].list[1])], 40);
  EXPECT_EQ(m.values[m.inputs[0]].dtype, DType::f16);
}

TEST(Seeds, ConstantsHaveTheirBytes) {
  const Bytes bytes = seed(kFolder / "linear.pumice");
  const Program program = read(bytes, op_signatures());
  float weight[32], bias[4];
  std::memcpy(weight, constant_bytes(program, 0, {}).data(), sizeof weight);
  std::memcpy(bias, constant_bytes(program, 1, {}).data(), sizeof bias);
  for (int i = 0; i < 32; i++) EXPECT_EQ(weight[i], static_cast<float>(i));
  EXPECT_EQ(bias[3], 1.0f);
}

TEST(Signatures, OfEveryOperatorParse) {
  for (const Signature& signature : op_signatures()) EXPECT_GE(parse(signature).outputs, 1u) << signature.name;
}

}  // namespace
}  // namespace pumice::engine::test
