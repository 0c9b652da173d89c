// SPDX-License-Identifier: Apache-2.0
// What ExecuTorch costs: Method::execute of a fully delegated program against Pumice's own session with the same model,
// as `pumice-rt bench` times it. Inputs are ones. Neighbouring runs are compared, each first every other time, because
// a machine's speed drifts; and both are loaded anew kRounds times, each first every other time, because where memory
// lies can cost a CPU driver 3 %, and what is loaded second lies worse.
//   delegate_bench MODEL.pte MODEL.pumice [SHAPE]... [--runs N]    SHAPE: of an input, "1x128"; default: the example's
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/executor/program.h>
#include <pumice/executorch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <pumice/pumice.hpp>
#include <sstream>

namespace {

using executorch::aten::ScalarType;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Method;
using executorch::runtime::Program;
using executorch::runtime::Span;

constexpr int kWarm = 5, kRounds = 6;

void must(const char* what, Error error) {
  if (error == Error::Ok) return;
  std::fprintf(stderr, "%s: error 0x%x\n", what, static_cast<unsigned>(error));
  std::exit(1);
}

template <class Body>
double microseconds(const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Input {
  std::vector<int64_t> dims;
  std::vector<uint8_t> data;
  pumice_tensor tensor;
  executorch::extension::TensorPtr et;
};

// The element 1 of a dtype of pumice.h, and ExecuTorch's name for it.
std::pair<std::vector<uint8_t>, ScalarType> one(pumice_dtype dtype) {
  switch (dtype) {
    case PUMICE_F32:
      return {{0, 0, 0x80, 0x3f}, ScalarType::Float};
    case PUMICE_F16:
      return {{0, 0x3c}, ScalarType::Half};
    case PUMICE_I32:
      return {{1, 0, 0, 0}, ScalarType::Int};
    case PUMICE_I64:
      return {{1, 0, 0, 0, 0, 0, 0, 0}, ScalarType::Long};
    case PUMICE_BOOL:
      return {{1}, ScalarType::Bool};
    case PUMICE_U8:
      return {{1}, ScalarType::Byte};
    default:
      return {{1}, ScalarType::Char};
  }
}

void fill(Input& input, const pumice_tensor_info& info, const char* shape) {
  input.dims.assign(info.min, info.min + info.rank);
  if (shape != nullptr) {
    std::istringstream words(shape);
    input.dims.clear();
    for (std::string word; std::getline(words, word, 'x');) input.dims.push_back(std::stoll(word));
  }
  const auto [element, dtype] = one(info.dtype);
  size_t count = 1;
  for (const int64_t size : input.dims) count *= static_cast<size_t>(size);
  for (size_t i = 0; i < count; ++i) input.data.insert(input.data.end(), element.begin(), element.end());
  input.tensor = pumice::view(info.dtype, input.dims, input.data.data(), input.data.size());
  input.et = executorch::extension::make_tensor_ptr({input.dims.begin(), input.dims.end()}, input.data, dtype);
}

struct Times {
  std::vector<double> delegate, alone, more;  // us; more: delegate - alone of neighbours
};

// Adds `pairs` of runs; the session is opened before the method is loaded, or after it.
void round(Times& times, const char* pte, const pumice::Model& model, std::vector<Input>& inputs, bool session_first,
           int pairs) {
  std::optional<pumice::Session> session;
  if (session_first) session.emplace(model);
  auto loader = executorch::extension::FileDataLoader::from(pte);
  must(pte, loader.error());
  const auto program = Program::load(&*loader);
  must("Program::load", program.error());
  const auto meta = program->method_meta("forward");
  must("method_meta", meta.error());
  std::vector<std::vector<uint8_t>> memory;
  std::vector<Span<uint8_t>> spans;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i)
    memory.emplace_back(static_cast<size_t>(*meta->memory_planned_buffer_size(i)));
  for (auto& bytes : memory) spans.emplace_back(bytes.data(), bytes.size());
  executorch::runtime::HierarchicalAllocator planned({spans.data(), spans.size()});
  executorch::extension::MallocMemoryAllocator own, temporary;
  executorch::runtime::MemoryManager manager(&own, &planned, &temporary);
  auto method = program->load_method("forward", &manager);
  must("load_method", method.error());
  std::vector<pumice_tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    must("set_input", method->set_input(EValue(*inputs[i].et), i));
    tensors.push_back(inputs[i].tensor);
  }
  if (!session_first) session.emplace(model);

  const auto execute = [&] { must("execute", method->execute()); };
  const auto run = [&] { session->run(tensors); };
  for (int i = 0; i < kWarm; ++i) execute(), run();
  for (int i = 0; i < pairs; ++i) {
    const bool alone_first = i % 2 != 0;
    const double before = alone_first ? microseconds(run) : 0;
    times.delegate.push_back(microseconds(execute));
    times.alone.push_back(alone_first ? before : microseconds(run));
    times.more.push_back(times.delegate.back() - times.alone.back());
  }
}

int bench(const char* pte, const char* file, const std::vector<const char*>& shapes, int runs) {
  const pumice::Model model = pumice::Model::load_file(file);
  const auto infos = model.inputs();
  std::vector<Input> inputs(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) fill(inputs[i], infos[i], i < shapes.size() ? shapes[i] : nullptr);
  Times times;
  for (int i = 0; i < kRounds; ++i) round(times, pte, model, inputs, i % 2 != 0, (runs + kRounds - 1) / kRounds);
  const double alone = median(times.alone), more = median(times.more);
  std::printf("Method::execute %.1f us, session %.1f us: %+.1f us, %+.2f %% (medians of %zu pairs)\n",
              median(times.delegate), alone, more, 100 * more / alone, times.more.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<const char*> words;
  int runs = 500;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--runs" && i + 1 < argc) {
      runs = std::atoi(argv[++i]);
    } else {
      words.push_back(argv[i]);
    }
  }
  if (words.size() < 2 || pumice_executorch_register() != 0) {
    std::fprintf(stderr, "usage: delegate_bench MODEL.pte MODEL.pumice [SHAPE]... [--runs N]\n");
    return 2;
  }
  try {
    return bench(words[0], words[1], {words.begin() + 2, words.end()}, runs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
