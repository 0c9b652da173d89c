// SPDX-License-Identifier: Apache-2.0
// The network of test/bench/ncnn_file.py in ncnn on Vulkan, fp16, batch 1: the peer of conv_file.py's ResNet-50, and a
// native program as `pumice-rt bench` is. A call is copy in, run, wait, copy out.
//
//   ncnn_resnet50 FOLDER [--runs 200] [--warmup 50] [--device 0]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gpu.h"
#include "net.h"

namespace {

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "ncnn_resnet50: %s\n", why.c_str());
  std::exit(1);
}

void load(ncnn::Net& net, const std::string& folder) {
  if (net.load_param((folder + "/net.param").c_str()) != 0 || net.load_model((folder + "/net.bin").c_str()) != 0)
    fail("ncnn cannot load the network");
}

ncnn::Mat random_image() {
  ncnn::Mat image(224, 224, 3);
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int c = 0; c < image.c; ++c)
    std::generate_n(static_cast<float*>(image.channel(c)), 224 * 224, [&] { return uniform(random); });
  return image;
}

// Milliseconds of a call; `result` is its answer.
double time_of_a_call(const ncnn::Net& net, const ncnn::Mat& image, ncnn::Mat& result) {
  const auto begin = std::chrono::steady_clock::now();
  ncnn::Extractor extractor = net.create_extractor();
  const int wrong =
      extractor.input(net.input_indexes()[0], image) != 0 || extractor.extract(net.output_indexes()[0], result) != 0;
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  if (wrong) fail("ncnn cannot run the network");
  return passed.count();
}

// Against ncnn's own CPU code in fp32: a layer that was left out, or a driver's mistake, would be timed otherwise.
void check(const ncnn::Mat& result, const std::string& folder, const ncnn::Mat& image) {
  ncnn::Net net;
  net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = false;
  load(net, folder);
  ncnn::Mat want;
  time_of_a_call(net, image, want);
  if (result.dims != 1 || result.w != 1000 || result.elemsize != 4) fail("the answer is not 1000 numbers");
  double error = 0, size = 0;
  for (int i = 0; i < result.w; ++i) {
    error += std::pow(result[i] - want[i], 2);
    size += std::pow(want[i], 2);
  }
  if (!(std::sqrt(error / size) < 0.05))
    fail("the answer is off by " + std::to_string(std::sqrt(error / size)) + " of that in fp32");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) fail("give the folder of the network, then options with a number each");
  if (!__builtin_cpu_supports("avx2")) fail("this processor has no AVX2, for which ncnn was compiled");
  std::map<std::string, int> options{{"--runs", 200}, {"--warmup", 50}, {"--device", 0}};
  for (int i = 2; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) fail("there is no option " + std::string(argv[i]));
    option->second = std::atoi(argv[i + 1]);
  }
  const std::string folder = argv[1];
  const int runs = options["--runs"], device = options["--device"];
  if (runs < 1 || device >= ncnn::get_gpu_count()) fail("no runs, or no such device");
  {
    ncnn::Net net;
    net.opt.use_vulkan_compute = true;
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = true;
    net.set_vulkan_device(device);
    load(net, folder);
    const ncnn::Mat image = random_image();
    ncnn::Mat result;
    for (int i = 0; i < options["--warmup"]; ++i) time_of_a_call(net, image, result);
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) times.push_back(time_of_a_call(net, image, result));
    check(result, folder, image);
    std::sort(times.begin(), times.end());
    const auto at = [&](size_t percent) { return times[(times.size() - 1) * percent / 100]; };
    std::printf("ncnn %s on %s: median %.3f ms, p10 %.3f, p90 %.3f, %d runs\n", NCNN_VERSION_STRING,
                ncnn::get_gpu_info(device).device_name(), at(50), at(10), at(90), runs);
  }
  ncnn::destroy_gpu_instance();
}
