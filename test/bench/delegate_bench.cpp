// SPDX-License-Identifier: Apache-2.0
// What ExecuTorch costs: Method::execute of a fully delegated program against Pumice's own session with the same model,
// in turns, as `pumice-rt bench` times it. Inputs are ones.
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
#include <pumice/pumice.hpp>
#include <sstream>

namespace {

using executorch::aten::ScalarType;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Method;
using executorch::runtime::Program;
using executorch::runtime::Span;

constexpr int kTurn = 10;  // runs of the one before the other's turn

void must(const char* what, Error error) {
  if (error == Error::Ok) return;
  std::fprintf(stderr, "%s: error 0x%x\n", what, static_cast<unsigned>(error));
  std::exit(1);
}

template <class Body>
void time(std::vector<double>& times, const Body& body) {
  for (int i = 0; i < kTurn; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
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

int bench(const char* pte, const char* file, const std::vector<const char*>& shapes, int runs) {
  const pumice::Model model = pumice::Model::load_file(file);
  pumice::Session session(model);
  const auto infos = model.inputs();
  std::vector<Input> inputs(infos.size());
  std::vector<pumice_tensor> tensors;
  for (size_t i = 0; i < infos.size(); ++i) {
    fill(inputs[i], infos[i], i < shapes.size() ? shapes[i] : nullptr);
    tensors.push_back(inputs[i].tensor);
  }

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
  for (size_t i = 0; i < inputs.size(); ++i) must("set_input", method->set_input(EValue(*inputs[i].et), i));

  const auto execute = [&] { must("execute", method->execute()); };
  const auto run = [&] { session.run(tensors); };
  std::vector<double> warm, delegate, own_times;
  time(warm, execute);
  time(warm, run);
  while (static_cast<int>(delegate.size()) < runs) {
    time(delegate, execute);
    time(own_times, run);
  }
  const double a = median(delegate), b = median(own_times);
  std::printf("Method::execute %.1f us, session %.1f us: %+.1f us, %+.2f %% (medians of %zu)\n", a, b, a - b,
              100 * (a - b) / b, delegate.size());
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
