// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/profile.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/file_bytes.h"
#include "vulkan/driver_bugs.h"
#include "vulkan/probe.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

constexpr uint64_t kMost32 = ~uint32_t{0}, kMost64 = ~uint64_t{0};
constexpr size_t kMostBytes = 1 << 16;

// A number of the profile, and what it may be: Vulkan 1.1 promises the least of a limit.
struct Number {
  const char* key;
  uint64_t least, most;
  uint64_t (*get)(const DeviceInfo&);
  void (*set)(DeviceInfo&, uint64_t);
};

#define PUMICE_NUMBER(key, least, most, member)                                \
  {key, least, most, [](const DeviceInfo& d) -> uint64_t { return d.member; }, \
   [](DeviceInfo& d, uint64_t value) { d.member = static_cast<std::remove_reference_t<decltype(d.member)>>(value); }}
constexpr Number kNumbers[] = {
    PUMICE_NUMBER("api_version", 1u << 22 | 1u << 12, kMost32, api_version),
    PUMICE_NUMBER("vendor_id", 0, kMost32, vendor_id),
    PUMICE_NUMBER("device_id", 0, kMost32, device_id),
    PUMICE_NUMBER("driver_id", 0, kMost32, driver_id),
    PUMICE_NUMBER("driver_number", 0, kMost32, driver_number),
    PUMICE_NUMBER("memory_bytes", 0, kMost64, memory_bytes),
    PUMICE_NUMBER("heap_bytes", 0, kMost64, heap_bytes),
    PUMICE_NUMBER("compute_units", 0, 1 << 16, features.compute_units),
    PUMICE_NUMBER("subgroup_size", 1, 128, features.subgroup_size),
    PUMICE_NUMBER("min_subgroup_size", 1, 128, features.min_subgroup_size),
    PUMICE_NUMBER("max_subgroup_size", 1, 128, features.max_subgroup_size),
    PUMICE_NUMBER("max_invocations", 128, kMost32, features.max_invocations),
    PUMICE_NUMBER("max_shared_bytes", 16384, kMost32, features.max_shared_bytes),
    PUMICE_NUMBER("max_push_bytes", 128, kMost32, features.max_push_bytes),
    PUMICE_NUMBER("max_storage_buffers", 4, kMost32, features.max_storage_buffers),
    PUMICE_NUMBER("max_groups_x", 65535, kMost32, features.max_groups[0]),
    PUMICE_NUMBER("max_groups_y", 65535, kMost32, features.max_groups[1]),
    PUMICE_NUMBER("max_groups_z", 65535, kMost32, features.max_groups[2]),
    PUMICE_NUMBER("max_storage_bytes", 1 << 27, kMost64, features.max_storage_bytes),
    PUMICE_NUMBER("max_allocation_bytes", 1 << 30, kMost64, features.max_allocation_bytes),
    PUMICE_NUMBER("storage_alignment", 1, 256, features.storage_alignment),
    PUMICE_NUMBER("max_image_3d", 256, kMost32, features.max_image_3d),
    PUMICE_NUMBER("max_image_2d", 4096, kMost32, features.max_image_2d),
};
#undef PUMICE_NUMBER

struct Text {
  const char* key;
  std::string DeviceInfo::* place;
};
constexpr Text kTexts[] = {{"name", &DeviceInfo::name},
                           {"kind", &DeviceInfo::kind},
                           {"driver", &DeviceInfo::driver},
                           {"driver_version", &DeviceInfo::driver_version}};

struct Matrices {
  const char* key;
  MatrixShapes Features::* place;
};
constexpr Matrices kMatrices[] = {{"matrix_f16", &Features::matrix_f16}, {"matrix_s8", &Features::matrix_s8}};

constexpr const char* kFormats[kImageFormats] = {"rgba32f", "rgba16f", "rgba32i", "rgba8i", "rgba8u", "rgba32u"};
constexpr const char* kKinds[] = {"discrete", "integrated", "virtual", "cpu", "other"};

