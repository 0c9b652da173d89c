// SPDX-License-Identifier: Apache-2.0
#include "serialization/write.h"

#include <algorithm>
#include <cstring>

#include "serialization/hash.h"
#include "serialization/header.h"
#include "serialization/schema_generated.h"

namespace pumice::engine {
namespace {

constexpr size_t kHeader = kHeaderSize;

void put(Bytes& file, size_t at, uint64_t value, size_t bytes) {
  std::memcpy(file.data() + at, &value, bytes);
}
uint64_t get(const Bytes& file, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + at, sizeof(value));
  return value;
}

class Writer {
 public:
  Bytes program(const Draft& draft) {
    const Program& p = draft.program;
    const auto features = b_.CreateVectorOfStrings(p.required_features);
    const auto names = tables<fb::OpName>(
        draft.op_names, [&](const OpName& n) { return fb::CreateOpNameDirect(b_, n.name.c_str(), n.version); });
    const auto constants = tables<fb::Constant>(p.constants, [&](const Constant& c) {
      return fb::CreateConstantDirect(b_, c.key.c_str(), c.offset, c.size, c.hash, c.external);
    });
    const auto states = tables<fb::State>(
        p.states, [&](const State& s) { return fb::CreateStateDirect(b_, s.key.c_str(), s.constant); });
    const auto methods = tables<fb::Method>(p.methods, [&](const Method& m) { return method(m); });
    fb::FinishProgramBuffer(b_, fb::CreateProgram(b_, b_.CreateString(p.producer), features, names, constants, states,
                                                  methods, static_cast<fb::Precision>(p.precision)));
    const auto* bytes = reinterpret_cast<const std::byte*>(b_.GetBufferPointer());
    return Bytes(bytes, bytes + b_.GetSize());
  }

 private:
  template <class Table, class Items, class F>
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<Table>>> tables(const Items& items, F&& make) {
    std::vector<flatbuffers::Offset<Table>> offsets;
    for (const auto& item : items) offsets.push_back(make(item));
    return b_.CreateVector(offsets);
  }

  flatbuffers::Offset<fb::Method> method(const Method& m) {
    const auto symbols = tables<fb::Symbol>(
        m.symbols, [&](const Symbol& s) { return fb::CreateSymbolDirect(b_, s.name.c_str(), s.min, s.max, s.hint); });
    std::vector<fb::Expr> nodes;
    for (const Expr& e : m.exprs) nodes.emplace_back(static_cast<fb::ExprOp>(e.op), e.a, e.b);
    const auto exprs = b_.CreateVectorOfStructs(nodes);
    const auto values = tables<fb::Value>(m.values, [&](const Value& v) {
      std::vector<int64_t> dims;
      for (const SymInt d : v.dims) dims.push_back(d.is_expr ? ~d.value : d.value);
      return fb::CreateValueDirect(b_, static_cast<fb::ValueKind>(v.kind), static_cast<fb::DType>(v.dtype), &dims,
                                   v.ref, v.name.c_str(), static_cast<fb::Storage>(v.storage));
    });
    const auto ops = tables<fb::OpCall>(m.ops, [&](const OpCall& c) {
      std::vector<flatbuffers::Offset<fb::Arg>> args;
      for (const Arg& a : c.args) {
        args.push_back(
            fb::CreateArgDirect(b_, static_cast<fb::ArgKind>(a.kind), a.i, a.f, a.list.empty() ? nullptr : &a.list));
      }
      return fb::CreateOpCallDirect(b_, c.op, &args, &c.outputs, c.source.c_str());
    });
    const auto updates =
        tables<fb::Update>(m.updates, [&](const Update& u) { return fb::CreateUpdate(b_, u.state, u.value); });
    const auto inputs = b_.CreateVector(m.inputs), outputs = b_.CreateVector(m.outputs);
    return fb::CreateMethod(b_, b_.CreateString(m.name), symbols, exprs, values, ops, inputs, outputs, updates,
                            b_.CreateString(m.in_spec), b_.CreateString(m.out_spec));
  }

  flatbuffers::FlatBufferBuilder b_;
};

}  // namespace

uint32_t add_constant(Draft& draft, const std::string& key, std::span<const std::byte> bytes) {
  draft.constants.resize((draft.constants.size() + kAlignment - 1) / kAlignment * kAlignment);
  draft.program.constants.push_back({key, draft.constants.size(), bytes.size(), hash64(bytes), false});
  draft.constants.insert(draft.constants.end(), bytes.begin(), bytes.end());
  return static_cast<uint32_t>(draft.program.constants.size() - 1);
}

Bytes write_program(const Draft& draft) {
  return Writer().program(draft);
}

Bytes write_file(std::span<const std::byte> program, std::span<const std::byte> constants) {
  const size_t start = (kHeader + program.size() + kAlignment - 1) / kAlignment * kAlignment;
  Bytes file(start + constants.size());
  put(file, 0, kHeader, 4);
  std::memcpy(file.data() + 4, "PMC1", 4);
  put(file, 8, kVersion, 4);
  put(file, 16, kHeader, 8);
  put(file, 24, program.size(), 8);
  put(file, 40, start, 8);
  put(file, 48, constants.size(), 8);
  std::copy(program.begin(), program.end(), file.begin() + kHeader);
  std::copy(constants.begin(), constants.end(), file.begin() + static_cast<std::ptrdiff_t>(start));
  reseal(file);
  return file;
}

Bytes write_file(const Draft& draft) {
  return write_file(write_program(draft), draft.constants);
}

void reseal(Bytes& file) {
  if (file.size() < kHeader) return;
  const uint64_t offset = get(file, 16), size = get(file, 24);
  if (offset <= file.size() && size <= file.size() - offset)
    put(file, 32, hash64(std::span(file).subspan(offset, size)), 8);
  put(file, 56, hash64(std::span(file).first(56)), 8);
}

}  // namespace pumice::engine
