// SPDX-License-Identifier: Apache-2.0
// The command line of kernel list | test | compile | bench, and of tune.
#include <CLI/CLI.hpp>

#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

constexpr const char* kCaseHelp = R"(
A case of most operators is a call, "x=T[3,37] dim=-1|0 -> T[3,37]": arguments by name, tensors as dtype[sizes] (T: f32
and f16, unless T=f16 says), after -> the outputs unless like the first tensor; storage=texture3d puts the first tensor
into a texture. kernel list --op softmax shows one, docs/kernels.md has the rest.
Of products it is key=value joined by commas; keys left out have their defaults, and '|' stands between alternatives:
  op       the operator, as --op                     scale    f32 or f16, of a weight's scales; as dtype unless said
  m n k    x is [m, k], the weight [n, k]            zero     zero points: none, zero (given, all 0) or random
  g        columns with one scale; 0: the whole row  act      none, relu, gelu, gelu_tanh, silu, relu6,
                                                              hardswish or hardsigmoid
  dtype    f32 or f16, of x and the output           values   random, low (all lowest), high (all highest), equal (to
  bias     0 or 1                                             their zero points), huge or wide (one huge term,
  storage  buffer, texture3d (x and                           or of 2^31), alternate (signs), special (NaN and
                                                              Inf in x), one (column of x not 0) or group (of them)
           the output), texture2d (the packed weight) or textures (both)
  in out   i8 or u8, of x and the output where they are 8-bit integers
Of convolutions: b, c, h, w (x is [b, c, h, w]), o (output channels), k (the window, k x k), s, p, d (stride, padding,
dilation), g (groups); dtype, bias, zero, act; values random, low, high or special.
)";

constexpr const char* kTestHelp = R"(
The error bound is the operator's own, as its source derives it; of products |err| <= u |y| + c sum|a b|, c counted from
the kernel's roundings, or their error by chance where that is smaller (ops/shared/sum_error.h); integers and moved
elements are exact. What kernels report (an index out of range, an i64 that 32 bits cannot hold) must be what the
reference says. "guards only": the operator has no reference. Beside that, every case runs twice in memory that held
other bytes before (outputs and scratch: all must be written), between guard bands that must stay whole, is replayed and
must give the same bits, and once more through a session as users have it.
Above 10^8 multiplications a sample of the outputs is compared, edges always; --seed draws it. Exit code 1: something
failed, 4: nothing that was asked for runs on this device.
)";

constexpr const char* kBenchHelp = R"(
Weights rotate past the cache, clocks are warmed, the device's own clock stands around many replays with a barrier
between two. The device is measured first (reading, copying, arithmetic, matrix units); '% roof' is the time those
ceilings allow by the time taken. On a CPU driver 'cpu us' is processor time, which a busy machine changes less, and
ceilings and '% roof' go by it.
)";

constexpr const char* kTuneHelp = R"(
Which kernel of a matrix product is the fastest depends on the device. A table chooses, which was measured on some; tune
measures on yours, and from then on every program of yours takes what it found. Of a model, its products are measured at
the sizes of the export and, where sizes are dynamic, at 1, 4, 16, 64, 256 and 1024 of them (or --size), the heaviest
first. Another kernel than the table's is taken only if it is faster by more than the spread of the times. Each product
is kept as soon as it is measured, so that Ctrl-C and the budget lose nothing, and tune can be run again. The file is in
the cache folder, for this device, driver, build and --features; PUMICE_FEATURES=untuned leaves it aside.
)";

constexpr const char* kCompileHelp = R"(
The cases are those of kernel bench. PUMICE_PIPELINE_LOG names a file that gets a line of JSON for each pipeline: its
shader, specialization constants, milliseconds, and what the driver's compiler says of it; before it one without these,
when the compiler begins. Exit code 1: the driver refused something, 4: nothing that was asked for runs on this device.
)";

constexpr const char* kExamples = R"(Examples:
  pumice-rt kernel list --op linear_q4gsw
  pumice-rt kernel test --op linear_q4gsw --kernel gemv1 --case "m=1|17,n=4097,k=384,g=32,dtype=f16"
  pumice-rt kernel test --features=-coopmat,-int_dot --full
  pumice-rt kernel bench --op linear_q4gsw --case "m=1|512,n=14336,k=4096,dtype=f16" --kernel pick --kernel plain
  pumice-rt kernel bench --op linear_q4gsw --regret --seconds 0.05
  pumice-rt kernel test --op q8ta_conv2d --kernel conv_dot32x32 --case "b=1|3,c=64,o=128,h=56,w=56,k=3,s=2"
)";

void common(CLI::App* command, Arguments& arguments) {
  pumice::engine::kernel_bench::Options& options = arguments.kernel;
  command->add_option("--device", options.device, "index, part of the name, or UUID [$PUMICE_DEVICE]");
  command->add_option("--features", options.features, "'-coopmat,-int_dot' or 'none' [$PUMICE_FEATURES]");
  command->add_option("--cache-dir", options.cache_dir,
                      "folder of compiled pipelines; 'off' for none [$PUMICE_CACHE_DIR]");
  command->add_option("--op", options.ops, "only this operator; repeatable")->allow_extra_args(false);
  command
      ->add_option("--case", options.cases,
                   "m=17,n=4097,k=384,g=32 or b=1,c=64,o=64,h=56,w=56,k=3; see below; repeatable")
      ->allow_extra_args(false);
  command->add_option("--dtype", options.dtype, "only f32 or only f16");
  command->add_option("--storage", options.storage,
                      "buffer, texture3d (activations), texture2d (weights) or textures (both)");
  command->add_flag("--json", arguments.json, "print JSON for programs");
}

