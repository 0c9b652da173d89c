// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/bench_op.h"

#include "base/nearest.h"
#include "ops/op.h"
#include "serialization/signature.h"
#include "tools/kernel_bench/conv.h"
#include "tools/kernel_bench/linear.h"
#include "tools/kernel_bench/quantize.h"

namespace pumice::engine::kernel_bench {
namespace {

template <const LinearScheme& kScheme>
constexpr Subject linear() {
  return {kScheme.op, [](const Case& c, uint64_t seed) { return make_linear(kScheme, c, seed); },
          [](const Case& c) { return refuse_linear(kScheme, c); },
          [](const Case& c) { return linear_shape(kScheme, c); }};
}

template <const ConvScheme& kScheme>
constexpr Subject conv() {
  return {.op = kScheme.op,
          .make = [](const Case& c, uint64_t seed) { return make_conv(kScheme, c, seed); },
          .refuse = [](const Case& c) { return refuse_conv(kScheme, c); },
          .conv = [](const Case& c) { return conv_facts(kScheme, c); }};
}

// ---- the operators
constexpr LinearScheme kLinear{"linear", Storage::f32, Scales::none},
    kQ4gsw{"linear_q4gsw", Storage::q4, Scales::group}, kQ8csw{"linear_q8csw", Storage::q8, Scales::row},
    kQ8gsw{"linear_q8gsw", Storage::q8, Scales::group},
    kDq8caQ4gsw{"linear_dq8ca_q4gsw", Storage::q4, Scales::group, Rows::chosen},
    kDq8caQ8gsw{"linear_dq8ca_q8gsw", Storage::q8, Scales::group, Rows::chosen},
    kDq8caQ8csw{"linear_dq8ca_q8csw", Storage::q8, Scales::row, Rows::chosen},
    kQ8taQ8csw{"linear_q8ta_q8csw", Storage::q8, Scales::row, Rows::numbers},
    kQ8ta{"q8ta_linear", Storage::q8, Scales::row, Rows::bytes},
    kQta8a{"linear_qta8a_qga4w_qta8o", Storage::q4, Scales::group, Rows::given};
constexpr ConvScheme kConv{"conv2d", false}, kConvQ8{"conv2d_q8csw", true}, kConvQ8ta{"conv2d_q8ta_q8csw", true, true},
    kQ8taConv{"q8ta_conv2d", true, true, true};
constexpr Subject kSubjects[] = {
    linear<kLinear>(),     linear<kQ4gsw>(),      linear<kQ8csw>(),
    linear<kQ8gsw>(),      linear<kDq8caQ4gsw>(), linear<kDq8caQ8gsw>(),
    linear<kDq8caQ8csw>(), linear<kQ8taQ8csw>(),  linear<kQ8ta>(),
    linear<kQta8a>(),      conv<kConv>(),         conv<kConvQ8>(),
    conv<kConvQ8ta>(),     conv<kQ8taConv>(),     {"quantize", make_quantize, refuse_quantize}};

Parameters parameters(std::string_view op, Signature& signature) {
  for (const Op& each : op_table()) {
    if (each.signature.name == op) return parse(signature = each.signature);
  }
  fail(Code::Internal, Stage::api, "case", "the operator table has no %s", printable(op).c_str());
}

const Given* find(const std::vector<Given>& given, std::string_view name) {
  for (const Given& each : given) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace

std::span<const Subject> subjects() {
  return kSubjects;
}

void must_be_known(std::string_view op) {
  subject(op);
}

const Subject& subject(std::string_view op) {
  std::vector<std::string_view> known;
  for (const Subject& each : kSubjects) {
    if (each.op == op) return each;
    known.push_back(each.op);
  }
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::api, "op", "no case for an operator '%s': did you mean '%s'? There are %s",
       printable(op).c_str(), std::string(nearest(op, known)).c_str(), list.c_str());
}

Bytes make_file(const Problem& problem, std::string_view op) {
  const Case& c = problem.shape();
  Signature signature;
  const Parameters parameters = kernel_bench::parameters(c.op, signature);
  const std::vector<Given> given = problem.given();
  Draft draft;
  draft.program.producer = "pumice kernel bench";
  draft.op_names = {{std::string(op), signature.version}};
  Method& method = draft.program.methods.emplace_back();
  method.name = "forward";
  method.symbols = {{"m", 1, c.m, c.m}};
  method.exprs = {{ExprOp::symbol, 0, 0}};
  const auto dims = [](const Shape& shape, bool rows) {
    std::vector<SymInt> result;
    for (const int64_t size : shape) result.push_back({false, size});
    if (rows) result[0] = {true, 0};
    return result;
  };
  OpCall call{.op = 0, .args = {}, .outputs = {}, .source = "case"};
  for (const Param& param : parameters.params) {
    const Given* value = find(given, param.name);
    if (value == nullptr) {
      if (!param.optional)
        fail(Code::Internal, Stage::api, "case", "nothing is given for '%s' of %s", std::string(param.name).c_str(),
             c.op.c_str());
      call.args.emplace_back();
    } else if (value->role == Given::Role::integer) {
      call.args.push_back({ArgKind::integer, value->number, 0, {}});
    } else if (value->role == Given::Role::boolean) {
      call.args.push_back({ArgKind::boolean, value->number, 0, {}});
    } else if (value->role == Given::Role::integers) {
      call.args.push_back({ArgKind::ints, 0, 0, value->numbers});
    } else if (value->role == Given::Role::real) {
      call.args.push_back({ArgKind::real, 0, value->real, {}});
    } else {
      const bool is_input = value->role == Given::Role::input;
      const StorageClass storage = is_input && value->name == "x" && c.in_textures() ? StorageClass::texture3d
                                   : !is_input && value->name == "weight" && c.weight_in_texture()
                                       ? StorageClass::texture2d
                                       : StorageClass::buffer;
      const int32_t ref = is_input ? -1 : static_cast<int32_t>(add_constant(draft, value->name, value->data.bytes));
      const auto id = static_cast<uint32_t>(method.values.size());
      method.values.push_back({is_input ? ValueKind::input : ValueKind::constant, value->data.dtype,
                               dims(value->data.shape, is_input), ref, value->name, storage});
      if (is_input) method.inputs.push_back(id);
      call.args.push_back({ArgKind::value, id, 0, {}});
    }
  }
  const auto out = static_cast<uint32_t>(method.values.size());
  method.values.push_back({ValueKind::output, problem.out_dtype(), dims(problem.out_shape(), true), -1, "out",
                           c.in_textures() ? StorageClass::texture3d : StorageClass::buffer});
  method.outputs = call.outputs = {out};
  method.ops.push_back(std::move(call));
  return write_file(draft);
}

}  // namespace pumice::engine::kernel_bench
