// SPDX-License-Identifier: Apache-2.0
// Gate 3: each line damages one thing; F17, F19 and G01 to G16 of the list of bad inputs.
#include <algorithm>

#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

struct Case {
  const char* id;
  Code code;
  const char* path;  // of the error; "methods[0]" is added before a dot
  const char* part;  // of the error's text
  void (*change)(Model&);
};

constexpr int64_t kHuge = INT64_MAX, kBig = 2'000'000'000;

#define DAMAGE(...) [](Model& m) { __VA_ARGS__; }

void gap(Model& m) {
  m.constants.resize(m.constants.size() + 64);
  m.program.constants[3].offset += 64;
}

// Both inputs have exprs[expr] rows.
void input_rows(Model& m, int64_t expr) {
  for (const uint32_t input : m.method().inputs) m.value(input).dims[0] = {true, expr};
}

// The sum is an output, too.
void two_outputs(Model& m, const char* name) {
  m.value(kSum).kind = ValueKind::output;
  m.value(kSum).name = name;
  m.method().outputs.push_back(kSum);
}

void affine(Model& m) {
  m.program.required_features = {"affine_inputs"};
}

const Case kCases[] = {
    {"F19", Code::BadSchema, "constants[1].key", "twice", DAMAGE(m.program.constants[1].key = "weight")},
    {"F19", Code::BadSchema, "constants[1].key", "empty", DAMAGE(m.program.constants[1].key = "")},
    {"F19", Code::BadSchema, "states[1].key", "twice", DAMAGE(m.program.states.push_back(m.program.states[0]))},
    {"F19", Code::BadSchema, "methods[1].name", "twice", DAMAGE(m.program.methods.push_back(m.method()))},
    {"F19", Code::BadSchema, "methods[0].name", "empty", DAMAGE(m.method().name = "")},
    {"F19", Code::BadSchema, "methods", "at least one", DAMAGE(m.program.methods.clear())},
    {"F19", Code::BadSchema, "op_names[1]", "twice", DAMAGE(m.op_names[1] = m.op_names[0])},
    {"F24", Code::UnsupportedVersion, "required_features[0]", "warp", DAMAGE(m.program.required_features = {"warp"})},
    {"G01", Code::BadIndex, ".ops[0].op", "6 op_names", DAMAGE(m.op(0).op = 6)},
    {"G01", Code::BadIndex, ".ops[0].op", "4294967295", DAMAGE(m.op(0).op = UINT32_MAX)},
    {"G01", Code::BadIndex, ".ops[0].args[0]", "got -1", DAMAGE(m.arg(0, 0).i = -1)},
    {"G01", Code::BadIndex, ".ops[0].args[0]", "got 15, there are 15", DAMAGE(m.arg(0, 0).i = 15)},
    {"G01", Code::BadIndex, ".ops[0].args[0]", "9223372036854775807", DAMAGE(m.arg(0, 0).i = kHuge)},
    {"G01", Code::BadIndex, ".ops[6].args[0].list[1]", "-2147483648", DAMAGE(m.arg(kCat, 0).list[1] = INT32_MIN)},
    {"G01", Code::BadIndex, ".ops[2].args[1].list[0]", "5 expressions", DAMAGE(m.arg(kSplit, 1).list[0] = 5)},
    {"G01", Code::BadIndex, ".ops[4].args[4]", "expressions", DAMAGE(m.arg(kMakeFull, 4).i = -1)},
    {"G01", Code::BadIndex, ".ops[0].outputs[0]", "15 values", DAMAGE(m.op(0).outputs[0] = 15)},
    {"G01", Code::BadIndex, ".inputs[1]", "values", DAMAGE(m.method().inputs[1] = UINT32_MAX)},
    {"G01", Code::BadIndex, ".outputs[0]", "values", DAMAGE(m.method().outputs[0] = 15)},
    {"G01", Code::BadIndex, ".updates[0].state", "values", DAMAGE(m.method().updates[0].state = 15)},
    {"G01", Code::BadIndex, ".updates[0].value", "values", DAMAGE(m.method().updates[0].value = 15)},
    {"G01", Code::BadIndex, ".values[2].ref", "4 constants", DAMAGE(m.value(kWeight).ref = 4)},
    {"G01", Code::BadIndex, ".values[2].ref", "got -1", DAMAGE(m.value(kWeight).ref = -1)},
    {"G01", Code::BadIndex, ".values[4].ref", "1 states", DAMAGE(m.value(kCount).ref = INT32_MIN)},
    {"G01", Code::BadIndex, ".values[5].ref", "got 0", DAMAGE(m.value(kHidden).ref = 0)},
    {"G01", Code::BadIndex, ".values[0].dims[0]", "expressions", DAMAGE(m.value(0).dims[0].value = 5)},
    {"G01", Code::BadIndex, ".values[0].dims[0]", "expressions", DAMAGE(m.value(0).dims[0].value = kHuge)},
    {"G01", Code::BadIndex, "states[0].constant", "got 4", DAMAGE(m.program.states[0].constant = 4)},
    {"G01", Code::BadIndex, "states[0].constant", "got -2", DAMAGE(m.program.states[0].constant = -2)},
    {"G01", Code::BadIndex, ".exprs[0].a", "symbols", DAMAGE(m.method().exprs[0].a = 1)},
    {"G01", Code::BadIndex, ".exprs[0].a", "symbols", DAMAGE(m.method().exprs[0].a = -1)},
    {"F16", Code::BadSchema, ".values[2].storage", "a constant cannot be a texture3d",
     DAMAGE(m.value(kWeight).storage = StorageType::texture3d)},
    {"F16", Code::BadSchema, ".values[4].storage", "a state cannot be a texture2d",
     DAMAGE(m.value(kCount).storage = StorageType::texture2d)},
    {"F16", Code::BadSchema, ".values[5].storage", "a scratch cannot be a texture2d",
     DAMAGE(m.value(kHidden).storage = StorageType::texture2d)},
    {"G02", Code::UnknownOp, "op_names[0]", "no operator 'warp'", DAMAGE(m.op_names[0].name = "warp")},
    {"G02", Code::UnknownOp, "op_names[0]", "no operator ''", DAMAGE(m.op_names[0].name = "")},
    {"G02", Code::UnknownOp, "op_names[0]", "has version 2", DAMAGE(m.op_names[0].version = 3)},
    {"G05", Code::BadGraph, ".ops[0].args[0]", "before", DAMAGE(m.arg(0, 0).i = kSum)},
    {"G05", Code::BadGraph, ".ops[1].args[1]", "before", DAMAGE(m.arg(kAdd, 1).i = kSum)},
    {"G05", Code::BadGraph, ".ops[0].args[0]", "before", DAMAGE(std::swap(m.op(0), m.op(1)))},
    {"G05", Code::BadGraph, ".values[14]", "no operator writes", DAMAGE(m.method().ops.pop_back())},
    {"G05", Code::BadGraph, ".values[15]", "no operator writes", DAMAGE(m.method().values.push_back(m.value(kHidden)))},
    {"G06", Code::BadGraph, ".ops[1].outputs[0]", "second time", DAMAGE(m.op(1).outputs[0] = kHidden)},
    {"G06", Code::BadGraph, ".ops[2].outputs[1]", "second time", DAMAGE(m.op(kSplit).outputs[1] = kLeft)},
    {"G06", Code::BadGraph, ".ops[0].outputs[0]", "constant", DAMAGE(m.op(0).outputs[0] = kWeight)},
    {"G06", Code::BadGraph, ".ops[0].outputs[0]", "input", DAMAGE(m.op(0).outputs[0] = kX)},
    {"G06", Code::BadGraph, ".ops[0].outputs[0]", "state", DAMAGE(m.op(0).outputs[0] = kCount)},
    {"G07", Code::BadGraph, ".outputs[0]", "kind input", DAMAGE(m.method().outputs[0] = kX)},
    {"G07", Code::BadGraph, ".outputs[0]", "kind constant", DAMAGE(m.method().outputs[0] = kWeight)},
    {"G07", Code::BadGraph, ".outputs[0]", "kind scratch", DAMAGE(m.method().outputs[0] = kSum)},
    {"G07", Code::BadGraph, ".inputs[1]", "twice", DAMAGE(m.method().inputs[1] = kX)},
    {"G07", Code::BadGraph, ".inputs[1]", "kind state", DAMAGE(m.method().inputs[1] = kCount)},
    {"G07", Code::BadGraph, ".values[1]", "not in inputs", DAMAGE(m.method().inputs.pop_back())},
    {"G07", Code::BadGraph, ".values[14]", "not in outputs", DAMAGE(m.method().outputs.pop_back())},
    {"G07", Code::BadSchema, ".inputs[1]", "another input", DAMAGE(m.value(1).name = "x")},
    {"G07", Code::BadSchema, ".outputs[1]", "another output is named 'out'", DAMAGE(two_outputs(m, "out"))},
    {"G08", Code::BadGraph, ".ops[0].args[0]", "list of tensors", DAMAGE(m.arg(0, 0) = list_arg(ArgKind::values, {0}))},
    {"G08", Code::BadSchema, ".ops[0].args[0].list", "no list", DAMAGE(m.arg(0, 0).list = {0})},
    {"G08", Code::LimitExceeded, ".ops[6].args[0].list", "max_list", DAMAGE(m.arg(kCat, 0).list.assign(1'000'000, 0))},
    {"G08", Code::LimitExceeded, ".ops[2].outputs", "max_list", DAMAGE(m.op(kSplit).outputs.assign(4097, 5))},
    {"G03", Code::LimitExceeded, ".ops[0].args", "max_args", DAMAGE(m.op(0).args.resize(65))},
    {"G10", Code::BadShape, ".values[5].dims", "max_rank", DAMAGE(m.value(5).dims.assign(9, {false, 1}))},
    {"G10", Code::BadShape, ".values[5].dims[1]", "2147483648", DAMAGE(m.value(5).dims[1].value = int64_t{1} << 31)},
    {"G10", Code::BadShape, ".values[5].dims[1]", "", DAMAGE(m.value(5).dims[1].value = kHuge)},
    {"G10", Code::BadShape, ".values[5].dims[0]", "4294967296", DAMAGE(m.value(5).dims[0] = {false, int64_t{1} << 32})},
    {"G10", Code::LimitExceeded, ".values[5].dims", "max_elements", DAMAGE(m.value(5).dims.assign(8, {false, kBig}))},
    {"G10", Code::LimitExceeded, ".values[5].dims", "max_elements", DAMAGE(m.value(5).dims.assign(2, {false, kBig}))},
    {"G14", Code::BadDtype, ".values[5].dtype", "i4", DAMAGE(m.value(5).dtype = DType::i4)},
    {"G16", Code::BadShape, ".symbols[0]", "min 129", DAMAGE(m.method().symbols[0].min = 129)},
    {"G16", Code::BadShape, ".symbols[0]", "min -1", DAMAGE(m.method().symbols[0].min = -1)},
    {"G16", Code::BadShape, ".symbols[0]", "hint 200", DAMAGE(m.method().symbols[0].hint = 200)},
    {"G16", Code::BadShape, ".symbols[0]", "1099511627776", DAMAGE(m.method().symbols[0].max = int64_t{1} << 40)},
    {"G16", Code::BadShape, ".symbols[1]", "not the size of", DAMAGE(m.method().symbols.push_back({"t", 1, 2, 1}))},
    {"G16", Code::BadShape, ".symbols[0]", "of any input", DAMAGE(input_rows(m, 2))},  // 2 * s, the feature not named
    {"G16", Code::BadShape, ".symbols[0]", "alone or as", DAMAGE(input_rows(m, 3), affine(m))},  // s // 2
    {"G16", Code::BadSchema, ".symbols[1].name", "twice", DAMAGE(m.method().symbols.push_back({"s", 1, 2, 1}))},
    {"G16", Code::BadGraph, ".ops[0].args[0]", "expression", DAMAGE(m.arg(0, 0) = {ArgKind::expr, 0, 0, {}})},
    {"G16", Code::BadIndex, ".exprs[2].b", "2 earlier", DAMAGE(m.method().exprs[2].b = 2)},
    {"G16", Code::BadIndex, ".exprs[2].a", "2 earlier", DAMAGE(m.method().exprs[2].a = 4)},
    {"G16", Code::BadShape, ".exprs[3]", "divides by zero", DAMAGE(m.method().exprs[1].a = 0)},
    {"G16", Code::BadShape, ".exprs[2]", "does not fit", DAMAGE(m.method().exprs[1].a = kHuge)},
    {"G16", Code::BadShape, ".values[7].dims[0]", "got -16", DAMAGE(m.method().exprs[1].a = -1)},
    {"W02", Code::WeightsMismatch, ".values[2]", "f32[8, 9] has 288", DAMAGE(m.value(kWeight).dims[1].value = 9)},
    {"W02", Code::WeightsMismatch, ".values[13]", "i4[3, 7] has 12", DAMAGE(m.value(kPacked).dims[1].value = 7)},
    {"W02", Code::WeightsMismatch, ".values[4]", "8 bytes, i32[1] has 4", DAMAGE(m.value(kCount).dtype = DType::i32)},
    {"W02", Code::BadShape, ".values[2].dims[0]", "fixed", DAMAGE(m.value(kWeight).dims[0] = {true, 0})},
    {"state", Code::BadGraph, ".updates[0].state", "kind input", DAMAGE(m.method().updates[0].state = kX)},
    {"state", Code::BadGraph, ".updates[1].state", "already", DAMAGE(m.method().updates.push_back({kCount, kNext}))},
    {"state", Code::BadDtype, ".updates[0].value", "f32", DAMAGE(m.method().updates[0].value = kX)},
    {"state", Code::BadDtype, ".updates[1].value", "the f32 input",
     DAMAGE(m.method().updates.push_back({kX, kNext}), m.program.required_features = {"input_updates"})},
    {"state", Code::BadShape, ".updates[0].value", "shape", DAMAGE(m.method().updates[0].value = kTopIndex)},
    {"state", Code::BadGraph, ".values[15].ref", "already", DAMAGE(m.method().values.push_back(m.value(kCount)))},
    {"state", Code::BadGraph, "methods[1].values[4]", "another method", [](Model& m) {
       m.program.states[0].constant = -1;
       m.program.methods.push_back(m.method());
       m.program.methods[1].name = "second";
       for (const uint32_t v : {kCount, kNext}) m.program.methods[1].values[v].dims[0].value = 2;
     }},
    {"constants", Code::BadSchema, "constants[1].offset", "multiple of 64", DAMAGE(m.program.constants[1].offset += 1)},
    {"constants", Code::Truncated, "constants[3]", "393", DAMAGE(m.program.constants[3].offset += 64)},
    {"constants", Code::Truncated, "constants[3]", "393", DAMAGE(m.program.constants[3].offset = UINT64_MAX - 63)},
    {"constants", Code::BadSchema, "constants[1].offset", "ends at 264", DAMAGE(m.program.constants[2].offset = 256)},
    {"constants", Code::BadSchema, "constants", "last 1 bytes", DAMAGE(m.constants.resize(394))},
    {"F09", Code::ChecksumMismatch, "padding between the constants", "300", DAMAGE(m.constants[300] = std::byte{1})},
    {"constants", Code::BadSchema, "constants[3].offset", "120 bytes before it", DAMAGE(gap(m))},
    {"constants", Code::ChecksumMismatch, "constants[1]", "'bias'", DAMAGE(m.constants[256] = std::byte{1})},
    {"constants", Code::ChecksumMismatch, "constants[0]", "'weight'", DAMAGE(m.program.constants[0].hash++)},
    {"constants", Code::BadSchema, "constants[1].offset", "external", DAMAGE(m.program.constants[1].external = true)},
};

