// SPDX-License-Identifier: Apache-2.0
// pumice-rt generate: a language model's file (docs/llm.md) goes on with a text, token ids in and out.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "tools/pumice-rt/largest.h"
#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// The inputs of the method "sample".
struct Drawn {
  Drawn(std::span<const int64_t> text, int64_t text_size, const Sampling& sampling)
      : token(text.back()),
        position(static_cast<int64_t>(text.size()) - 1),
        before(static_cast<size_t>(text_size)),
        options(sampling.options()),
        counts(sampling.counts()),
        tensors{pumice::view<int64_t>({&token, 1}, {1, 1}), pumice::view<int64_t>({&position, 1}, {1}),
                pumice::view<int64_t>({&step, 1}, {1}),     pumice::view<int64_t>(before, {1, text_size}),
                pumice::view<float>(options, {1, 4}),       pumice::view<int32_t>(counts, {1, 4})} {
    std::copy_n(text.begin(), std::min(text.size(), before.size()), before.begin());
  }
  Drawn(const Drawn&) = delete;  // the tensors point into it

  int64_t token, position, step = 0;
  std::vector<int64_t> before;
  std::array<float, 4> options;
  std::array<int32_t, 4> counts;
  std::array<pumice_tensor, 6> tensors;
};

// The file's methods "prefill" (tokens [1, n], first [1]) and "decode" (tokens [1, 1], first [1]), logits [1, V].
class Model {
 public:
  explicit Model(const Arguments& arguments)
      : model_(pumice::Model::load_file(arguments.model, arguments.options)),
        session_(model_),
        interruptible_(session_) {
    const json facts = json::parse(model_.describe());
    device_ = facts.at("device").at("name");
    for (uint32_t m = 0; m < facts.at("methods").size(); ++m) {
      const json& method = facts.at("methods")[m];
      const std::string name = method.at("name");
      if (name == "sample" && method.at("inputs").size() == 6) {
        sample_ = m;
        text_size_ = method.at("inputs")[3].at("max")[1];
      }
      if (name != "prefill" && name != "decode") continue;
      if (method.at("inputs").size() != 2 || method.at("outputs").size() != 1 ||
          method.at("inputs")[0].at("max")[0] != 1)
        throw UsageError(arguments.model + ": '" + name + "' is not that of a language model with one sequence");
      (name == "prefill" ? prefill_ : decode_) = m;
      if (name == "prefill") most_ = method.at("inputs")[0].at("max")[1];
      vocabulary_ = method.at("outputs")[0].at("max")[1];
    }
    if (sample_ == kNone && !arguments.sampling.is_greedy())
      throw UsageError(arguments.model +
                       ": it was exported before tokens could be drawn on the device; export it again");
    if (prefill_ == kNone || decode_ == kNone)
      throw UsageError(arguments.model + ": no methods 'prefill' and 'decode'; was it made by pumice llm export?");
  }

  // Reads the tokens from position `first` on; returns the most probable next one.
  int64_t read(std::span<const int64_t> tokens, int64_t first) {
    int64_t next = 0;
    while (!tokens.empty()) {
      const size_t count = std::min<size_t>(tokens.size(), static_cast<size_t>(std::min(chunk_, most_)));
      const auto begin = Clock::now();
      next = run(prefill_, tokens.first(count), first);
      if (count == static_cast<size_t>(chunk_) && seconds(begin, Clock::now()) < kFast) chunk_ *= 4;
      tokens = tokens.subspan(count);
      first += static_cast<int64_t>(count);
    }
    return next;
  }
  // Up to `count` tokens after `text`, of which all but the last have been read: several in one submit, where the file
  // has a method for that.
  std::vector<int64_t> steps(std::span<const int64_t> text, int64_t count, const Sampling& sampling) {
    if (sample_ == kNone) return {run(decode_, text.last(1), static_cast<int64_t>(text.size()) - 1)};
    count = std::min(count, kSteps);
    const Drawn inputs(text, text_size_, sampling);
    std::vector<int64_t> generated =
        session_.call(inputs.tensors, sample_, static_cast<uint32_t>(count)).at(0).values<int64_t>();
    generated.resize(static_cast<size_t>(count));
    return generated;
  }
  // Of one more token.
  json profile(std::span<const int64_t> text, const Sampling& sampling) {
    if (sample_ != kNone) {
      const Drawn inputs(text, text_size_, sampling);
      return json::parse(session_.profile(inputs.tensors, sample_)).at("rows");
    }
    const auto position = static_cast<int64_t>(text.size()) - 1;
    const pumice_tensor inputs[] = {pumice::view<int64_t>(text.last(1), {1, 1}),
                                    pumice::view<int64_t>({&position, 1}, {1})};
    return json::parse(session_.profile(inputs, decode_)).at("rows");
  }
  // Of reading them all, from position 0.
  json profile_reading(std::span<const int64_t> tokens) {
    json rows = json::array();
    for (size_t first = 0; first < tokens.size(); first += static_cast<size_t>(most_)) {
      const auto chunk = tokens.subspan(first, std::min(tokens.size() - first, static_cast<size_t>(most_)));
      const int64_t shape[] = {1, static_cast<int64_t>(chunk.size())}, position = static_cast<int64_t>(first);
      const pumice_tensor inputs[] = {pumice::view<int64_t>(chunk, shape), pumice::view<int64_t>({&position, 1}, {1})};
      const json said = json::parse(session_.profile(inputs, prefill_));
      rows.insert(rows.end(), said.at("rows").begin(), said.at("rows").end());
    }
    return rows;
  }
  int64_t vocabulary() const { return vocabulary_; }
  const std::string& device() const { return device_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int64_t kSteps = 32;  // of one submit
  static constexpr double kFast = 0.1;   // seconds of a run of prefill after which four times as long ones do no harm

  int64_t run(uint32_t method, std::span<const int64_t> tokens, int64_t first) {
    const auto count = static_cast<int64_t>(tokens.size());
    const pumice_tensor inputs[] = {pumice::view<int64_t>(tokens, {1, count}), pumice::view<int64_t>({&first, 1}, {1})};
    logits_ = session_.call(inputs, method).at(0);
    return logits_.dtype == PUMICE_F16 ? largest(logits_.values<uint16_t>()) : largest(logits_.values<float>());
  }

  pumice::Model model_;
  pumice::Session session_;
  Interruptible interruptible_;
  pumice::Output logits_;
  std::string device_;
  uint32_t prefill_ = kNone, decode_ = kNone, sample_ = kNone;
  int64_t chunk_ = 512, most_ = 1;          // tokens of a run of prefill: now, and as the file allows
  int64_t vocabulary_ = 0, text_size_ = 0;  // text_size_: tokens that fit
};

std::vector<int64_t> prompt(const Arguments& arguments, int64_t vocabulary) {
  std::vector<int64_t> tokens = arguments.tokens;
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < arguments.prompt_length; ++i)
    tokens.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary)));
  if (tokens.empty()) throw UsageError("an empty prompt; give --tokens 1,2,3 or --prompt-length");
  return tokens;
}

}  // namespace

