// SPDX-License-Identifier: Apache-2.0
// JSON texts: of files, models, devices, profiles and memory.
#pragma once

#include <span>
#include <string>

#include "runtime/model.h"

namespace pumice::engine {

// What is in a file; runs the four gates first. Touches no device: memory and dispatches are those of one that has
// `features`, at the exported sizes.
std::string inspect(std::span<const std::byte> file, const Features& features = baseline_features());
std::string inspect_file(const std::string& path, const Features& features = baseline_features());
// A model's device and methods; every device of the machine; a profile; the memory of a session.
std::string describe(const Model& model);
std::string describe_devices();
std::string describe(std::span<const ProfileRow> rows);
std::string describe(const SessionMemory& memory);

}  // namespace pumice::engine