void choosing(CLI::App* command, pumice::engine::kernel_bench::Options& options, const char* help) {
  command->add_option("--kernel", options.kernels, "only this kernel, or 'pick' for the one chosen; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--full", options.full, "the long list of cases instead of the short one");
  command->add_option("--seed", options.seed, "seed of the data and of the sample")->capture_default_str();
  command->footer(std::string(help) + kCaseHelp);
}

void timing(CLI::App* command, pumice::engine::kernel_bench::Options& options, const char* seconds_help) {
  command->add_option("--seconds", options.seconds, seconds_help)->check(CLI::NonNegativeNumber)->capture_default_str();
  command
      ->add_option(
          "--rotate", options.rotate_bytes,
          "bytes of all copies of the weights that runs use in turn, e.g. 512MB; default 256MB, 64MB on a CPU driver")
      ->transform(CLI::AsSizeValue(false));
}

void grid(CLI::App* command, pumice::engine::kernel_bench::Options& options) {
  command->add_option("--grid", options.grid,
                      "the cases of linear layers: fitted (by which the tables were set) or unseen (by no table)");
}

}  // namespace

void tune_command(CLI::App& app, Arguments& arguments, int (*&chosen)(const Arguments&)) {
  pumice::engine::kernel_bench::Options& options = arguments.kernel;
  CLI::App* command =
      app.add_subcommand("tune", "measure the fastest kernels for a model on this device, and keep them");
  command->callback([&chosen] { chosen = tune; });
  command->add_option("model", options.model, "the .pumice file; or --op, --case, --grid for products without a model");
  command->add_option("--size", options.sizes, "a dynamic size by its name, e.g. seq=128; repeatable")
      ->allow_extra_args(false);
  command->add_option("--budget", options.budget, "seconds in all; what is measured until then is kept")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  common(command, arguments);
  grid(command, options);
  choosing(command, options, kTuneHelp);
  timing(command, options, "seconds for each kernel that comes near the best");
}

void kernel_commands(CLI::App& app, Arguments& arguments, int (*&chosen)(const Arguments&)) {
  pumice::engine::kernel_bench::Options& options = arguments.kernel;
  CLI::App* kernel = app.add_subcommand("kernel", "list, test and time single kernels");
  kernel->require_subcommand(1);
  kernel->footer(kExamples);
  const auto add = [&](const char* name, const std::string& help, int (*function)(const Arguments&)) {
    CLI::App* command = kernel->add_subcommand(name, help);
    command->callback([&chosen, function] { chosen = function; });
    common(command, arguments);
    return command;
  };
  CLI::App* list =
      add("list", "Operators, the kernels that can be forced (at a --case), and what shaders need of the device.",
          kernel_list);
  list->add_option("--profile", options.profile,
                   "a device that is not here: a file of `devices --profile`, or a name in test/profiles");
  list->add_flag("--compile", options.compile,
                 "milliseconds that the driver takes for each kernel's slowest pipeline, kept by no cache of ours");
  CLI::App* test =
      add("test", "Each case with each kernel, compared with the fp64 reference of its operator.", kernel_test);
  choosing(test, options, kTestHelp);
  test->add_option("--replays", options.replays,
                   "runs of each case that must give equal bits; default 100, or fewer for large cases on a CPU driver")
      ->check(CLI::PositiveNumber);
  test->add_option("--jobs", options.jobs, "threads that share the cases; rows are in no order then [1]")
      ->check(CLI::Range(1, 64));
  test->add_option("--one-of", options.one_of,
                   "of N pairs of a kernel and a case only one, drawn by --seed: another seed draws others [1]")
      ->check(CLI::PositiveNumber);
  test->add_option(
          "--variant", options.variants,
          "a shader variant as kernel list names it, repeatable: runs small cases of kernels that launch all of "
          "these, in any storage")
      ->allow_extra_args(false);
  test->add_option(
      "--plant", options.mistake,
      "plants a mistake, which must be found: value, unwritten, guard, replay, column, group, scale, zero, "
      "bias, act, rounding or input:NAME");
  CLI::App* compile =
      add("compile", "Makes the pipelines of each case with each kernel, and runs none: for a driver without its GPU.",
          kernel_compile);
  choosing(compile, options, kCompileHelp);
  compile->add_option("--pipelines", options.pipelines, "those of a file as PUMICE_PIPELINE_LOG's, not the cases'");
  CLI::App* bench = add("bench", "Each case with each kernel, timed after its result was checked.", kernel_bench);
  choosing(bench, options, kBenchHelp);
  timing(bench, options, "seconds of warm-up for a row, and the most for its timing");
  grid(bench, options);
  bench->add_flag("!--no-barrier", options.barrier, "replays may overlap: throughput instead of latency");
  bench->add_flag("!--no-ceilings", options.ceilings, "do not measure the device first");
  bench->add_flag("--regret", options.regret,
                  "time every kernel that can run at a grid of shapes, and compare the picked kernel with the best");
}

}  // namespace tool
