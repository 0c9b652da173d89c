// SPDX-License-Identifier: Apache-2.0
#include "runtime/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "graph/encode.h"
#include "graph/image_shape.h"
#include "graph/infer.h"
#include "graph/layout.h"
#include "ops/op.h"
#include "runtime/bounds.h"
#include "runtime/file_bytes.h"
#include "runtime/model.h"
#include "serialization/read.h"
#include "vulkan/device_choice.h"
#include "vulkan/driver_bugs.h"

namespace pumice::engine {
namespace {

using nlohmann::json;

// Names come from files: bytes that are no UTF-8 are replaced.
std::string text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text(const Method& method, int64_t node, int depth = 0) {
  const Expr& e = method.exprs[static_cast<size_t>(node)];
  if (e.op == ExprOp::constant) return std::to_string(e.a);
  if (e.op == ExprOp::symbol) return method.symbols[static_cast<size_t>(e.a)].name;
  if (depth == 8) return "...";  // expressions share nodes: written out they may be huge
  const std::string a = text(method, e.a, depth + 1), b = text(method, e.b, depth + 1);
  constexpr const char* kSigns[] = {"", "", " + ", " - ", " * ", " // ", " % "};
  if (e.op == ExprOp::min || e.op == ExprOp::max) return (e.op == ExprOp::min ? "min(" : "max(") + a + ", " + b + ")";
  return "(" + a + kSigns[static_cast<size_t>(e.op)] + b + ")";
}

json dims(const Method& method, const Value& value) {
  json result = json::array();
  for (const SymInt& dim : value.dims) result.push_back(dim.is_expr ? json(text(method, dim.value)) : json(dim.value));
  return result;
}

json brief(const Method& method, const Value& value) {
  return {{"name", value.name},
          {"dtype", name(value.dtype)},
          {"dims", dims(method, value)},
          {"storage", name(value.storage)}};
}

json port(const Method& method, const Value& value, const std::vector<Bounds>& exprs,
          const std::vector<int64_t>& hinted) {
  json result = brief(method, value);
  result["min"] = result["max"] = result["example"] = json::array();
  for (const SymInt& dim : value.dims) {
    const Bounds size = bounds(exprs, dim);
    result["min"].push_back(size.min);
    result["max"].push_back(size.max);
    result["example"].push_back(dim.is_expr ? hinted[static_cast<size_t>(dim.value)] : dim.value);
  }
  return result;
}

json device_json(const DeviceInfo& info, const Features& features) {
  json names = json::array();
  for (uint32_t f = 0; f < kNumFeatures; ++f) {
    if (features.has(static_cast<Feature>(f))) names.push_back(name(static_cast<Feature>(f)));
  }
  json bugs = json::array();
  for (const DriverBug& bug : bugs_of(info)) bugs.push_back({{"off", bug.off}, {"why", bug.why}, {"link", bug.link}});
  const json limits = {{"subgroup_size", features.subgroup_size},
                       {"min_subgroup_size", features.min_subgroup_size},
                       {"max_subgroup_size", features.max_subgroup_size},
                       {"max_invocations", features.max_invocations},
                       {"max_shared_bytes", features.max_shared_bytes},
                       {"max_push_bytes", features.max_push_bytes},
                       {"max_storage_bytes", features.max_storage_bytes},
                       {"max_allocation_bytes", features.max_allocation_bytes},
                       {"storage_alignment", features.storage_alignment},
                       {"max_image_3d", features.max_image_3d},
                       {"max_image_2d", features.max_image_2d}};
  return {{"index", info.index},
          {"name", info.name},
          {"driver", info.driver},
          {"driver_version", info.driver_version},
          {"kind", info.kind},
          {"uuid", info.uuid},
          {"memory_bytes", info.memory_bytes},
          {"features", names},
          {"driver_bugs", bugs},
          {"limits", limits},
          {"api_version",
           format("%u.%u.%u", info.api_version >> 22 & 0x7f, info.api_version >> 12 & 0x3ff, info.api_version & 0xfff)},
          {"kernels", json::array({"baseline"})},
          {"self_test", json::array()}};
}

json plan_json(const Graph& graph) {
  const Layout where = layout(graph);
  json values = json::array();
  const Graph::Impl& impl = graph.impl();
  for (uint32_t v = 0; v < impl.method().values.size(); ++v) {
    json value = brief(impl.method(), impl.method().values[v]);
    value["kind"] = name(impl.method().values[v].kind);
    value["bytes"] = impl.bytes(v);
    const uint32_t texture = impl.tensors[v].other_storage;
    if (texture != kNone && !where.image.empty() && where.image[texture] != kNone)
      value["image"] = where.image[texture];
    if (impl.tensors[where.memory_root[v]].memory == MemorySource::arena && impl.tensors[v].materialized)
      value["offset"] = where.offset[v];
    if (where.memory_root[v] != v) value["storage_of"] = where.memory_root[v];
    values.push_back(std::move(value));
  }
  json images = json::array();
  for (const ImageShape& i : where.images)
    images.push_back({{"width", i.width}, {"height", i.height}, {"depth", i.depth}, {"bytes", texel_bytes(i)}});
  return {{"images", std::move(images)},
          {"arena_bytes", where.plan.total},
          {"naive_bytes", where.plan.naive},
          {"lower_bound_bytes", where.plan.lower_bound},
          {"values", std::move(values)}};
}

// Of each call, and of all; `waits`: those steps that must wait for one before.
json dispatches_json(const Graph& graph, json& calls) {
  const Graph::Impl& impl = graph.impl();
  std::vector<uint32_t> of_call(impl.method().ops.size());
  uint32_t all = 0;
  for (const Node& node : impl.nodes) {
    const auto count = static_cast<uint32_t>(node.dispatches.size());
    all += count;
    if (node.call != kNone) of_call[node.call] += count;
  }
  for (size_t i = 0; i < of_call.size(); ++i) calls[i]["dispatches"] = of_call[i];
  const Layout where = layout(graph);
  const std::vector<Step> order = steps(graph, where, ports(graph, where, true), true, false, {});
  return {{"dispatches", all}, {"waits", std::ranges::count_if(order, &Step::barrier)}};
}

// Python's JSON has NaN, Infinity and -Infinity, for which JSON has no word: they become {"": "nan"} and so on.
std::string without_nan(const std::string& text) {
  constexpr std::pair<std::string_view, const char*> kWords[] = {
      {"NaN", "{\"\":\"nan\"}"}, {"-Infinity", "{\"\":\"-inf\"}"}, {"Infinity", "{\"\":\"inf\"}"}};
  std::string result;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (quoted && text[at] == '\\') {
      result += text.substr(at++, 2);
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    const auto word = std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& each) {
      return !quoted && std::string_view(text).substr(at).starts_with(each.first);
    });
    result += word == std::end(kWords) ? std::string(1, text[at]) : word->second;
    if (word != std::end(kWords)) at += word->first.size() - 1;
  }
  return result;
}

