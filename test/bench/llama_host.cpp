// SPDX-License-Identifier: Apache-2.0
// Tokens per second of the .pte files that `llama_bench.py --keep FOLDER` leaves, without Python and torch: for
// machines that have neither. A prompt, then single tokens, in turns; the files differ in their backend.
//   llama_host VOCABULARY PROMPT TOKENS RUNS FILE.pte...
// Returns 1 where last logits differ by more than quantized activations explain (llama_bench.py).
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <pumice/executorch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using executorch::extension::make_tensor_ptr;
using executorch::extension::Module;
using executorch::runtime::EValue;
using Clock = std::chrono::steady_clock;

struct Rates {
  double prompt, single;  // tokens per second
};

struct Model {
  std::string path;
  std::unique_ptr<Module> module;
  std::vector<Rates> rates;
  std::vector<float> logits;  // of the last token
};

void call(Model& model, std::vector<int64_t> tokens, int64_t position) {
  const auto count = static_cast<executorch::aten::SizesType>(tokens.size());
  const auto ids = make_tensor_ptr({1, count}, std::move(tokens));
  const auto at = make_tensor_ptr({1}, std::vector<int64_t>{position});
  const auto outputs = model.module->forward(std::vector<EValue>{EValue(ids), EValue(at)});
  if (!outputs.ok()) {
    std::fprintf(stderr, "%s: error 0x%x\n", model.path.c_str(), static_cast<unsigned>(outputs.error()));
    std::exit(1);
  }
  const auto& result = (*outputs)[0].toTensor();
  const float* data = result.const_data_ptr<float>();
  const auto size = static_cast<size_t>(result.size(result.dim() - 1));
  model.logits.assign(data + result.numel() - size, data + result.numel());
}

Rates run(Model& model, int64_t vocabulary, int64_t prompt, int64_t tokens) {
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < prompt; ++i) ids.push_back(i % vocabulary);
  const auto begin = Clock::now();
  call(model, ids, 0);
  const auto middle = Clock::now();
  for (int64_t i = prompt; i < prompt + tokens; ++i) call(model, {i % vocabulary}, i);
  return {static_cast<double>(prompt) / seconds(middle - begin),
          static_cast<double>(tokens) / seconds(Clock::now() - middle)};
}

double median(std::vector<Rates> rates, double Rates::* of) {
  std::sort(rates.begin(), rates.end(), [&](const Rates& a, const Rates& b) { return a.*of < b.*of; });
  return rates[rates.size() / 2].*of;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int64_t> numbers;
  for (int i = 1; i < std::min(argc, 5); ++i) numbers.push_back(std::atoll(argv[i]));
  if (argc < 6 ||
      std::any_of(
          numbers.begin(), numbers.end(), [](int64_t n) { return n < 1; }) ||
      pumice_executorch_register() != 0) {
    std::fprintf(stderr, "usage: llama_host VOCABULARY PROMPT TOKENS RUNS FILE.pte..., numbers of 1 or more\n");
    return 2;
  }
  const int64_t vocabulary = numbers[0], prompt = numbers[1], tokens = numbers[2];
  std::vector<Model> models;
  for (int i = 5; i < argc; ++i) models.push_back({argv[i], std::make_unique<Module>(argv[i]), {}, {}});
  for (Model& model : models) run(model, vocabulary, prompt, tokens);  // and warm
  for (int64_t turn = 0; turn < numbers[3]; ++turn) {
    for (Model& model : models) model.rates.push_back(run(model, vocabulary, prompt, tokens));
    std::reverse(models.begin(), models.end());
  }
  std::sort(models.begin(), models.end(), [](const Model& a, const Model& b) { return a.path < b.path; });
  bool equal = true;
  for (const Model& model : models) {
    float most = 0, largest = 0;
    for (size_t i = 0; i < model.logits.size(); ++i) {
      most = std::max(most, std::fabs(model.logits[i] - models[0].logits[i]));
      largest = std::max(largest, std::fabs(models[0].logits[i]));
    }
    std::printf(
        "%s: prompt of %lld %.1f tokens/s, %lld single tokens %.1f tokens/s; logits off the first file's by %.1e\n",
        model.path.c_str(), static_cast<long long>(prompt), median(model.rates, &Rates::prompt),
        static_cast<long long>(tokens), median(model.rates, &Rates::single), most / largest);
    equal = equal && most <= 5e-2f * largest;
  }
  return equal ? 0 : 1;
}
