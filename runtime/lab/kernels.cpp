// SPDX-License-Identifier: Apache-2.0
#include "runtime/lab/kernels.h"

#include "runtime/lab/baseline.h"
#include "runtime/nearest.h"

namespace pumice::lab {
namespace {

constexpr std::string_view kPlainOf = "linear_q4gsw";

}  // namespace

std::vector<std::string> kernels(const Subject& subject, const Options& options) {
  std::vector<std::string> known = {std::string(kPick)};
  if (subject.linear != nullptr)
    for (const LinearKernel& kernel : linear_kernels()) known.emplace_back(kernel.name);
  if (subject.op == kPlainOf) known.emplace_back(kPlain);
  if (options.kernels.empty()) return known;
  for (const std::string& name : options.kernels) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
    fail(Code::InvalidArgument, Stage::api, "kernel", "%s has no kernel '%s': did you mean '%s'? There are %s",
         std::string(subject.op).c_str(), printable(name).c_str(), std::string(nearest(name, known)).c_str(),
         list.c_str());
  }
  return options.kernels;
}

std::string why_not(const Subject& subject, const std::string& kernel, const Case& c, const Features& features) {
  if (kernel == kPlain) return why_not_plain(c, features);
  if (subject.linear == nullptr || kernel == kPick) return "";
  return pumice::why_not(linear_kernel(kernel), subject.linear(c), features);
}

std::string resolved(const Subject& subject, const std::string& kernel, const Case& c, const Features& features) {
  if (kernel != kPick || subject.linear == nullptr) return kernel;
  return std::string(pick_linear(subject.linear(c), features).name);
}

double bound(const Subject& subject, const std::string& kernel, const Case& c, const Features& features) {
  if (subject.linear == nullptr) return 0;
  // The baseline is held to the pick's bound.
  const std::string name = resolved(subject, kernel == kPlain ? std::string(kPick) : kernel, c, features);
  return linear_error(linear_kernel(name), subject.linear(c));
}

std::string forced(const std::string& kernel) {
  return kernel == kPick || kernel == kPlain ? "" : kernel;
}

std::string op_for(const Subject& subject, const std::string& kernel) {
  return std::string(subject.op) + (kernel == kPlain ? "_plain" : "");
}

}  // namespace pumice::lab
