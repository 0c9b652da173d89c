// SPDX-License-Identifier: Apache-2.0
// A C++ host for test/delegate/*.py.
//   driver run FILE.pte RESULT [DATA SHAPE]...  calls the method with as many inputs as it takes, then with the next
//                                               ones; bytes of output i of call c go to RESULT.c.i; prints its sizes
//   driver trace FILE.pte ETDUMP [OPTION]...    loads with the options, runs on ones, writes an ETDump
//   driver options FILE.pte STEP...             set:OPTION, get:KEY, load:[OPTION,...]; prints ExecuTorch's codes
//   driver memory FILE.pte OTHER.pte            "file N read N before N after N peak N", in bytes, of loading FILE
//                                               while OTHER is loaded
//   driver threads BLOB.pumice CALLS            one delegate of y = 2 x, x of 64 floats, called from eight threads;
//                                               prints how many answers were right
// OPTION: KEY=text:WORD, KEY=true, KEY=false or KEY=NUMBER.
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>
#include <pumice/executorch.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using executorch::extension::FileDataLoader;
using executorch::extension::Module;
using executorch::runtime::BackendOption;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using Words = std::vector<std::string>;

constexpr const char* kBackend = "PumiceBackend";

[[noreturn]] void stop(const std::string& what, Error error) {
  std::fprintf(stderr, "%s: error 0x%x\n", what.c_str(), static_cast<unsigned>(error));
  std::exit(1);
}

void must(const char* what, Error error) {
  if (error != Error::Ok) stop(what, error);
}

Words split(const std::string& text, char at) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, at);) words.push_back(word);
  return words;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

BackendOption option(const std::string& text) {
  const size_t at = text.find('=');
  const std::string value = text.substr(at + 1);
  BackendOption option;
  text.copy(option.key, std::min(at, sizeof(option.key) - 1));
  if (value.starts_with("text:")) {
    std::array<char, executorch::runtime::kMaxOptionValueLength> characters{};
    value.substr(5).copy(characters.data(), characters.size() - 1);
    option.value = characters;
  } else if (value == "true" || value == "false") {
    option.value = value == "true";
  } else {
    option.value = std::stoi(value);
  }
  return option;
}

Error load(Module& module, const Words& texts) {
  std::vector<BackendOption> options;
  for (const std::string& text : texts) options.push_back(option(text));
  executorch::runtime::LoadBackendOptionsMap map;
  if (const Error error = map.set_options(kBackend, {options.data(), options.size()}); error != Error::Ok) return error;
  if (const Error error = module.load(map); error != Error::Ok) return error;
  return module.load_forward();
}

std::vector<executorch::aten::SizesType> shape_of(const std::string& text) {
  std::vector<executorch::aten::SizesType> sizes;
  for (const std::string& word : split(text, 'x')) sizes.push_back(std::stoi(word));
  return sizes;
}

int run(const Words& words) {
  Module module(words[0]);
  must("load", module.load_forward());
  const auto meta = module.method_meta("forward");
  const size_t stride = 2 * meta->num_inputs();
  for (size_t call = 0; 2 + (call + 1) * stride <= words.size(); ++call) {
    std::vector<executorch::extension::TensorPtr> inputs;
    std::vector<EValue> values;
    for (size_t i = 0; i < meta->num_inputs(); ++i) {
      const size_t at = 2 + call * stride + 2 * i;
      const std::string raw = bytes_of(words[at]);
      inputs.push_back(executorch::extension::make_tensor_ptr(shape_of(words[at + 1]),
                                                              std::vector<uint8_t>(raw.begin(), raw.end()),
                                                              meta->input_tensor_meta(i)->scalar_type()));
      values.emplace_back(inputs.back());
    }
    const auto outputs = module.forward(values);
    must("forward", outputs.error());
    for (size_t i = 0; i < outputs->size(); ++i) {
      const auto& tensor = (*outputs)[i].toTensor();
      for (const auto size : tensor.sizes()) std::printf("%d ", static_cast<int>(size));
      std::printf("\n");
      std::ofstream file(words[1] + "." + std::to_string(call) + "." + std::to_string(i), std::ios::binary);
      file.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    }
  }
  return 0;
}

int trace(const Words& words) {
  auto owned = std::make_unique<executorch::etdump::ETDumpGen>();
  executorch::etdump::ETDumpGen& tracer = *owned;
  Module module(words[0], Module::LoadMode::File, std::move(owned));
  must("load", load(module, {words.begin() + 2, words.end()}));
  const auto meta = module.method_meta("forward");
  std::vector<EValue> values;
  std::vector<executorch::extension::TensorPtr> inputs;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto sizes = meta->input_tensor_meta(i)->sizes();
    inputs.push_back(executorch::extension::ones({sizes.begin(), sizes.end()}));
    values.emplace_back(inputs.back());
  }
  must("forward", module.forward(values).error());
  const auto dump = tracer.get_etdump_data();
  std::ofstream(words[1], std::ios::binary)
      .write(static_cast<const char*>(dump.buf), static_cast<std::streamsize>(dump.size));
  std::free(dump.buf);
  return 0;
}

