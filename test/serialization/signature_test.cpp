// SPDX-License-Identifier: Apache-2.0
#include "serialization/signature.h"

#include "serialization/text.h"
#include "test/serialization/expect.h"

namespace pumice::engine::test {
namespace {

Parameters parse_text(const char* text) {
  return parse(Signature{"op", 1, text});
}

TEST(Signature, EveryType) {
  const Parameters p =
      parse_text("Tensor a, Tensors b, operand c, int d, float e, bool f, dtype g, size h, ints i, sizes? j -> Tensor");
  ASSERT_EQ(p.params.size(), 10u);
  for (size_t i = 0; i < 10; i++) {
    EXPECT_EQ(static_cast<size_t>(p.params[i].type), i);
    EXPECT_EQ(p.params[i].name, std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(p.params[i].optional, i == 9);
  }
  EXPECT_STREQ(name(ParamType::tensors), "Tensors");
}

TEST(Signature, Outputs) {
  EXPECT_EQ(parse_text("-> Tensor").params.size(), 0u);
  EXPECT_EQ(parse_text("Tensor x -> Tensor values, Tensor indices").outputs, 2u);
  EXPECT_TRUE(parse_text("Tensor x -> Tensors").any_outputs);
}

TEST(Signature, MistakesOfAnOperatorAuthor) {
  for (const char* text :
       {"", "Tensor x", "Tensor x ->", "Tensor -> Tensor", "tensor x -> Tensor", "Tensor x -> int", ", -> Tensor",
        "Tensor x -> Tensor?", "Tensor x -> Tensors, Tensor", "Tensor x -> Tensor, Tensors"}) {
    expect_error(Code::Internal, [&] { parse_text(text); });
  }
}

TEST(Text, Utf8) {
  for (const char* good : {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(text_problem(good, Lines::one), nullptr) << good;
  }
  // Bad UTF-8: a continuation byte alone, a cut character, forms that are too long, a surrogate, a number beyond the
  // last code point, bytes that are never valid.
  for (const char* bad : {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xfe", "\xff", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_STREQ(text_problem(bad, Lines::many), "is not UTF-8") << bad;
  }
}

TEST(Text, ControlCharacters) {
  EXPECT_EQ(text_problem("a\n\tb", Lines::many), nullptr);
  for (const char* bad : {"a\nb", "\x1b[0m", "\x7f", "\xc2\x9b"})
    EXPECT_NE(text_problem(bad, Lines::one), nullptr) << bad;
  for (const char* bad : {"\r", "\x1b[0m", "\xc2\x9b"}) EXPECT_NE(text_problem(bad, Lines::many), nullptr) << bad;
  EXPECT_NE(text_problem(std::string_view("a\0b", 3), Lines::many), nullptr);
}

}  // namespace
}  // namespace pumice::engine::test
