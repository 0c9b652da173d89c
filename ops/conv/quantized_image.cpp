// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/quantized_image.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "ops/quant/qparams.h"

namespace pumice::engine {
namespace {

std::shared_ptr<QuantizedImage> known(Graph& graph, Tensor value) {
  return graph.shared<QuantizedImage>("quantized image " + std::to_string(value.id()));
}

// What is_usual and quantize.glsl ask of the numbers, so that quantize_usual gives what that kernel does.
bool is_usual(const QuantizedImage& image) {
  return image.inverse >= 0x1p-126f && image.inverse < 0x1p124f && std::abs(image.zero) <= 512 &&
         image.zero == std::trunc(image.zero) && image.low >= -1024 && image.high <= 1024;
}

bool has_sole_convolution(const Graph& graph, Tensor out) {
  const std::vector<Use>& uses = uses_of(graph, out);
  if (uses.size() != 1 || uses[0].argument != 0) return false;
  const std::string op = reader(graph, uses[0]);
  return op == "q8ta_conv2d" || op == "conv2d_q8ta_q8csw";
}

}  // namespace

bool defer_quantized_image(Graph& graph, Tensor out, const QuantizedImage& image, std::function<void()> write) {
  if (!is_byte(out.dtype()) || !is_usual(image) || !has_sole_convolution(graph, out)) return false;
  *known(graph, out) = image;
  defer(graph, out, std::move(write));
  return true;
}

QuantizedImage quantized_image(Graph& graph, Tensor value) {
  return is_deferred(graph, value) ? *known(graph, value) : QuantizedImage{};
}

}  // namespace pumice::engine