class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : path_(path) {
    if (text.size() > kMostBytes) bad("", "it has %zu bytes, a profile at most %zu", text.size(), kMostBytes);
    all_ = json::parse(std::string(text), nullptr, false);  // as others do: no second parser in the program
    if (!all_.is_object()) bad("", "it is no JSON object; `pumice devices --profile` writes one");
    if (const uint64_t schema = number("schema", 0, kMost64); schema != 1)
      bad("schema", "it is %llu; this build reads 1", static_cast<unsigned long long>(schema));
  }

  DeviceInfo device() {
    DeviceInfo info{};
    for (const Text& each : kTexts) {
      const json& value = at(each.key);
      if (!value.is_string()) bad(each.key, "it is no text");
      info.*each.place = printable(value.get_ref<const std::string&>());
    }
    if (std::ranges::find(kKinds, info.kind) == std::end(kKinds))
      bad("kind", "there is no kind '%s'", info.kind.c_str());
    info.features.cpu = info.kind == "cpu";
    for (const Number& each : kNumbers) each.set(info, number(each.key, each.least, each.most));
    for (uint32_t f = 0; f < kNumFeatures; ++f) names_.push_back(name(static_cast<Feature>(f)));
    info.features.bits = bits("features", names_);
    info.features.guess_registers();
    info.features.image_formats = static_cast<uint32_t>(bits("image_formats", kFormats));
    for (const Matrices& each : kMatrices) shapes(each.key, info.features.*each.place);
    check_features(info.features);
    return info;
  }

 private:
  template <class... Args>
  [[noreturn]] void bad(const std::string& key, const char* form, Args... args) const {
    const std::string where = path_ + (key.empty() ? "" : ": " + key);
    if constexpr (sizeof...(args) == 0)  // clang takes a format without arguments for one that a stranger gave
      fail(Code::BadSchema, Stage::api, where, "%s", form);
    else
      fail(Code::BadSchema, Stage::api, where, form, args...);
  }

  const json& at(const char* key) const {
    const auto found = all_.find(key);
    if (found == all_.end()) bad(key, "it is missing");
    return *found;
  }

  uint64_t number(const char* key, uint64_t least, uint64_t most) const {
    const json& value = at(key);
    const uint64_t result = value.is_number_unsigned() ? value.get<uint64_t>() : 0;
    if (!value.is_number_unsigned() || result < least || result > most)
      bad(key, "it takes a whole number from %llu to %llu", static_cast<unsigned long long>(least),
          static_cast<unsigned long long>(most));
    return result;
  }

  const json& list(const char* key) const {
    const json& value = at(key);
    if (!value.is_array()) bad(key, "it is no list");
    return value;
  }

  template <class Names>
  uint64_t bits(const char* key, const Names& names) const {
    uint64_t result = 0;
    for (const json& each : list(key)) {
      const auto found = std::ranges::find(names, each.is_string() ? each.get<std::string>() : "");
      if (found == std::end(names))
        bad(key, "it has %s, which this build does not know", printable(each.dump()).c_str());
      result |= uint64_t{1} << (found - std::begin(names));
    }
    return result;
  }

  void shapes(const char* key, MatrixShapes& out) const {
    const json& all = list(key);
    if (all.size() > out.size()) bad(key, "it has %zu shapes, at most %zu are possible", all.size(), out.size());
    for (size_t i = 0; i < all.size(); ++i) {
      MatrixShape& shape = out[i];
      const std::string text = all[i].is_string() ? all[i].get<std::string>() : "";
      char rest = 0;
      if (std::sscanf(text.c_str(), "%4ux%4ux%4u%c", &shape.m, &shape.n, &shape.k, &rest) != 3 || shape.m == 0 ||
          shape.n == 0 || shape.k == 0)
        bad(key, "'%s' is no shape such as 16x16x16", printable(text).c_str());
    }
  }

  // What selection takes for granted of a device.
  void check_features(const Features& f) const {
    const auto powers = {f.subgroup_size, f.min_subgroup_size, f.max_subgroup_size};
    if (!std::ranges::all_of(powers, [](uint32_t size) { return std::has_single_bit(size); }) ||
        f.min_subgroup_size > f.subgroup_size || f.subgroup_size > f.max_subgroup_size)
      bad("subgroup_size", "it takes powers of two, and is from min_subgroup_size to max_subgroup_size");
    if (!std::has_single_bit(f.storage_alignment)) bad("storage_alignment", "it takes powers of two");
    if (f.has(Feature::coopmat) && f.matrix_f16[0].m == 0 && f.matrix_s8[0].m == 0)
      bad("features", "'coopmat' needs shapes of matrices");
    if (f.has(Feature::fragments) && !may_have_fragments(f, Feature::fragments))
      bad("features", "'fragments' needs subgroups of 32 and matrices of 16x16x16 and 16x8x16");
    if (f.has(Feature::fragments_int8) && !may_have_fragments(f, Feature::fragments_int8))
      bad("features", "'fragments_int8' needs subgroups of 32 and matrices of bytes of 16x8x32");
  }

  std::string path_;
  json all_;
  std::vector<std::string> names_;
};

json names_of(uint64_t bits, uint32_t count, const char* (*name_of)(uint32_t)) {
  json names = json::array();
  for (uint32_t i = 0; i < count; ++i)
    if (bits >> i & 1) names.push_back(name_of(i));
  return names;
}

}  // namespace

std::string profile_text(const Device& device) {
  DeviceInfo info = device.info();
  // Measured, not asked of the driver.
  for (const Feature feature : {Feature::fragments, Feature::fragments_int8})
    if (!device.features().has(feature)) info.features.bits &= ~bit(feature);
  json all = {{"schema", 1}};
  for (const Text& each : kTexts) all[each.key] = info.*each.place;
  for (const Number& each : kNumbers) all[each.key] = each.get(info);
  all["features"] =
      names_of(info.features.bits, kNumFeatures, [](uint32_t f) { return name(static_cast<Feature>(f)); });
  all["image_formats"] = names_of(info.features.image_formats, kImageFormats, [](uint32_t f) { return kFormats[f]; });
  for (const Matrices& each : kMatrices) {
    all[each.key] = json::array();
    for (const MatrixShape& shape : info.features.*each.place)
      if (shape.m != 0) all[each.key].push_back(format("%ux%ux%u", shape.m, shape.n, shape.k));
  }
  return all.dump(1, ' ', false, json::error_handler_t::replace);
}

DeviceInfo parse_profile(std::string_view text, const std::string& path) {
  return Reader(text, path).device();
}

DeviceInfo read_profile(const std::string& file_or_name) {
  std::string path = file_or_name;
#ifdef PUMICE_PROFILES_DIR
  if (path.find_first_of("/.") == std::string::npos) path = std::string(PUMICE_PROFILES_DIR) + "/" + path + ".json";
#endif
  try {
    const FileBytes file(path);
    return parse_profile({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, printable(path));
  } catch (const Error& error) {
    if (error.code() == Code::BadSchema) throw;
    fail(error.code(), Stage::api, printable(path),
         "%s; a profile is a file that `pumice devices --profile` wrote, or the name of one in test/profiles",
         error.what());
  }
}

Features features_of(const DeviceInfo& info, const std::string& switches) {
  return pumice::engine::apply(info.features, off_for_bugs(info) + switches);
}

}  // namespace pumice::engine::kernel_bench