// A constant of a nesting as Python writes it; texts in double quotes.
std::string constant_text(const json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_primitive()) return text(value);
  const auto word = value.is_object() ? value.find("") : value.end();
  return word != value.end() && word->is_string() ? word->get<std::string>() : "...";
}

// Adds what is no tensor in `nest`, whose form python/pumice/runtime/nesting.py has. Damaged parts, and what lies
// deeper than any model nests, are passed over: a nesting is for Python alone.
void add_fixed(json& list, const json& nest, const std::string& path, int depth = 0) {
  if (!nest.is_object() || depth > 32) return;
  if (const auto constant = nest.find("c"); constant != nest.end() || nest.contains("n")) {
    const std::string value = constant == nest.end() ? "None" : constant_text(*constant);
    list.push_back({{"name", printable(path)}, {"value", printable(value)}});
    return;
  }
  for (const char* kind : {"t", "l", "d", "o", "N"}) {
    const auto items = nest.find(kind);
    if (items == nest.end() || !items->is_array()) continue;
    for (size_t i = 0; i < items->size(); ++i) {
      const json& item = (*items)[i];
      if (*kind == 't' || *kind == 'l') {
        add_fixed(list, item, path + "." + std::to_string(i), depth + 1);
      } else if (item.is_array() && item.size() == 2 && item[0].is_primitive()) {
        add_fixed(list, item[1], path + "." + (item[0].is_string() ? item[0].get<std::string>() : item[0].dump()),
                  depth + 1);
      }
    }
  }
}

// What export fixed of a method's arguments, and the defaults of those that it did not get.
json fixed_arguments(const Method& method) {
  json list = json::array(), arguments = json::object();
  const json spec = json::parse(without_nan(method.in_spec), nullptr, false);
  const auto pairs = [&](const json& named) {
    for (const json& pair : named) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) continue;
      const std::string name = pair[0].get<std::string>();
      if (!arguments.contains(name)) add_fixed(list, pair[1], name);
      arguments[name] = true;
    }
  };
  try {
    const json &positional = spec.at("t").at(0).at("t"), &names = spec.at("names");
    for (size_t i = 0; i < positional.size(); ++i) {
      const std::string name = names.at(i).get<std::string>();
      add_fixed(list, positional.at(i), name);
      arguments[name] = true;
    }
    pairs(spec.at("t").at(1).at("d"));
    if (spec.contains("defaults")) pairs(spec.at("defaults"));
  } catch (const json::exception&) {  // another form: nothing is known
    return json::array();
  }
  return list;
}