TEST(Semantics, SymbolsAreLearnedFromAffineSizes) {
  Model m = sample();
  input_rows(m, 2);
  affine(m);
  EXPECT_EQ(read_file(file(m)).methods[0].symbols.size(), 1u);
}

TEST(Semantics, EveryDamageIsFoundAndNamed) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.id) + " " + c.path + " " + c.part);
    Model m = sample();
    c.change(m);
    expect_error(c.code, (*c.path == '.' ? "methods[0]" : "") + std::string(c.path), c.part,
                 [&] { read_file(file(m)); });
  }
}

TEST(Semantics, G03_ArgumentAndOutputCounts) {
  for (uint32_t op = 0; op < sample().method().ops.size(); op++) {
    const size_t count = sample().op(op).args.size();
    for (const size_t wrong : {size_t{0}, count - 1, count + 1}) {
      Model m = sample();
      m.op(op).args.resize(wrong);
      expect_error(Code::BadGraph, format("methods[0].ops[%u].args", op),
                   format("%zu parameters, got %zu", count, wrong), [&] { read_file(file(m)); });
    }
    Model none = sample(), more = sample();
    none.op(op).outputs.clear();
    expect_error(Code::BadGraph, format("methods[0].ops[%u].outputs", op), "got 0", [&] { read_file(file(none)); });
    more.op(op).outputs.push_back(kX);
    expect_error(Code::BadGraph, [&] { read_file(file(more)); });
  }
}

