// SPDX-License-Identifier: Apache-2.0
// The checker of one method, in two files: method.cpp and call.cpp. Private to serialization/.
#pragma once

#include "serialization/types.h"

namespace pumice::engine {

class MethodChecker {
 public:
  MethodChecker(Method& method, const Program& program, std::span<const Operator> operators, const Limits& limits,
                const Where& at)
      : method_(method), program_(program), operators_(operators), limits_(limits), at_(at) {}
  void run();

 private:
  [[noreturn]] static void bad(Code code, const Where& at, const std::string& text);
  static void index(int64_t got, uint64_t size, const char* what, const Where& at);
  Where here(const char* list, size_t i) const { return {&at_, list, static_cast<int64_t>(i)}; }

  // method.cpp, in the order in which they run
  void symbols();
  void exprs();
  void values();
  void inputs();
  void updates();
  Shape shape(const Value& value, const Where& at);
  void bytes(const Value& value, const Shape& dims, int64_t constant, const Where& at);
  void ends(const char* field, ValueKind kind, std::span<const uint32_t> list);
  void names(const char* field, const char* what, std::span<const uint32_t> list);

  // call.cpp
  void call(OpCall& call, const Where& at);
  void arg(Arg& arg, const Operator& op, const Param& param, const Where& at);
  void reads(int64_t value, const Where& at);
  void writes(const OpCall& call, const Operator& op, const Where& at);

  Method& method_;
  const Program& program_;
  std::span<const Operator> operators_;
  const Limits& limits_;
  const Where& at_;
  std::vector<int64_t> at_hint_;  // of every expression
  std::vector<bool> defined_;     // of every value, up to the call at hand
};

}  // namespace pumice::engine
