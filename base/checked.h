// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers that come from a file: an overflow is remembered, never wrapped.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

namespace pumice::engine {

template <class T>
class Checked {
  static_assert(std::is_integral_v<T> && sizeof(T) == 8, "sizes, offsets and dimensions have 64 bits");

 public:
  Checked(T value) : value_(value) {}  // NOLINT(google-explicit-constructor): numbers mix freely with checked ones
  bool ok() const { return ok_; }
  std::optional<T> value() const { return ok_ ? std::optional<T>(value_) : std::nullopt; }

  static Checked none() { return Checked(T(0)).also(false); }

  friend Checked operator+(Checked a, Checked b) {
    T sum;
    const bool overflow = __builtin_add_overflow(a.value_, b.value_, &sum);
    return Checked(sum).also(a.ok_ && b.ok_ && !overflow);
  }
  friend Checked operator-(Checked a, Checked b) {
    T difference;
    const bool overflow = __builtin_sub_overflow(a.value_, b.value_, &difference);
    return Checked(difference).also(a.ok_ && b.ok_ && !overflow);
  }
  friend Checked operator*(Checked a, Checked b) {
    T product;
    const bool overflow = __builtin_mul_overflow(a.value_, b.value_, &product);
    return Checked(product).also(a.ok_ && b.ok_ && !overflow);
  }

 private:
  Checked also(bool ok) const {
    Checked result = *this;
    result.ok_ = ok_ && ok;
    return result;
  }

  T value_;
  bool ok_ = true;
};

using CheckedU64 = Checked<uint64_t>;
using CheckedI64 = Checked<int64_t>;

}  // namespace pumice::engine
