// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

// Adds kernel_list, kernel_test, kernel_bench and kernel_cases (tools/kernel_bench/kernel_bench.h) to the module.
void add_kernel_bench(pybind11::module_& m);