json method_json(const Graph& graph) {
  const Method& method = graph.impl().method();
  json result = {{"name", method.name},      {"symbols", json::array()},        {"inputs", json::array()},
                 {"outputs", json::array()}, {"states", json::array()},         {"ops", json::array()},
                 {"plan", plan_json(graph)}, {"fixed", fixed_arguments(method)}};
  for (const Symbol& s : method.symbols)
    result["symbols"].push_back({{"name", s.name}, {"min", s.min}, {"max", s.max}, {"hint", s.hint}});
  for (const uint32_t id : method.inputs) result["inputs"].push_back(brief(method, method.values[id]));
  for (const uint32_t id : method.outputs) result["outputs"].push_back(brief(method, method.values[id]));
  for (const Value& value : method.values) {
    if (value.kind == ValueKind::state) result["states"].push_back(brief(method, value));
  }
  for (const OpCall& call : method.ops) {
    json outputs = json::array(), reads = json::array();
    for (const uint32_t id : call.outputs) outputs.push_back(brief(method, method.values[id]));
    for (const Arg& arg : call.args) {
      if (arg.kind == ArgKind::value) reads.push_back(arg.i);
      if (arg.kind == ArgKind::values)
        for (const int64_t id : arg.list) reads.push_back(id);
    }
    result["ops"].push_back({{"name", std::string(op_table()[call.op].signature.name)},
                             {"outputs", std::move(outputs)},
                             {"reads", std::move(reads)},  // of the values that the plan lists
                             {"writes", call.outputs},
                             {"source", call.source}});
  }
  result["run"] = dispatches_json(graph, result["ops"]);
  return result;
}

}  // namespace

std::string inspect(std::span<const std::byte> file, const Features& features) {
  const Program program = read(file, op_signatures());
  const auto facts = std::make_shared<ConstantFacts>();
  json methods = json::array(), constants = json::array();
  for (uint32_t m = 0; m < program.methods.size(); ++m)
    methods.push_back(method_json(*build_method(program, m, features, facts)));
  for (const Constant& c : program.constants)
    constants.push_back({{"key", c.key}, {"bytes", c.size}, {"external", c.external}});
  const json header = {{"version", program.version},
                       {"file_bytes", program.file_size},
                       {"program_bytes", program.program_bytes},
                       {"constant_bytes", program.data.size()},
                       {"producer", program.producer},
                       {"precision", name(program.precision)},
                       {"required_features", program.required_features}};
  return text(json{{"header", header}, {"methods", std::move(methods)}, {"constants", std::move(constants)}});
}

std::string inspect_file(const std::string& path, const Features& features) {
  const FileBytes file(path);
  std::string text = inspect(file.bytes(), features);
  file.check_unchanged();
  return text;
}

std::string describe(const Model& model) {
  json methods = json::array();
  for (uint32_t m = 0; m < model.program().methods.size(); ++m) {
    const Method& method = model.program().methods[m];
    const std::vector<int64_t> hinted = evaluate(method, hints(method));
    const std::vector<Bounds>& exprs = model.bounds(m);
    json entry = {{"name", method.name},
                  {"inputs", json::array()},
                  {"outputs", json::array()},
                  {"in_spec", method.in_spec},
                  {"out_spec", method.out_spec}};
    for (const uint32_t id : method.inputs) entry["inputs"].push_back(port(method, method.values[id], exprs, hinted));
    for (const uint32_t id : method.outputs) entry["outputs"].push_back(port(method, method.values[id], exprs, hinted));
    methods.push_back(std::move(entry));
  }
  json device = device_json(model.device().info(), model.features());
  for (const KernelTest& each : model.self_test())
    device["self_test"].push_back(
        {{"kernel", each.kernel}, {"family", each.family}, {"result", name(each.result)}, {"wrong", each.wrong}});
  return text(json{{"device", std::move(device)},
                   {"precision", name(model.program().precision)},
                   {"methods", std::move(methods)},
                   {"needs",
                    {{"weights", model.need().weights},
                     {"weight_textures", model.need().weight_textures},
                     {"loading", model.need().loading},
                     {"states", model.need().states},
                     {"arena", model.need().arena},
                     {"textures", model.need().textures},
                     {"io", model.need().io}}}});
}

std::string describe_devices() {
  json devices = json::array();
  std::string why;
  for (const DeviceInfo& info : list_devices(&why))
    devices.push_back(device_json(info, pumice::engine::apply(info.features, off_for_bugs(info) + "+float_atomics")));
  return text(json{{"devices", std::move(devices)}, {"why", why}});
}

json operations(const ProfileRow& row) {
  json result = json::object();
  for (size_t i = 0; i < row.operations.size(); ++i) {
    if (row.operations[i] != 0) result[kArithmetics[i]] = row.operations[i];
  }
  return result;
}

std::string describe(std::span<const ProfileRow> rows) {
  json list = json::array();
  double total = 0;
  for (const ProfileRow& row : rows) {
    list.push_back({{"op", row.op},
                    {"call", row.call == kNone ? -1 : int64_t{row.call}},
                    {"source", row.source},
                    {"kernel", row.kernel},
                    {"shapes", row.shapes},
                    {"operands", row.operands},
                    {"start_us", row.start_us},
                    {"us", row.us},
                    {"bytes", row.bytes},
                    {"flops", total_of(row.operations)},
                    {"operations", operations(row)},
                    {"split", row.split}});
    total += row.us;
  }
  return text(json{{"total_us", total}, {"rows", std::move(list)}});
}

std::string describe(const SessionMemory& memory) {
  return text(json{{"weights", memory.weights},
                   {"state", memory.state},
                   {"arena", memory.arena},
                   {"textures", memory.textures},
                   {"io", memory.io}});
}

}  // namespace pumice::engine
