// SPDX-License-Identifier: Apache-2.0
// Small files with real operators, and their sessions on the device under test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "ops/op.h"
#include "runtime/model.h"
#include "test/serialization/write.h"
#include "test/support/error_of.h"

namespace pumice::engine::test {

inline SymInt fixed(int64_t size) {
  return {false, size};
}
inline SymInt expr(int64_t node) {
  return {true, node};
}
inline Arg tensor(uint32_t id) {
  return {ArgKind::value, id, 0, {}};
}
inline Arg integer(int64_t i) {
  return {ArgKind::integer, i, 0, {}};
}
inline Arg real(double f) {
  return {ArgKind::real, 0, f, {}};
}

struct Maker {
  Model model;
  Maker() {
    model.program.methods.emplace_back();
    model.method().name = "forward";
  }
  Method& method() { return model.method(); }
  uint32_t value(ValueKind kind, DType dtype, std::vector<SymInt> dims, int32_t ref = -1, const char* name = "") {
    method().values.push_back({kind, dtype, std::move(dims), ref, name});
    const uint32_t id = static_cast<uint32_t>(method().values.size() - 1);
    if (kind == ValueKind::input) method().inputs.push_back(id);
    if (kind == ValueKind::output) method().outputs.push_back(id);
    return id;
  }
  template <class T>
  uint32_t constant(DType dtype, std::vector<SymInt> dims, const std::vector<T>& data) {
    const auto bytes = std::as_bytes(std::span(data));
    const int32_t ref = static_cast<int32_t>(model.program.constants.size());
    add_constant(model, format("c%d", ref), Bytes(bytes.begin(), bytes.end()));
    return value(ValueKind::constant, dtype, std::move(dims), ref);
  }
  void op(const char* name, std::vector<Arg> args, std::vector<uint32_t> outputs) {
    size_t index = 0;
    while (index < model.op_names.size() && model.op_names[index].name != name) ++index;
    if (index == model.op_names.size()) model.op_names.push_back({name, 1});
    method().ops.push_back({static_cast<uint32_t>(index), std::move(args), std::move(outputs), "model.py:1"});
  }
  void dynamic(const char* name, int64_t min, int64_t max, int64_t hint) {
    method().symbols.push_back({name, min, max, hint});
    method().exprs.push_back({ExprOp::symbol, static_cast<int64_t>(method().symbols.size()) - 1, 0});
  }
  Bytes file() const { return test::file(model); }
};

// y = x + x and z = y + 1; x is f32[s, 3].
inline Maker adds(DType dtype = DType::f32) {
  Maker maker;
  maker.dynamic("s", 1, 1000, 4);
  const std::vector<SymInt> dims{expr(0), fixed(3)};
  const uint32_t x = maker.value(ValueKind::input, dtype, dims, -1, "x");
  const uint32_t y = maker.value(ValueKind::scratch, dtype, dims),
                 z = maker.value(ValueKind::output, dtype, dims, -1, "z");
  maker.op("add", {tensor(x), tensor(x), real(1)}, {y});
  maker.op("add", {tensor(y), integer(1), real(1)}, {z});
  return maker;
}

// A counter: state += x; the output is the new value.
inline Maker counter() {
  Maker maker;
  const std::vector<SymInt> dims{fixed(2)};
  const uint32_t start = maker.constant<int64_t>(DType::i64, dims, {10, 20});
  maker.model.program.states = {{"count", maker.method().values[start].ref}};
  maker.method().values.clear();
  const uint32_t x = maker.value(ValueKind::input, DType::i64, dims, -1, "x");
  const uint32_t old = maker.value(ValueKind::state, DType::i64, dims, 0);
  const uint32_t next = maker.value(ValueKind::output, DType::i64, dims);
  maker.op("add", {tensor(old), tensor(x), real(1)}, {next});
  maker.method().updates = {{old, next}};
  return maker;
}

// A counter of `size` elements that starts at 10, and a lookup that fails for ids beyond 4.
inline Maker failing_counter(int64_t size) {
  Maker maker;
  const std::vector<SymInt> dims{fixed(size)};
  const uint32_t start = maker.constant<int64_t>(DType::i64, dims, std::vector<int64_t>(static_cast<size_t>(size), 10));
  maker.model.program.states = {{"count", maker.method().values[start].ref}};
  maker.method().values.clear();
  const uint32_t x = maker.value(ValueKind::input, DType::i64, dims, -1, "x");
  const uint32_t ids = maker.value(ValueKind::input, DType::i64, {fixed(1)}, -1, "ids");
  const uint32_t old = maker.value(ValueKind::state, DType::i64, dims, 0);
  const uint32_t table = maker.constant<float>(DType::f32, {fixed(5), fixed(2)}, std::vector<float>(10, 1.0f));
  const uint32_t next = maker.value(ValueKind::output, DType::i64, dims);
  const uint32_t row = maker.value(ValueKind::output, DType::f32, {fixed(1), fixed(2)});
  maker.op("add", {tensor(old), tensor(x), real(1)}, {next});
  maker.op("embedding", {tensor(table), tensor(ids)}, {row});
  maker.method().updates = {{old, next}};
  return maker;
}

// An embedding: rows of a table of five rows.
inline Maker lookup() {
  Maker maker;
  maker.dynamic("n", 1, 64, 2);
  std::vector<float> table(10);
  std::iota(table.begin(), table.end(), 0.0f);
  const uint32_t weight = maker.constant<float>(DType::f32, {fixed(5), fixed(2)}, table);
  const uint32_t ids = maker.value(ValueKind::input, DType::i64, {expr(0)}, -1, "ids");
  const uint32_t out = maker.value(ValueKind::output, DType::f32, {expr(0), fixed(2)});
  maker.op("embedding", {tensor(weight), tensor(ids)}, {out});
  return maker;
}

inline std::shared_ptr<Device> open_device_with(const char* features) {
  const char* device = std::getenv("PUMICE_DEVICE");
  return Device::open({device != nullptr && *device != 0 ? device : "llvmpipe", features, "off"});
}

inline std::shared_ptr<Device> open_device() {
  return open_device_with("");
}

template <class T>
InputView view(DType dtype, const std::vector<T>& data, const std::vector<int64_t>& dims) {
  return {dtype, dims, data.data(), data.size() * sizeof(T)};
}

template <class T>
std::vector<T> output(const Session& session, uint32_t index) {
  std::vector<T> data(session.output(index).bytes / sizeof(T));
  session.read(index, data.data(), data.size() * sizeof(T));
  return data;
}

}  // namespace pumice::engine::test
