// SPDX-License-Identifier: Apache-2.0
// pumice-rt runs, times and inspects .pumice files without Python. The shaders are inside the binary.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/nearest.h"
#include "tools/pumice-rt/tool.h"

namespace {

void device_options(CLI::App* command, tool::Arguments& arguments) {
  command->add_option("--device", arguments.options.device, "index, part of the name, or UUID [$PUMICE_DEVICE]");
  command->add_option("--features", arguments.options.features, "'-coopmat,-int_dot' or 'none' [$PUMICE_FEATURES]");
  command->add_option("--cache-dir", arguments.options.cache_dir,
                      "folder of compiled pipelines; 'off' for none [$PUMICE_CACHE_DIR]");
  command->add_option("--timeout-ms", arguments.options.timeout_ms,
                      "limit of one run in milliseconds; the first one may compile shaders [60000]");
  command->add_option("--max-memory", arguments.options.max_memory,
                      "limit of the model's memory in bytes [80 % of the device's largest heap]");
  command->add_option("--max-seconds", arguments.options.max_seconds, "limit of the load in seconds [60]");
}

void model_argument(CLI::App* command, tool::Arguments& arguments) {
  command->add_option("model", arguments.model, "the .pumice file")->required();
}

void shape_options(CLI::App* command, tool::Arguments& arguments) {
  command->add_option("--shape", arguments.shapes,
                      "shape of an input, e.g. ids=1x128; others follow by the names of sizes; repeatable");
  command->add_option("--size", arguments.sizes, "a dynamic size by its name, e.g. seq=128; repeatable");
}

void bench_options(CLI::App* command, tool::Arguments& arguments) {
  shape_options(command, arguments);
  command->add_option("-i,--inputs", arguments.inputs,
                      "one .npy file for each input, in order, instead of random ones");
  command->add_option("-r,--runs", arguments.runs, "timed runs")->check(CLI::PositiveNumber)->capture_default_str();
}

void sampling_options(CLI::App* command, tool::Sampling& sampling) {
  command->add_option("--temperature", sampling.temperature, "0: always the most probable token")
      ->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "only the k most probable; 0: all")->capture_default_str();
  command->add_option("--top-p", sampling.top_p, "only as many as reach this probability")->capture_default_str();
  command->add_option("--min-p", sampling.min_p, "only those with this share of the largest")->capture_default_str();
  command->add_option("--repeat-penalty", sampling.repeat_penalty, "above 1: repeat less")->capture_default_str();
  command->add_option("--repeat-last", sampling.repeat_last, "tokens that count as repeated")->capture_default_str();
  command->add_option("--seed", sampling.seed, "the same seed gives the same text")->capture_default_str();
}

