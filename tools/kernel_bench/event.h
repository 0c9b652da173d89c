// SPDX-License-Identifier: Apache-2.0
// Events of kernel_bench, as JSON. Field by field: lists of pairs in braces take several times the code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pumice::engine::kernel_bench {

nlohmann::json event(const std::string& kind);
void put(nlohmann::json& row, const char* key, const std::string& value);
void put(nlohmann::json& row, const char* key, double value);
void put(nlohmann::json& row, const char* key, size_t value);

}  // namespace pumice::engine::kernel_bench
