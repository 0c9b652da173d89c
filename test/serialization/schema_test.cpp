// SPDX-License-Identifier: Apache-2.0
// Gate 2 and single fields: F11 to F16 and F24 of the list of bad inputs.
#include <cmath>
#include <ctime>

#include "serialization/schema_generated.h"
#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

// The program section of the sample, which tests damage through the generated accessors.
struct Raw {
  Bytes bytes = write_program(sample());

  uint8_t* data() { return reinterpret_cast<uint8_t*>(bytes.data()); }
  const fb::Program* program() { return fb::GetProgram(data()); }
  const fb::Method* method() { return program()->methods()->Get(0); }
  // Removes a field of `table`. Tables share vtables, so this one gets a vtable of its own, at the end.
  template <class T>
  void remove(const T* table, uint16_t field) {
    const uint8_t* vtable = reinterpret_cast<const flatbuffers::Table*>(table)->GetVTable();
    uint16_t size;
    std::memcpy(&size, vtable, 2);
    std::vector<uint8_t> copy(vtable, vtable + size);
    copy[field] = copy[field + 1u] = 0;
    const auto at = static_cast<size_t>(reinterpret_cast<const uint8_t*>(table) - data());
    const size_t end = (bytes.size() + 7) / 8 * 8;
    bytes.resize(end + (size + 7u) / 8 * 8);
    std::memcpy(data() + end, copy.data(), size);
    const auto back = static_cast<int32_t>(at) - static_cast<int32_t>(end);
    std::memcpy(data() + at, &back, 4);
  }
  // The bytes of a field; of a field that is an offset, the four bytes of the offset.
  template <class T>
  uint8_t* field(const T* table, uint16_t field) {
    return const_cast<uint8_t*>(reinterpret_cast<const flatbuffers::Table*>(table)->GetAddressOf(field));
  }
  Bytes file() const { return write_file(bytes, sample().constants); }
};

void store(uint8_t* at, uint64_t value, size_t bytes) {
  std::memcpy(at, &value, bytes);
}

TEST(Schema, F15_EachRequiredField) {
  const auto missing = [](const std::string& path, auto&& table, uint16_t field) {
    Raw raw;
    raw.remove(table(raw), field);
    expect_error(Code::BadSchema, path, "missing", [&] { read_file(raw.file()); });
  };
  const auto program = [](Raw& r) { return r.program(); };
  const auto method = [](Raw& r) { return r.method(); };
  const auto op = [](Raw& r) { return r.method()->ops()->Get(0); };
  missing("op_names", program, fb::Program::VT_OP_NAMES);
  missing("constants", program, fb::Program::VT_CONSTANTS);
  missing("methods", program, fb::Program::VT_METHODS);
  missing("op_names[0].name", [](Raw& r) { return r.program()->op_names()->Get(0); }, fb::OpName::VT_NAME);
  missing("constants[0].key", [](Raw& r) { return r.program()->constants()->Get(0); }, fb::Constant::VT_KEY);
  missing("states[0].key", [](Raw& r) { return r.program()->states()->Get(0); }, fb::State::VT_KEY);
  missing("methods[0].name", method, fb::Method::VT_NAME);
  missing("methods[0].values", method, fb::Method::VT_VALUES);
  missing("methods[0].ops", method, fb::Method::VT_OPS);
  missing("methods[0].inputs", method, fb::Method::VT_INPUTS);
  missing("methods[0].outputs", method, fb::Method::VT_OUTPUTS);
  missing("methods[0].symbols[0].name", [](Raw& r) { return r.method()->symbols()->Get(0); }, fb::Symbol::VT_NAME);
  missing("methods[0].values[0].dims", [](Raw& r) { return r.method()->values()->Get(0); }, fb::Value::VT_DIMS);
  missing("methods[0].ops[0].args", op, fb::OpCall::VT_ARGS);
  missing("methods[0].ops[0].outputs", op, fb::OpCall::VT_OUTPUTS);
}

TEST(Schema, F11_OffsetsOutside) {
  for (const uint32_t offset : {0u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    Raw root, table, vector;
    store(root.data(), offset, 4);
    expect_error(Code::BadSchema, "program", "offset", [&] { read_file(root.file()); });
    store(table.field(table.program(), fb::Program::VT_METHODS), offset, 4);
    expect_error(Code::BadSchema, "methods", "offset", [&] { read_file(table.file()); });
    store(const_cast<uint8_t*>(vector.method()->values()->Data()) + 4, offset, 4);
    expect_error(Code::BadSchema, "methods[0].values[1]", "offset", [&] { read_file(vector.file()); });
  }
  for (const uint32_t back : {0x7fffffffu, 0x80000000u, 0xffffff00u}) {
    Raw raw;
    store(const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(raw.method())), back, 4);
    EXPECT_EQ(expect_error(Code::BadSchema, [&] { read_file(raw.file()); }).find("methods[0]"), 0u);
  }
  Raw identifier;
  identifier.bytes[5] = std::byte{'X'};
  expect_error(Code::BadSchema, "program", "identifier", [&] { read_file(identifier.file()); });
}