int dispatch(int argc, char** argv) {
  tool::Arguments arguments;
  CLI::App app(
      "Run, measure and inspect .pumice files on any Vulkan device.\n\n"
      "  pumice-rt run m.pumice --inputs ids.npy mask.npy --outputs out\n"
      "  pumice-rt bench m.pumice --shape ids=1x128 --shape mask=1x128\n"
      "  pumice-rt generate llama.pumice --tokens 1,15043 -n 64\n"
      "  pumice-rt tune m.pumice --budget 60\n");
  app.set_version_flag("--version", pumice_version());
  app.require_subcommand(1);
  int (*chosen)(const tool::Arguments&) = nullptr;
  const auto add = [&](const char* name, const char* help, int (*function)(const tool::Arguments&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->callback([&chosen, function] { chosen = function; });
    return command;
  };
  CLI::App* run = add("run", "run once: .npy files in, .npy files out", tool::run);
  model_argument(run, arguments);
  run->add_option("-i,--inputs", arguments.inputs, "one .npy file for each input, in order");
  run->add_option("-o,--outputs", arguments.outputs, "folder for the outputs");
  CLI::App* bench = add("bench", "time whole calls with random inputs", tool::bench);
  model_argument(bench, arguments);
  bench_options(bench, arguments);
  bench->add_option("--warmup", arguments.warmup, "seconds of untimed runs first")->capture_default_str();
  CLI::App* profile = add("profile", "time every operator on the device", tool::profile);
  model_argument(profile, arguments);
  bench_options(profile, arguments);
  profile->add_option("--by", arguments.by, "a row for each 'kernel' or for each 'call'")
      ->check(CLI::IsMember({"kernel", "call"}));
  CLI::App* warm = add("warm", "compile the kernels of a run ahead, and keep them in the cache", tool::warm);
  model_argument(warm, arguments);
  shape_options(warm, arguments);
  CLI::App* inspect = add("inspect", "header, operators, memory plan, constants; no device is touched", tool::inspect);
  model_argument(inspect, arguments);
  inspect->add_option("--profile", arguments.kernel.profile,
                      "count dispatches for this device, not for what Vulkan 1.1 promises: a file of `devices "
                      "--profile`, or a name in test/profiles");
  CLI::App* check = add("check", "run the reader's four gates; no device is touched", tool::check);
  model_argument(check, arguments);
  CLI::App* devices = add("devices", "list every Vulkan device", tool::devices);
  devices->add_flag("--profile", arguments.as_profile,
                    "print the device (--device) as a file for `kernel list --profile`; send us yours");
  devices->add_option("--device", arguments.kernel.device, "index, part of the name, or UUID [$PUMICE_DEVICE]");
  CLI::App* generate = add("generate", "continue a prompt of token ids with a language model", tool::generate);
  model_argument(generate, arguments);
  auto* tokens = generate->add_option("--tokens", arguments.tokens, "ids of the prompt, 1,2,3")->delimiter(',');
  generate->add_option("--prompt-length", arguments.prompt_length, "ids drawn at random in place of --tokens")
      ->excludes(tokens);
  generate->add_option("-n,--count", arguments.count, "tokens to generate")->capture_default_str();
  generate->add_option("--stop", arguments.stops, "ids that end the text, 1,2,3")->delimiter(',');
  sampling_options(generate, arguments.sampling);
  generate->add_flag("--profile", arguments.profiled, "then print the kernels of one more token");
  for (CLI::App* command : {run, bench, profile, warm, generate}) device_options(command, arguments);
  for (CLI::App* command : {bench, profile, warm, generate, inspect, devices})
    command->add_flag("--json", arguments.json, "print JSON for programs");
  tool::tune_command(app, arguments, chosen);
  tool::kernel_commands(app, arguments, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (argc < 2 || argv[1][0] == '-') return app.exit(error), 2;
    const CLI::App* group = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    const char* given = group == &app ? argv[1] : argc > 2 ? argv[2] : "";
    if (*given == '\0' || *given == '-' || group->get_subcommands({}).empty()) return app.exit(error), 2;
    std::vector<std::string> names;
    for (const CLI::App* each : group->get_subcommands({})) names.push_back(each->get_name());
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    throw tool::UsageError("no command '" + std::string(given) + "'; did you mean '" +
                           std::string(pumice::engine::nearest(given, names)) + "'? commands: " + all);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return chosen(arguments);
}

// Prints an error of the library, which begins with the name of its code; the exit code.
int refused(const std::string& text, int code) {
  const std::string name = text.substr(0, text.find_first_of(" :"));
  std::fprintf(stderr, "pumice-rt: %s\n  what to do: pumice explain %s, or docs/errors.md\n", text.c_str(),
               name.c_str());
  return code >= PUMICE_TIMEOUT && code < PUMICE_INTERNAL ? 4 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tool::see_interrupts();
    return dispatch(argc, argv);
  } catch (const pumice::Error& error) {
    if (tool::is_interrupted() && error.code == PUMICE_CANCELLED) {
      std::fprintf(stderr, "pumice-rt: interrupted\n");
      return tool::kInterrupted;
    }
    return refused(error.what(), error.code);
  } catch (const pumice::engine::kernel_bench::Failure& error) {
    return refused(error.name + ": " + error.what(), error.code);
  } catch (const tool::UsageError& error) {
    std::fprintf(stderr, "pumice-rt: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pumice-rt: %s\n", error.what());
    return 3;
  }
}
