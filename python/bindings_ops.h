// SPDX-License-Identifier: Apache-2.0
// The operator table for the exporter; a file of its own because the engine's headers and the public one do not mix.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

using OpRow = std::tuple<std::string, int, std::string, std::map<std::string, std::vector<std::string>>>;

std::vector<OpRow> pumice_op_table();
