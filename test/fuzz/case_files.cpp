// SPDX-License-Identifier: Apache-2.0
// Writes small files, one for each case of the kernel tool: from them support/reach_seeds.py chooses seeds.
//
//   case_files FOLDER
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/table.h"

using namespace pumice::engine::kernel_bench;  // NOLINT: a program of one file
using pumice::engine::Bytes;

namespace {

constexpr size_t kMostBytes = 8000;

// The table's products and convolutions are large; these have the same tails.
std::vector<std::string_view> small(const BenchOp& op) {
  if (op.is_linear()) {
    return {"m=1|5|40,n=37,k=64,g=32,bias=0|1,dtype=f32|f16", "m=5,n=33,k=36,g=0,act=relu|silu",
            "m=3,n=24,k=32,g=32,zero=random,scale=f16", "m=3,n=24,k=64,g=32,storage=texture3d|texture2d|textures"};
  }
  if (op.is_conv()) {
    return {"b=1|2,c=5,o=6,h=7,w=8,k=3,bias=1,dtype=f32|f16", "b=1,c=16,o=20,h=5,w=5,k=1|3,s=2,act=relu6",
            "b=1,c=8,o=8,g=8,h=9,w=9,k=3,d=2", "b=1,c=6,o=4,g=2,h=5,w=6,k=3,zero=random"};
  }
  return {};
}

std::vector<Case> cases(const BenchOp& op) {
  const Case base = usual(op.op);
  if (op.is_call()) return choose({.ops = {std::string(op.op)}}, Purpose::test, true);
  std::vector<Case> all;
  for (const std::string_view text : small(op)) {
    const std::vector<Case> some = parse(text, base);
    std::copy_if(some.begin(), some.end(), std::back_inserter(all),
                 [&](const Case& c) { return op.refuse(c).empty(); });
  }
  return all;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", words[0]);
    return 2;
  }
  size_t files = 0;
  for (const BenchOp& op : bench_ops()) {
    for (const Case& each : cases(op)) {
      const Bytes file = make_file(*op.make(each, 1), op.op);
      if (file.size() > kMostBytes) continue;
      const std::string path = std::string(words[1]) + "/" + std::string(op.op) + "-" + std::to_string(files++);
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    }
  }
  std::printf("%zu files\n", files);
  return 0;
}