// No table of the schema can hold one of its own kind, so depth ends at four; sharing is what a file can do.
TEST(Schema, F12_ManyOffsetsToOneTable) {
  flatbuffers::FlatBufferBuilder b;
  const auto dims = b.CreateVector(std::vector<int64_t>{});
  const auto value = fb::CreateValue(b, fb::ValueKind_scratch, fb::DType_f32, dims);
  const auto values = b.CreateVector(std::vector<flatbuffers::Offset<fb::Value>>(1'000'000, value));
  const auto none = b.CreateVector(std::vector<uint32_t>{});
  const auto ops = b.CreateVector(std::vector<flatbuffers::Offset<fb::OpCall>>{});
  const auto method = fb::CreateMethod(b, b.CreateString("forward"), 0, 0, values, ops, none, none);
  const auto methods = b.CreateVector(std::vector{method});
  fb::FinishProgramBuffer(
      b, fb::CreateProgram(b, 0, 0, b.CreateVector(std::vector<flatbuffers::Offset<fb::OpName>>{}),
                           b.CreateVector(std::vector<flatbuffers::Offset<fb::Constant>>{}), 0, methods));
  const Bytes bytes = write_file(std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())), {});
  const std::clock_t start = std::clock();  // processor time: a machine that others use may stall
  expect_error(Code::LimitExceeded, [&] { read_file(bytes); });
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);  // 0.1 s, but sanitizers are slow
}

TEST(Schema, SharedListsCannotMultiplyMemory) {
  flatbuffers::FlatBufferBuilder b;
  const auto list = b.CreateVector(std::vector<int64_t>(4096));
  std::vector<flatbuffers::Offset<fb::Arg>> args;
  for (int i = 0; i < 64; i++) args.push_back(fb::CreateArg(b, fb::ArgKind_ints, 0, 0, list));
  const auto arg_list = b.CreateVector(args);
  const auto none = b.CreateVector(std::vector<uint32_t>{});
  std::vector<flatbuffers::Offset<fb::OpCall>> calls;
  for (int i = 0; i < 200; i++) calls.push_back(fb::CreateOpCall(b, 0, arg_list, none));
  const auto ops = b.CreateVector(calls);
  const auto method = fb::CreateMethod(b, b.CreateString("f"), 0, 0,
                                       b.CreateVector(std::vector<flatbuffers::Offset<fb::Value>>{}), ops, none, none);
  const auto methods = b.CreateVector(std::vector{method});
  fb::FinishProgramBuffer(
      b, fb::CreateProgram(b, 0, 0, b.CreateVector(std::vector<flatbuffers::Offset<fb::OpName>>{}),
                           b.CreateVector(std::vector<flatbuffers::Offset<fb::Constant>>{}), 0, methods));
  const Bytes bytes = write_file(std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())), {});
  const std::string text = expect_error(Code::LimitExceeded, [&] { read_file(bytes); });
  // The limit of tables or that of memory refuses this file; it would become 420 MB of lists.
  EXPECT_TRUE(text.find("memory") != std::string::npos || text.find("tables") != std::string::npos) << text;
}

TEST(Schema, F13_VectorsAndTexts) {
  Raw length, zero;
  store(const_cast<uint8_t*>(length.method()->values()->Data()) - 4, 0xffffffff, 4);
  expect_error(Code::BadSchema, "methods[0].values", "beyond", [&] { read_file(length.file()); });
  store(const_cast<uint8_t*>(zero.method()->name()->Data()) + zero.method()->name()->size(), 'x', 1);
  expect_error(Code::BadSchema, "methods[0].name", "zero byte", [&] { read_file(zero.file()); });

  const std::pair<std::string, const char*> texts[] = {
      {"\xff", "UTF-8"}, {"\x1b[31m", "control"}, {"a\nb", "control"}, {"\xc2\x9b", "control"}};
  for (const auto& [text, why] : texts) {
    Model m = sample();
    m.value(0).name = text;
    expect_error(Code::BadSchema, "methods[0].values[0].name", why, [&] { read_file(file(m)); });
  }
  Model format_string = sample(), long_name = sample(), long_spec = sample();
  format_string.value(0).name = "%n%s%100000d";
  EXPECT_EQ(read_file(file(format_string)).methods[0].values[0].name, "%n%s%100000d");
  long_name.program.constants[0].key = std::string(1 << 20, 'k');
  expect_error(Code::LimitExceeded, "constants[0].key", "4096", [&] { read_file(file(long_name)); });
  long_spec.method().in_spec = std::string((1 << 20) + 1, 's');
  expect_error(Code::LimitExceeded, "methods[0].in_spec", "1048576", [&] { read_file(file(long_spec)); });
}

