// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/products.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/log.h"
#include "base/nearest.h"
#include "base/text.h"
#include "graph/build.h"
#include "graph/constant_facts.h"
#include "graph/infer.h"
#include "ops/linear/tuned.h"
#include "runtime/file_bytes.h"
#include "serialization/read.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::kernel_bench {
namespace {

using Asked = std::map<std::pair<std::string, int64_t>, uint64_t>;  // how often, by product and rows

// Notes what selection asks for, and leaves it to the tables.
struct Listening : TunedKernels {
  using TunedKernels::TunedKernels;
  mutable Asked asked;
  std::string_view find(std::string_view product, int64_t rows) const override {
    if (!product.empty()) ++asked[{std::string(product), rows}];
    return "";
  }
};

// What the options say of the size of that name; 0: nothing.
int64_t given_size(const Options& options, const std::string& name) {
  int64_t size = 0;
  for (const std::string& text : options.sizes) {
    if (!text.starts_with(name + "=")) continue;
    if (!read_number(std::string_view(text).substr(name.size() + 1), size) || size < 1)
      fail(Code::InvalidArgument, Stage::api, "size", "'%s': NAME=N is wanted, such as seq=128",
           printable(text).c_str());
  }
  return size;
}

void check_names(const Options& options, const Program& program) {
  std::vector<std::string_view> known;
  for (const Method& method : program.methods)
    for (const Symbol& symbol : method.symbols) known.push_back(symbol.name);
  for (const std::string& text : options.sizes) {
    if (known.empty())
      fail(Code::InvalidArgument, Stage::api, "size", "'%s': no size of the file has a name", printable(text).c_str());
    must_be_one_of("size", std::string_view(text).substr(0, text.find('=')), known);
  }
}

// The values of a method's symbols at which its products are looked for.
std::vector<std::vector<int64_t>> sizes_of(const Method& method, const Options& options) {
  std::vector<std::vector<int64_t>> all;
  for (const int64_t size : {0, 1, 4, 16, 64, 256, 1024}) {  // 0: as exported
    std::vector<int64_t> values;
    for (const Symbol& symbol : method.symbols) {
      const int64_t said = given_size(options, symbol.name);
      if (said != 0 && (said < symbol.min || said > symbol.max))
        fail(Code::InvalidArgument, Stage::api, "size", "%s=%lld: the file allows %lld to %lld",
             printable(symbol.name).c_str(), static_cast<long long>(said), static_cast<long long>(symbol.min),
             static_cast<long long>(symbol.max));
      values.push_back(std::clamp(said != 0 ? said : size == 0 ? symbol.hint : size, symbol.min, symbol.max));
    }
    if (std::find(all.begin(), all.end(), values) == all.end()) all.push_back(std::move(values));
  }
  return all;
}

}  // namespace

double Product::work() const {
  const double weight_bits = c.op.find("q4") != std::string::npos || c.op.find("4w") != std::string::npos ? 4
                             : c.op == "linear" ? (c.dtype == DType::f16 ? 16 : 32)
                                                : 8;
  // A multiplication takes about as long as a hundredth of a byte.
  return static_cast<double>(asked) * static_cast<double>(c.n) * static_cast<double>(c.k) *
         (weight_bits / 8 + static_cast<double>(c.m) / 100);
}

std::vector<Product> heaviest_first(std::vector<Product> products) {
  std::ranges::sort(products, std::greater(), &Product::work);
  return products;
}

std::vector<Product> products_of(const Device& device, const Options& options) {
  const FileBytes file(options.model);
  const Program program = read(file.bytes(), signatures(), {}, false);  // no number of a constant is used
  check_names(options, program);
  const auto heard = std::make_shared<Listening>(linear_kernels_version());
  Features features = device.features();
  features.tuned = heard;
  for (uint32_t m = 0; m < program.methods.size(); ++m) {
    const auto graph = build(program, m, features, builder(), std::make_shared<ConstantFacts>());
    for (const std::vector<int64_t>& sizes : sizes_of(program.methods[m], options)) {
      try {
        infer(*graph, sizes);
      } catch (const Error& error) {  // not every mix of sizes is one of the model
        log(LogLevel::debug, "tune: %s: %s", error.path().c_str(), error.what());
      }
    }
  }
  file.check_unchanged();
  std::vector<Product> products;
  for (const auto& [what, times] : heard->asked)
    products.push_back({parse(what.first + ",m=" + std::to_string(what.second)).at(0), times});
  return heaviest_first(products);
}

}  // namespace pumice::engine::kernel_bench