TEST(Semantics, G04_EveryPositionEveryOtherKind) {
  int refused = 0;
  for (uint32_t op = 0; op < sample().method().ops.size(); op++) {
    for (size_t i = 0; i < sample().op(op).args.size(); i++) {
      const Signature& signature =
          *std::find_if(std::begin(kSignatures), std::end(kSignatures),
                        [&](const Signature& s) { return s.name == sample().op_names[sample().op(op).op].name; });
      const Param param = parse(signature).params[i];
      for (int kind = 0; kind <= static_cast<int>(ArgKind::values); kind++) {
        const auto k = static_cast<ArgKind>(kind);
        const bool size = param.type == ParamType::size || param.type == ParamType::sizes;
        const bool fits = k == sample().arg(op, i).kind || (k == ArgKind::none && param.optional) ||
                          (param.type == ParamType::operand &&
                           (k == ArgKind::value || k == ArgKind::integer || k == ArgKind::real)) ||
                          (param.type == ParamType::real && (k == ArgKind::integer || k == ArgKind::real)) ||
                          (param.type == ParamType::tensors && k == ArgKind::ints) ||
                          (size && (k == ArgKind::integer || k == ArgKind::expr) == (param.type == ParamType::size) &&
                           (k == ArgKind::integer || k == ArgKind::expr || k == ArgKind::ints || k == ArgKind::exprs));
        if (fits) continue;
        Model m = sample();
        m.arg(op, i) = {k, 0, 0, {}};
        expect_error(Code::BadGraph, format("methods[0].ops[%u].args[%zu]", op, i), std::string(param.name),
                     [&] { read_file(file(m)); });
        refused++;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Semantics, WhatIsAllowed) {
  Model twice = sample(), no_bias = sample(), scalar = sample(), zeros = sample(), no_list = sample();
  twice.method().outputs = {kOutput, kOutput};  // G07: a value may be an output twice
  EXPECT_EQ(read_file(file(twice)).methods[0].outputs.size(), 2u);
  no_bias.arg(kLinear, 2) = {};
  EXPECT_EQ(read_file(file(no_bias)).methods[0].ops[0].args[2].kind, ArgKind::none);
  scalar.value(kSum).dims.clear();  // G09: rank 0 (gate 4 would compare it with what add makes)
  EXPECT_EQ(read_file(file(scalar)).methods[0].values[kSum].dims.size(), 0u);
  zeros.program.states[0].constant = -1;
  EXPECT_EQ(read_file(file(zeros)).states[0].constant, -1);
  no_list.arg(kCat, 0) = list_arg(ArgKind::ints, {});  // an empty list fits every kind of list
  EXPECT_EQ(read_file(file(no_list)).methods[0].ops[kCat].args[0].kind, ArgKind::values);
}

TEST(Semantics, Precision) {
  Model m = sample();
  EXPECT_EQ(read_file(file(m)).precision, Precision::split);
  for (const Precision each : {Precision::fp32, Precision::fp16}) {
    m.program.precision = each;
    EXPECT_EQ(read_file(file(m)).precision, each);
  }
}

TEST(Semantics, TwoMethodsShareAState) {
  Model m = sample();
  m.program.methods.push_back(m.method());
  m.program.methods[1].name = "second";
  EXPECT_EQ(read_file(file(m)).methods.size(), 2u);
}

TEST(Semantics, F17_LinearTime) {
  Model values = sample(), ops = sample();
  values.method().values.resize(1'000'000, values.value(kHidden));
  expect_error(Code::LimitExceeded, [&] { read_file(file(values)); });
  constexpr uint32_t kOps = 100'000;
  for (uint32_t i = 0; i < kOps; i++) {
    ops.op_names = {{"linear", 2}, {"add", 1}, {"split", 1}, {"topk", 1}, {"full", 1}, {"cat", 1}, {"relu", 1}};
    ops.method().values.push_back(ops.value(kHidden));
    ops.method().ops.push_back({6, {tensor_arg(i == 0 ? kSum : kOutput + i)}, {kOutput + 1 + i}, ""});
  }
  EXPECT_EQ(read_file(file(ops)).methods[0].ops.size(), kOps + 7);
}

}  // namespace
}  // namespace pumice::engine::test
