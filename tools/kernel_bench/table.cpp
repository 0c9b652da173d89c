// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/table.h"

#include <algorithm>
#include <set>

#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/call.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::kernel_bench {
namespace {

// Cases of tests. Tiles are 16 rows (n) x 64 columns (k). Each is combined with the m of kRows, or of kAllRows for
// --full.
constexpr const char* kRows = "m=1|2|3|5|8|17|33|129";
constexpr const char* kAllRows = "m=1|2|3|4|5|7|8|16|17|33|64|127|128|512";
constexpr const char* kShapes[] = {
    "n=16,k=64,g=32",
    "n=37,k=96,g=32,bias=1,zero=random",
    "n=131,k=384,g=128,bias=1",
    "n=33,k=130,g=0,zero=zero",
    "n=1,k=61,g=0,bias=1,act=gelu",
    "n=257,k=24,g=12,zero=random,act=relu",
    "n=128,k=192,g=64,scale=f16,bias=1,act=silu",
};
// Primes, odd sizes, multiples of the tiles and one more or less; m > k; a large k; a real vocabulary.
constexpr const char* kMoreShapes[] = {
    "n=4097,k=384,g=32,bias=1",
    "n=1031,k=1021,g=0,zero=random",
    "n=127,k=129,g=0,act=relu6",
    "n=128,k=128,g=16,zero=random,bias=1",
    "n=129,k=127,g=0,act=gelu_tanh,bias=1",
    "n=63,k=320,g=64,scale=f16,act=hardswish",
    "n=65,k=256,g=128,zero=random",
    "n=64,k=16384,g=128,bias=1",
    "n=17,k=16,g=16,act=hardsigmoid",
    "n=2048,k=64,g=64,zero=zero,act=silu",
};
constexpr const char* kVocabulary = "m=1|2|8|33,n=151936,k=64,g=32";  // outputs of more rows only cost time
constexpr const char* kValues =
    "m=1|9,n=35,k=128,g=32,zero=none|random,values=low|high|equal|huge|wide|alternate|special|one|group";
// Sums as long as those of the models that are timed.
constexpr const char* kLongSums = "m=33,n=37,k=14336|16384,g=128,bias=1,zero=none|random,values=random|one|group";
constexpr const char* kUnsigned[] = {"m=5|33,n=37,k=96,bias=1,in=u8,out=i8|u8", "m=5|33,n=37,k=96,bias=1,out=u8"};
constexpr const char* kTextures = "m=1|33,n=37,k=96,g=32,bias=1,zero=random,storage=texture3d|texture2d|textures";

// Cases of benchmarks.
constexpr const char* kCpuBench[] = {"m=1|128,n=2048,k=2048,g=32,dtype=f32"};
constexpr const char* kGpuBench[] = {
    "m=1|2|8|16|128|512|2048,n=14336,k=4096,g=32,dtype=f16",
    "m=1|8|16|128|512,n=4096,k=14336,g=32,dtype=f16",
    "m=1|16|128|512,n=4096,k=4096,g=32,dtype=f16",
    "m=1|16|128|512,n=512,k=2048,g=32,dtype=f16",
    "m=1,n=151936,k=4096,g=32,dtype=f16",
    "m=1,n=128256,k=2048,g=32,dtype=f16",
};

// Both types, few weights: which pipelines are made depends on little else.
constexpr const char* kCompile[] = {"m=1|16|128|512,n=1536,k=1024,g=32,dtype=f32|f16",
                                    "m=1|128,n=512,k=384,g=32,zero=random,bias=1,dtype=f32|f16"};

// The grids over which the pick is compared with every kernel. `fitted`: from shapes of these models its thresholds
// were set.
constexpr std::string_view kGrids[] = {"fitted", "unseen"};
constexpr const char* kCpuGrid[] = {"m=1|8|32|128,n=384,k=384,g=32", "m=1|8|32|128,n=1536,k=384,g=32",
                                    "m=1|8|32|128,n=1024,k=1024,g=32"};
constexpr const char* kGpuGrid[] = {
    "m=1|2|4|8|16|32|64|128|256|512,n=14336,k=4096,g=32,dtype=f16",
    "m=1|2|4|8|16|32|64|128|256|512,n=4096,k=14336,g=32,dtype=f16",
    "m=1|2|4|8|16|32|64|128|256|512,n=4096,k=4096,g=32,dtype=f16",
    "m=1|2|4|8|16|32|64|128|256|512,n=2048,k=2048,g=32,dtype=f16",
    "m=1|2|4|8|16|32|64|128|256|512,n=512,k=2048,g=32,dtype=f16",
    "m=1|2|4|8|16|32|64|128|256|512,n=384,k=384,g=32,dtype=f16",
    "m=1|2|4|8|16|32|64|128|256|512,n=1536,k=384,g=32,dtype=f16",
};

// `unseen`: no threshold may be set by it. Other models, and sizes that are no multiple of a tile: feed-forward layers
// of Llama 2, Gemma 3, SigLIP and Whisper, with other groups, and one of odd sizes.
constexpr const char* kCpuUnseen[] = {"m=1|3|21|70,n=640,k=448,g=64", "m=1|3|21|70,n=1000,k=280,g=28",
                                      "m=1|3|21|70,n=311,k=1152,g=32"};
constexpr const char* kGpuUnseen[] = {
    "m=1|5|27|77|300|1111,n=11008,k=4096,g=128,dtype=f16", "m=1|5|27|77|300|1111,n=2560,k=10240,g=32,dtype=f16",
    "m=1|5|27|77|300|1111,n=4304,k=1152,g=64,dtype=f16",   "m=1|5|27|77|300|1111,n=1280,k=5120,g=64,dtype=f16",
    "m=1|5|27|77|300|1111,n=1000,k=1288,g=28,dtype=f16",
};

// Convolutions: sums in several parts, borders, tails of vec4 groups and of tiles, groups that begin inside of a row
// panel, depthwise.
constexpr const char* kConvRows = "b=1|3";
constexpr const char* kConvShapes[] = {
    "c=3,o=17,h=7,w=9,bias=1",
    "c=176,o=20,h=5,w=5,p=0,act=relu",
    "c=33,o=40,h=9,w=8,s=2,bias=1,zero=none|random,act=relu6",
    "c=17,o=12,h=5,w=7,k=1,p=0,act=hardswish,bias=1",
    "c=40,o=17,h=6,w=6,k=1,p=0",
    "c=96,o=35,h=5,w=7,k=1,p=0,bias=1,act=silu",  // fragments gather whole vectors of an odd plane
    "c=34,o=34,h=9,w=11,d=2,g=2,zero=none|random",
    "c=17,o=17,h=12,w=12,s=2,g=17,bias=1",
    "c=6,o=6,h=7,w=8,k=5,p=2,g=6,zero=none|random",
    "c=5,o=3,h=11,w=16,k=6,s=3,p=1",
};
constexpr const char* kMoreConvShapes[] = {
    "c=1|3|5|17|64,o=17|64,h=13,w=15,k=1|2|3|5|7,s=1|2|3,p=3,bias=1",
    "c=10,o=20,h=13,w=15,k=3,s=1|2,p=0|2,d=1|2|3,g=1|2|5",
    "c=256,o=128,h=14,w=14,k=3|1",
};
constexpr const char* kConvValues[] = {"b=2,c=20,o=19,h=6,w=7,values=low|high|special",
                                       "b=2,c=96,o=19,h=3,w=5,k=1,p=0,values=special"};
// By tiles, directly and depthwise.
constexpr const char* kConvUnsigned[] = {
    "b=2,c=20,o=19,h=6,w=7,in=u8,out=i8|u8",   "b=2,c=20,o=19,h=6,w=7,out=u8",
    "b=2,c=5,o=3,h=6,w=7,in=u8,out=i8|u8",     "b=2,c=5,o=3,h=6,w=7,out=u8",
    "b=2,c=6,o=6,h=7,w=8,g=6,in=u8,out=i8|u8", "b=2,c=6,o=6,h=7,w=8,g=6,out=u8",
    "b=1,c=176,o=20,h=5,w=5,p=0,out=u8",        // sums in several parts
    "b=2,c=3,o=19,h=9,w=10,k=5,s=2,p=2,in=u8",  // the taps of a row are one
};
constexpr const char* kConvTextures = "b=3,c=5,o=17|3,h=7,w=9,bias=1,storage=texture3d";
constexpr const char* kConvCpuBench[] = {"b=1,c=64,o=64,h=28,w=28", "b=1,c=64,o=64,g=64,h=28,w=28"};
constexpr const char* kConvCompile[] = {
    "b=1|8,c=64,o=64,h=28,w=28,dtype=f32|f16",
    "b=1,c=64,o=256,h=28,w=28,k=1,p=0,dtype=f32|f16",
    "b=1,c=512,o=512,h=7,w=7,zero=none|random,dtype=f32|f16",
    "b=1,c=3,o=64,h=64,w=64,k=7,s=2,p=3,bias=1,dtype=f32|f16",
    "b=1,c=144,o=144,g=144,h=28,w=28,dtype=f32|f16",
};
// Layers of ResNet-50 and MobileNetV2, and the one in docs/performance.md.
constexpr const char* kConvGpuBench[] = {
    "b=32,c=256,o=256,h=56,w=56,dtype=f16",
    "b=1|32,c=64,o=64,h=56,w=56,dtype=f16",
    "b=1|32,c=64,o=256,h=56,w=56,k=1,p=0,dtype=f16",
    "b=1|32,c=128,o=128,h=28,w=28,dtype=f16",
    "b=1|32,c=1024,o=256,h=14,w=14,k=1,p=0,dtype=f16",
    "b=1|32,c=512,o=512,h=7,w=7,dtype=f16",
    "b=1|32,c=3,o=64,h=224,w=224,k=7,s=2,p=3,dtype=f16",
    "b=1|32,c=144,o=144,g=144,h=56,w=56,dtype=f16",
};

void add(std::vector<Case>& all, const std::string& text, std::string_view op) {
  for (Case& c : parse(text, usual(op))) {
    if (bench_op(op).refuse(c).empty()) all.push_back(std::move(c));
  }
}

std::vector<Case> table(const Options& options, Purpose purpose, bool cpu, std::string_view op) {
  std::vector<Case> all;
  const BenchOp& known = bench_op(op);
  if (known.is_call()) {
    const OpCases& cases = known.row->cases;
    return call_cases(*known.row, purpose != Purpose::bench || cases.bench.empty() ? cases.test : cases.bench);
  }
  const bool is_conv = known.is_conv();
  using Texts = std::span<const char* const>;
  if (purpose == Purpose::compile) {
    for (const char* text : is_conv ? Texts(kConvCompile) : kCompile) add(all, text, op);
    return all;
  }
  if (purpose == Purpose::bench) {
    const bool few = cpu && !options.full;
    Texts texts = few ? Texts(kCpuBench) : kGpuBench;
    if (options.grid == kGrids[1])
      texts = few ? Texts(kCpuUnseen) : kGpuUnseen;
    else if (options.regret || !options.grid.empty())
      texts = few ? Texts(kCpuGrid) : kGpuGrid;
    if (is_conv) texts = few ? Texts(kConvCpuBench) : kConvGpuBench;
    for (const char* text : texts) add(all, text, op);
    if (!all.empty()) return all;
    for (const char* text : texts)
      add(all, text + std::string(",dtype=f32"), op);  // its inputs and outputs are integers
    return all;
  }
  for (const char* dtype : {",dtype=f32", ",dtype=f16"}) {
    if (is_conv) {
      const std::string rows = std::string(kConvRows) + dtype + ",";
      for (const char* text : kConvShapes) add(all, rows + text, op);
      if (options.full)
        for (const char* text : kMoreConvShapes) add(all, rows + text, op);
      for (const char* text : kConvValues) add(all, std::string(dtype + 1) + "," + text, op);
      add(all, std::string(dtype + 1) + "," + kConvTextures, op);
      for (const char* text : kConvUnsigned) add(all, std::string(dtype + 1) + "," + text, op);
      continue;
    }
    const std::string rows = options.full ? kAllRows : kRows;
    // The dtype comes first, because `scale` has the same dtype unless the case sets it.
    for (const char* text : kShapes) add(all, rows + dtype + "," + text, op);
    if (options.full)
      for (const char* text : kMoreShapes) add(all, rows + dtype + "," + text, op);
    if (options.full) add(all, std::string(dtype + 1) + "," + kLongSums, op);
    if (options.full) add(all, std::string(dtype + 1) + "," + kVocabulary, op);
    add(all, std::string(dtype + 1) + "," + kValues, op);
    add(all, std::string(dtype + 1) + "," + kTextures, op);
    for (const char* text : kUnsigned) add(all, std::string(dtype + 1) + "," + text, op);
  }
  return all;
}

// The operators that have every kernel of `wanted`. Throws InvalidArgument when no operator has one of them.
std::vector<std::string> with_kernels(const std::vector<std::string>& wanted) {
  std::vector<std::string> ops;
  std::set<std::string> names;
  for (const BenchOp& each : bench_ops()) {
    const std::vector<std::string> known = all_kernels(each);
    names.insert(known.begin(), known.end());
    const auto has = [&](const std::string& name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    if (std::all_of(wanted.begin(), wanted.end(), has)) ops.emplace_back(each.op);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& name : wanted) must_be_one_of("kernel", name, known);
  return ops;
}

}  // namespace

std::vector<Case> choose(const Options& options, Purpose purpose, bool cpu) {
  if (!options.grid.empty()) must_be_one_of("grid", options.grid, kGrids);
  std::vector<std::string> ops = options.ops;
  for (const std::string& op : ops) bench_op(op);  // throws where there is none
  // The options as the beginning of the text of each case.
  const auto begin = [&](bool is_call) {
    const std::string end = is_call ? " " : ",";
    return (options.dtype.empty() ? "" : (is_call ? "T=" : "dtype=") + options.dtype + end) +
           (options.storage.empty() ? "" : "storage=" + options.storage + end);
  };
  std::vector<Case> all;
  if (!options.cases.empty()) {
    for (const std::string& text : options.cases) {
      for (const std::string& op : ops.empty() ? std::vector<std::string>{Case{}.op} : ops) {
        for (Case& c : parse(begin(bench_op(op).is_call()) + text, usual(op))) {
          const std::string reason = bench_op(c.op).refuse(c);
          if (!reason.empty())
            fail(Code::InvalidArgument, Stage::api, "case", "%s: %s", kernel_bench::text(c).c_str(), reason.c_str());
          all.push_back(std::move(c));
        }
      }
    }
    return all;
  }
  const std::vector<Case> wanted = parse(begin(false));  // throws for misspelt values
  if (ops.empty()) ops = with_kernels(options.kernels);
  for (const std::string& op : ops)
    for (Case& c : table(options, purpose, cpu, op)) {
      if (!options.dtype.empty() && c.dtype != wanted[0].dtype) continue;
      if (!options.storage.empty()) {  // every case with that storage, where the operator takes it
        if (c.storage != Case{}.storage) continue;
        c.storage = options.storage;
        if (!bench_op(op).refuse(c).empty()) continue;
      }
      all.push_back(std::move(c));
    }
  return all;
}

}  // namespace pumice::engine::kernel_bench