std::string text(const executorch::runtime::OptionValue& value) {
  if (const bool* on = std::get_if<bool>(&value)) return *on ? "true" : "false";
  if (const int* number = std::get_if<int>(&value)) return std::to_string(*number);
  return std::string("text:") + std::get<2>(value).data();
}

int options(const Words& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t at = words[i].find(':');
    const std::string step = words[i].substr(0, at), rest = words[i].substr(at + 1);
    Error error = Error::Ok;
    std::string found;
    if (step == "load") {
      Module module(words[0]);
      error = load(module, split(rest, ','));
    } else {
      std::vector<BackendOption> list;
      for (const std::string& one : split(rest, ',')) list.push_back(option(step == "set" ? one : one + "=0"));
      error = (step == "set" ? executorch::runtime::set_option : executorch::runtime::get_option)(
          kBackend, {list.data(), list.size()});
      if (step == "get" && error == Error::Ok) found = " " + text(list[0].value);
    }
    std::printf("0x%x%s\n", static_cast<unsigned>(error), found.c_str());
  }
  return 0;
}

// Counts what is read of a file.
class Counted final : public executorch::runtime::DataLoader {
 public:
  explicit Counted(FileDataLoader&& file) : file_(std::move(file)) {}
  executorch::runtime::Result<executorch::runtime::FreeableBuffer> load(size_t offset, size_t size,
                                                                        const SegmentInfo& segment) const override {
    read_ += size;
    return file_.load(offset, size, segment);
  }
  Error load_into(size_t offset, size_t size, const SegmentInfo& segment, void* buffer) const override {
    read_ += size;
    return file_.load_into(offset, size, segment, buffer);
  }
  executorch::runtime::Result<size_t> size() const override { return file_.size(); }
  size_t read() const { return read_; }

 private:
  FileDataLoader file_;
  mutable std::atomic<size_t> read_{0};
};

// A line of /proc/self/status: "VmRSS" now, "VmHWM" at most.
size_t status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

int memory(const Words& words) {
  Module other(words[1]);  // opens the device: the driver's own memory does not count
  must("load", other.load_forward());
  auto file = FileDataLoader::from(words[0].c_str());
  must("open", file.error());
  auto owned = std::make_unique<Counted>(std::move(*file));
  const Counted& loader = *owned;
  Module module(std::move(owned));
  must("load", module.load());
  const size_t before = status("VmRSS");
  must("load_forward", module.load_forward());
  std::printf("file %zu read %zu before %zu after %zu peak %zu\n", *loader.size(), loader.read(), before,
              status("VmRSS"), status("VmHWM"));
  return 0;
}

// `calls` calls of a thread; every input differs from all others.
int right_answers(executorch::runtime::BackendInterface& backend, void* delegate, int thread, int calls) {
  int right = 0;
  for (int call = 0; call < calls; ++call) {
    const auto value = static_cast<float>(thread * calls + call);
    const auto x = executorch::extension::full({64}, value), y = executorch::extension::zeros({64});
    EValue values[] = {EValue(x), EValue(y)};
    EValue* args[] = {&values[0], &values[1]};
    executorch::runtime::BackendExecutionContext context;
    must("execute", backend.execute(context, delegate, {args, 2}));
    const float* data = y->const_data_ptr<float>();
    right += std::all_of(data, data + 64, [&](float got) { return got == 2 * value; });
  }
  return right;
}

int threads(const Words& words) {
  auto* backend = executorch::runtime::get_backend_class(kBackend);
  const std::string blob = bytes_of(words[0]);
  executorch::runtime::FreeableBuffer processed(blob.data(), blob.size(), nullptr);
  executorch::runtime::BackendInitContext context(nullptr);
  const auto delegate = backend->init(context, &processed, {});
  must("init", delegate.error());
  std::atomic<int> right{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&, t] { right += right_answers(*backend, *delegate, t, std::stoi(words[1])); });
  for (std::thread& thread : all) thread.join();
  backend->destroy(*delegate);
  std::printf("%d\n", right.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string command = argv[1];
  const Words words(argv + 2, argv + argc);
  must("register", static_cast<Error>(pumice_executorch_register()));
  if (command == "run") return run(words);
  if (command == "trace") return trace(words);
  if (command == "options") return options(words);
  if (command == "threads") return threads(words);
  return command == "memory" ? memory(words) : 2;
}
