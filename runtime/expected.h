// SPDX-License-Identifier: Apache-2.0
// What an operator call, or a convolution and what follows it, must give, element by element, in fp64: the judge of the
// self test.
#pragma once

#include <optional>

#include "ops/shared/sum_error.h"
#include "runtime/one_call.h"

namespace pumice::engine {

class Expected {
 public:
  explicit Expected(const OneCall& call);
  // False: no element is known (a transposed convolution, several convolutions, attention over caches).
  bool is_known() const;

  // A number, and how far a kernel that works may be off, the rounding to the output's dtype included. Of integers the
  // number is not rounded yet. Empty where it tells nothing: infinite or NaN.
  struct Element {
    double value, error;
  };
  std::optional<Element> element(int64_t index, size_t output = 0) const;
  // Multiplications that an element takes.
  int64_t terms() const;

 private:
  struct Sum {
    double value, error;
  };
  Sum rounded(const TermSums& sums, uint32_t act, DType of, double more) const;
  Sum product(const std::vector<double>& x, int64_t row_of_weight, uint32_t act) const;
  std::vector<double> row(int64_t index) const;
  std::vector<double> patch(int64_t image, int64_t group, int64_t y, int64_t x) const;
  struct Pixels;
  int64_t groups() const;  // of a convolution
  double input(int64_t index) const;
  Sum linear(int64_t index) const;
  Sum conv(int64_t index) const;
  Sum matmul(int64_t index) const;
  Sum attention(int64_t index) const;
  // Of the results of the convolution before it.
  Sum mean(int64_t index) const;
  Sum layer_norm(int64_t index) const;
  Sum sum_of(int64_t index, size_t output) const;

  const OneCall& call_;
  CallTensor x_, weight_, scale_, zero_, bias_, residual_, norm_;
  std::vector<float> q_, k_, v_;  // of attention
  double x_step_ = 0;             // of numbers that stand for x: how far one may be off
  struct Quantized {              // x by parameters of the call
    double scale, zero, low, high;
  };
  std::optional<Quantized> quantized_;
  struct Window {
    int64_t kernel, stride, dilation, pad;
  };
  std::vector<Window> windows_;  // of a convolution: of y and x
};

}  // namespace pumice::engine