int generate(const Arguments& arguments) {
  if (arguments.count == 0) throw UsageError("--count 0: nothing to generate");
  arguments.sampling.check();
  Model model(arguments);
  std::vector<int64_t> text = prompt(arguments, model.vocabulary());
  const size_t length = text.size();
  const bool greedy = arguments.sampling.is_greedy();
  // The first token of a text that is drawn comes with the others, from the last one of the prompt.
  const std::span<const int64_t> read(text.data(), greedy ? length : length - 1);
  model.read(read, 0);  // twice: the first run of a shape records it and may compile kernels
  const auto begin = Clock::now();
  const int64_t next = model.read(read, 0);
  const auto prefilled = Clock::now();
  const double prefill = seconds(begin, prefilled), prefill_rate = static_cast<double>(read.size()) / prefill;
  if (greedy) text.push_back(next);
  const auto stops = [&](int64_t token) {
    return std::find(arguments.stops.begin(), arguments.stops.end(), token) != arguments.stops.end();
  };
  auto warm = prefilled;
  size_t before = 0;  // tokens that came while kernels may have been compiled
  while (text.size() == length || (text.size() - length < arguments.count && !stops(text.back()))) {
    const auto left = static_cast<int64_t>(arguments.count - (text.size() - length));
    for (const int64_t token : model.steps(text, left, arguments.sampling)) {
      text.push_back(token);
      if (stops(token)) break;
    }
    if (before == 0) {
      before = text.size() - length;
      warm = Clock::now();
    }
  }
  const std::vector<int64_t> generated(text.begin() + static_cast<ptrdiff_t>(length), text.end());
  const double rest = seconds(warm, Clock::now());
  // Of so few tokens that no second submit was needed, all: kernels may have been compiled meanwhile.
  const bool once = generated.size() <= before || before == 0;
  const double all = seconds(prefilled, warm);
  const size_t timed = once ? generated.size() - size_t{greedy} : generated.size() - before;
  const double rate = timed == 0 ? 0 : static_cast<double>(timed) / (once ? all : rest);
  if (arguments.json) {
    json facts{{"schema", 1},
               {"device", model.device()},
               {"prompt", length},
               {"tokens", generated},
               {"prompt_tokens_per_second", prefill_rate},
               {"tokens_per_second", rate}};
    if (arguments.profiled) {
      facts["rows"] = model.profile(text, arguments.sampling);
      facts["prompt_rows"] = model.profile_reading(std::span(text).first(read.size()));
    }
    std::printf("%s\n", facts.dump().c_str());
    return 0;
  }
  for (const int64_t token : generated) std::printf("%lld ", static_cast<long long>(token));
  std::printf("\n%s: prompt of %zu, %.1f tokens/s; %zu tokens, %.1f tokens/s\n", model.device().c_str(), length,
              prefill_rate, generated.size(), rate);
  if (arguments.profiled) print_profile(model.profile(text, arguments.sampling), arguments.by);
  return 0;
}

}  // namespace tool
