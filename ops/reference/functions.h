// SPDX-License-Identifier: Apache-2.0
// References of functions of one number that have no name in <cmath>: plain definitions in fp64.
#pragma once

namespace pumice::engine::reference {

double sigmoid(double x);
double gelu(double x);
double gelu_tanh(double x);
double silu(double x);
double reciprocal(double x);
double rsqrt(double x);
double hardsigmoid(double x);
double hardswish(double x);
double relu(double x);
double neg(double x);
double square(double x);

}  // namespace pumice::engine::reference