// An argument is a union by hand: a tag and three fields. F16 has unknown tags.
TEST(Schema, F14_TagsAndTheirValues) {
  const auto refused = [](const char* field, const char* part, const Arg& arg) {
    Model m = sample();
    m.arg(0, 2) = arg;
    expect_error(Code::BadSchema, std::string("methods[0].ops[0].args[2].") + field, part, [&] { read_file(file(m)); });
  };
  refused("i", "got 3, a none has no integer", {ArgKind::none, 3, 0, {}});
  refused("f", "a none has no real number", {ArgKind::none, 0, 0.5, {}});
  refused("f", "got nan", {ArgKind::none, 0, NAN, {}});
  refused("list", "got 1 items, a none has no list", {ArgKind::none, 0, 0, {0}});
  refused("f", "got 1, a tensor has no real number", {ArgKind::value, kBias, 1, {}});
  refused("list", "a tensor has no list", {ArgKind::value, kBias, 0, {kBias}});
  refused("i", "a float has no integer", {ArgKind::real, 1, 1, {}});
  for (const ArgKind kind : {ArgKind::ints, ArgKind::exprs, ArgKind::values})
    refused("i", "has no integer", {kind, 1, 0, {0}});
  Model without = sample();  // a tag without its value has 0 or an empty list, which must fit as any other
  without.arg(kMakeFull, 0) = {ArgKind::exprs, 0, 0, {}};
  EXPECT_EQ(read_file(file(without)).methods[0].ops[kMakeFull].args[0].list.size(), 0u);
  without.arg(kCat, 1) = {ArgKind::value, 0, 0, {}};
  expect_error(Code::BadGraph, "methods[0].ops[6].args[1]", "'dim' is a int", [&] { read_file(file(without)); });
}

TEST(Schema, F16_EachEnum) {
  const auto bad = [](const std::string& path, int value, auto&& change) {
    Model m = sample();
    change(m);
    expect_error(Code::BadSchema, path, std::to_string(value), [&] { read_file(file(m)); });
  };
  for (const int v : {127, 255}) {
    bad("methods[0].values[0].kind", v, [&](Model& m) { m.value(0).kind = static_cast<ValueKind>(v); });
    bad("methods[0].values[0].dtype", v, [&](Model& m) { m.value(0).dtype = static_cast<DType>(v); });
    bad("methods[0].ops[0].args[1].kind", v, [&](Model& m) { m.arg(0, 1).kind = static_cast<ArgKind>(v); });
    bad("methods[0].exprs[2].op", v, [&](Model& m) { m.method().exprs[2].op = static_cast<ExprOp>(v); });
  }
  bad("methods[0].values[0].kind", 5, [](Model& m) { m.value(0).kind = static_cast<ValueKind>(5); });
  bad("methods[0].values[0].dtype", 8, [](Model& m) { m.value(0).dtype = static_cast<DType>(8); });
  bad("methods[0].ops[0].args[1].kind", 10, [](Model& m) { m.arg(0, 1).kind = static_cast<ArgKind>(10); });
  bad("methods[0].values[5].storage", 3, [](Model& m) { m.value(5).storage = static_cast<StorageType>(3); });
  bad("precision", 3, [](Model& m) { m.program.precision = static_cast<Precision>(3); });
  bad("methods[0].exprs[2].op", 9, [](Model& m) { m.method().exprs[2].op = static_cast<ExprOp>(9); });
  bad("methods[0].ops[4].args[2].i", 8, [](Model& m) { m.arg(kMakeFull, 2).i = 8; });
  bad("methods[0].ops[4].args[2].i", -1, [](Model& m) { m.arg(kMakeFull, 2).i = -1; });
  bad("methods[0].ops[4].args[3].i", 2, [](Model& m) { m.arg(kMakeFull, 3).i = 2; });
}

// A field that this version does not know could change the meaning of others, so the file is refused.
TEST(Schema, F24_UnknownField) {
  flatbuffers::FlatBufferBuilder b;
  const auto empty_names = b.CreateVector(std::vector<flatbuffers::Offset<fb::OpName>>{});
  const auto empty_constants = b.CreateVector(std::vector<flatbuffers::Offset<fb::Constant>>{});
  const auto methods = b.CreateVector(std::vector<flatbuffers::Offset<fb::Method>>{});
  const auto spirv = b.CreateVector(std::vector<uint32_t>{0x07230203});
  const auto start = b.StartTable();
  b.AddOffset(fb::Program::VT_OP_NAMES, empty_names);
  b.AddOffset(fb::Program::VT_CONSTANTS, empty_constants);
  b.AddOffset(fb::Program::VT_METHODS, methods);
  b.AddOffset(fb::Program::VT_PRECISION + 2, spirv);
  b.Finish(flatbuffers::Offset<fb::Program>(b.EndTable(start)), fb::ProgramIdentifier());
  const Bytes bytes = write_file(std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())), {});
  expect_error(Code::UnsupportedVersion, "program", "field", [&] { read_file(bytes); });
}

}  // namespace
}  // namespace pumice::engine::test
