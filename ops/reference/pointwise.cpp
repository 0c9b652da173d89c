// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/pointwise.h"

#include <algorithm>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "ops/shared/shape.h"

namespace pumice::engine::reference {
namespace {

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}

// Python's %: the sign of b.
double remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// floor(a / b), exactly: a - fmod(a, b) is a multiple of b.
double floor_divide(double a, double b) {
  const double r = std::fmod(a, b);
  if (b == 0 || std::isnan(r)) return a / b;
  return std::round((a - r) / b) - (r != 0 && (r < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

double of_floats(uint32_t code, double a, double b) {
  switch (code) {
    case BINARY_ADD:
      return a + b;
    case BINARY_SUB:
      return a - b;
    case BINARY_MUL:
      return a * b;
    case BINARY_DIV:
      return a / b;
    case BINARY_DIV_FLOOR:
      return floor_divide(a, b);
    case BINARY_DIV_TRUNC:
      return std::trunc(in_f32(a / b));
    case BINARY_REMAINDER:
      return remainder(a, b);
    case BINARY_FMOD:
      return std::fmod(a, b);
    case BINARY_MAXIMUM:
      return larger(a, b);
    case BINARY_MINIMUM:
      return -larger(-a, -b);
    case BINARY_POW:
      return std::pow(a, b);
    case BINARY_ATAN2:
      return std::atan2(a, b);
    case BINARY_PRELU:
      return a > 0 ? a : a * b;
    case BINARY_ELU:
      return a > 0 ? a : b * std::expm1(a);
    default:
      return larger(a + b, 0);  // BINARY_ADD_RELU
  }
}

double error_of_floats(uint32_t code, double a, double b, double y) {
  switch (code) {
    case BINARY_ADD:
    case BINARY_SUB:
    case BINARY_ADD_RELU:
      return 0x1p-21 * (std::fabs(a) + std::fabs(b));
    case BINARY_DIV_FLOOR:
    case BINARY_FMOD:
    case BINARY_MAXIMUM:
    case BINARY_MINIMUM:
      return 0;
    case BINARY_DIV_TRUNC:  // a quotient next to a whole number may be on either side of it: Vulkan's is 2.5 ulp off
      return std::fabs(a / b - std::nearbyint(a / b)) <= 0x1p-21 * std::fabs(a / b) ? 1 : 0;
    case BINARY_REMAINDER:
      return 0x1p-24 * std::fabs(y);
    case BINARY_POW:
      return 400 * 0x1p-23 * std::fabs(y);
    case BINARY_ATAN2:
      return 0x1p-20 * std::fabs(y);
    case BINARY_ELU:
      return 0x1p-18 * std::fabs(y) + 0x1p-21 * std::fabs(b);
    default:
      return 0x1p-21 * std::fabs(y);
  }
}

namespace {

// Exact in 64 bits; pow in fp64, whose result is exact where it fits 53 bits.
double power(int64_t a, int64_t b, DType dtype) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  if (dtype == DType::i64) return std::pow(static_cast<double>(a), static_cast<double>(b));
  uint32_t result = 1;
  for (int64_t k = 0; k < b; ++k) result *= static_cast<uint32_t>(a);
  return wrapped(static_cast<int32_t>(result), dtype);
}

double of_integers(uint32_t code, int64_t a, int64_t b, int64_t alpha, DType dtype) {
  const bool divides = code >= BINARY_DIV_FLOOR && code <= BINARY_FMOD;
  if (divides && b == 0) return 0;  // reported
  int64_t y = 0;
  switch (code) {
    case BINARY_ADD:
      y = a + alpha * b;
      break;
    case BINARY_SUB:
      y = a - alpha * b;
      break;
    case BINARY_MUL:
      y = a * b;
      break;
    case BINARY_DIV_FLOOR:
      y = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
      break;
    case BINARY_DIV_TRUNC:
      y = a / b;
      break;
    case BINARY_REMAINDER:
      y = a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
      break;
    case BINARY_FMOD:
      y = a % b;
      break;
    case BINARY_MAXIMUM:
      y = std::max(a, b);
      break;
    case BINARY_MINIMUM:
      y = std::min(a, b);
      break;
    case BINARY_POW:
      return power(a, b, dtype);
    default:
      y = code == BINARY_AND ? a & b : code == BINARY_OR ? a | b : a ^ b;
  }
  return dtype == DType::i64 ? static_cast<double>(y) : wrapped(y, dtype);
}

}  // namespace

bool compare(uint32_t code, double a, double b) {
  switch (code) {
    case COMPARE_EQ:
      return a == b;
    case COMPARE_NE:
      return a != b;
    case COMPARE_LT:
      return a < b;
    case COMPARE_LE:
      return a <= b;
    case COMPARE_GT:
      return a > b;
    case COMPARE_GE:
      return a >= b;
    case LOGICAL_AND:
      return a != 0 && b != 0;
    case LOGICAL_OR:
      return a != 0 || b != 0;
    default:
      return (a != 0) != (b != 0);  // LOGICAL_XOR
  }
}

namespace {

// The dtype of the operands; one of them is a tensor.
DType operand_dtype(const HostCall& call) {
  return (call.args[0].is_tensor() ? call.tensor(0) : call.tensor(1)).dtype;
}

}  // namespace

void arithmetic(HostCall& call, uint32_t code) {
  const bool has_alpha = code == BINARY_ADD || code == BINARY_SUB,
             divides = code >= BINARY_DIV_FLOOR && code <= BINARY_FMOD;
  const DType dtype = operand_dtype(call);
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    const double a = broadcast_to(call.args[0], at), b = broadcast_to(call.args[1], at);
    if (is_float(dtype)) {  // a number is fp32
      const double right = has_alpha ? in_f32(b) * in_f32(call.real(2)) : in_f32(b);
      const double y = of_floats(code, in_f32(a), right);
      out.push(y, error_of_floats(code, a, right, y));
      continue;
    }
    if (divides && b == 0 && dtype != DType::boolean)
      call.reports.push_back({static_cast<uint32_t>(i), 0, STATUS_DIVIDES_BY_ZERO});
    out.push(
        of_integers(code, static_cast<int64_t>(a), static_cast<int64_t>(b), has_alpha ? call.integer(2) : 1, dtype));
  }
  if (dtype == DType::i64) check_i64(call);
}

void comparison(HostCall& call, uint32_t code) {
  const DType dtype = operand_dtype(call);
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    // PyTorch rounds a number to the tensor's dtype before it compares.
    const auto side = [&](size_t index) {
      const double value = broadcast_to(call.args[index], at);
      return is_float(dtype) && !call.args[index].is_tensor() ? stored(value, dtype) : value;
    };
    out.push(compare(code, side(0), side(1)));
  }
}

void clamp(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const auto bound = [&](size_t index, double none) {
    if (!call.has(index)) return none;
    return is_float(x.dtype) ? in_f32(call.real(index)) : call.real(index);
  };
  const double low = bound(1, -INFINITY), high = bound(2, INFINITY);
  for (const double each : x.values) call.out().push(std::isnan(each) ? each : std::min(std::max(each, low), high));
}

// Fractions are dropped; what 32 bits cannot hold saturates, which for i64 is reported if it is finite; NaN becomes 0.
void cast(HostCall& call) {
  HostOutput& out = call.out();
  for (const double x : call.tensor(0).values) {
    if (is_float(out.dtype)) {
      out.push(x);
    } else if (out.dtype == DType::boolean) {
      out.push(x != 0);
    } else {
      const double whole = std::isnan(x) ? 0 : std::trunc(x), held = std::clamp(whole, -0x1p31, 0x1p31 - 1);
      if (out.dtype == DType::i64 && whole != held && std::isfinite(x))
        call.reports.push_back({static_cast<uint32_t>(out.elements.size()), 0, STATUS_LEAVES_32_BITS});
      out.push(wrapped(static_cast<int64_t>(held), out.dtype));
    }
  }
}

}  // namespace pumice::engine::reference
