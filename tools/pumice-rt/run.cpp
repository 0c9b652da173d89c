// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <set>

#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

constexpr size_t kMaxBytes = 200;

bool is_plain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Names that Windows reserves for devices, with any suffix.
bool is_device(const std::string& name) {
  const std::string base = lower(name.substr(0, name.find('.')));
  if (base == "con" || base == "prn" || base == "aux" || base == "nul") return true;
  return base.size() == 4 && (base.starts_with("com") || base.starts_with("lpt")) && base[3] >= '0' && base[3] <= '9';
}

// A file name for output `index`: valid on every system, without a path, and not in `taken`. The rules are those of
// file_names() in python/pumice/cli/run.py.
std::string file_name(const std::string& name, uint32_t index, std::set<std::string>& taken) {
  const bool escape_first = name.starts_with('.') || name.starts_with('-') || is_device(name);
  std::string text;
  for (size_t at = 0; at < name.size(); ++at) {
    const auto c = static_cast<unsigned char>(name[at]);
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", c);
    text += is_plain(c) && (at > 0 || !escape_first) ? std::string(1, name[at]) : escaped;
  }
  if (text.empty() || text.size() > kMaxBytes || taken.contains(lower(text)))
    text = text.substr(0, kMaxBytes) + "~" + std::to_string(index);
  taken.insert(lower(text));
  return text + ".npy";
}

}  // namespace

int run(const Arguments& arguments) {
  std::vector<Array> inputs;
  for (const std::string& path : arguments.inputs) inputs.push_back(read_npy(path));
  const pumice::Model model = pumice::Model::load_file(arguments.model, arguments.options);
  pumice::Session session(model);
  const Interruptible interruptible(session);
  session.run(views(inputs));
  if (!arguments.outputs.empty()) std::filesystem::create_directories(arguments.outputs);
  const auto infos = model.outputs();
  std::set<std::string> taken;
  for (uint32_t i = 0; i < infos.size(); ++i) {
    const pumice_tensor tensor = session.output(i);
    Array array;
    array.dtype = tensor.dtype;
    array.dims.assign(tensor.dims, tensor.dims + tensor.rank);
    array.data.resize(tensor.bytes);
    session.read(i, array.data.data(), array.data.size());
    std::printf("%s: %s [", infos[i].name, dtype_name(array.dtype));
    for (size_t d = 0; d < array.dims.size(); ++d)
      std::printf("%s%lld", d ? ", " : "", static_cast<long long>(array.dims[d]));
    std::printf("]");
    if (!arguments.outputs.empty()) {
      const std::string path = (std::filesystem::path(arguments.outputs) / file_name(infos[i].name, i, taken)).string();
      write_npy(path, array);
      std::printf(" -> %s", path.c_str());
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace tool
