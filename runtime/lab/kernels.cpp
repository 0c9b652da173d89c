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
  if (subject.is_linear)
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

std::string why_not(const Problem& problem, const Subject& subject, const std::string& kernel, int64_t m,
                    const Features& features) {
  if (kernel == kPlain) return why_not_plain(problem.shape(), features);
  if (!subject.is_linear || kernel == kPick) return "";
  return pumice::why_not(linear_kernel(kernel), problem.linear(m), features);
}

double bound(const Problem& problem, const Subject& subject, const std::string& kernel, int64_t m,
             const Features& features) {
  if (!subject.is_linear) return 0;
  const LinearShape shape = problem.linear(m);
  const bool has_name = kernel != kPick && kernel != kPlain;  // the baseline is held to the pick's bound
  return linear_error(has_name ? linear_kernel(kernel) : pick_linear(shape, features), shape);
}

std::string forced(const std::string& kernel) {
  return kernel == kPick || kernel == kPlain ? "" : kernel;
}

std::string op_for(const Subject& subject, const std::string& kernel) {
  return std::string(subject.op) + (kernel == kPlain ? "_plain" : "");
}

}  // namespace pumice::lab
