// SPDX-License-Identifier: Apache-2.0
// What the package needs of the engine's inside; a file of its own because the engine's headers and the public one do
// not mix.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

using OpRow = std::tuple<std::string, int, std::string, std::map<std::string, std::vector<std::string>>>;

std::vector<OpRow> pumice_op_table();   // for the exporter
uint64_t pumice_validation_messages();  // for tests, which run with PUMICE_VALIDATE=1
