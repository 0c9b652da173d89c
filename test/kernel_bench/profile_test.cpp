// SPDX-License-Identifier: Apache-2.0
// Profiles are files of users: what is wrong with one is said, and what a driver is known to do wrong is switched off.
#include "tools/kernel_bench/profile.h"

#include <gmock/gmock.h>
#include <vulkan/vulkan_core.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "test/support/error_of.h"
#include "test/vulkan/gpu.h"
#include "vulkan/driver_bugs.h"

namespace pumice::engine::test {
namespace {

using kernel_bench::features_of;
using kernel_bench::parse_profile;
using nlohmann::json;
using testing::HasSubstr;

json profile_of(const std::string& name) {
  return json::parse(std::ifstream(std::string(PUMICE_TEST_DIR) + "/profiles/" + name + ".json"));
}

DeviceInfo with(json profile, const json& changes) {
  profile.update(changes);
  return parse_profile(profile.dump(), "it");
}

TEST(Profile, OfADeviceIsWhatTheDeviceIs) {
  const auto device = open();
  const DeviceInfo read = parse_profile(kernel_bench::profile_text(*device), "it");
  const Features is = features_of(read, ""), want = device->features();
  EXPECT_EQ(read.name, device->info().name);
  EXPECT_EQ(is.bits, want.bits);
  EXPECT_EQ(is.matrix_f16, want.matrix_f16);
  EXPECT_EQ(is.matrix_s8, want.matrix_s8);
  EXPECT_EQ(is.image_formats, want.image_formats);
  EXPECT_EQ(std::tie(is.subgroup_size, is.max_subgroup_size, is.max_shared_bytes, is.max_invocations, is.max_push_bytes,
                     is.max_storage_buffers, is.max_storage_bytes, is.storage_alignment, is.compute_units, is.cpu),
            std::tie(want.subgroup_size, want.max_subgroup_size, want.max_shared_bytes, want.max_invocations,
                     want.max_push_bytes, want.max_storage_buffers, want.max_storage_bytes, want.storage_alignment,
                     want.compute_units, want.cpu));
}

TEST(Profile, WhatIsWrongWithItIsSaid) {
  const std::pair<json, const char*> wrong[] = {
      {{{"schema", 2}}, "schema"},
      {{{"name", 1}}, "name"},
      {{{"kind", "toaster"}}, "kind"},
      {{{"max_shared_bytes", 16383}}, "max_shared_bytes"},
      {{{"max_storage_bytes", -1}}, "max_storage_bytes"},
      {{{"max_invocations", 1e9}}, "max_invocations"},
      {{{"max_push_bytes", "128"}}, "max_push_bytes"},
      {{{"max_groups_y", nullptr}}, "max_groups_y"},
      {{{"subgroup_size", 24}}, "subgroup_size"},
      {{{"subgroup_size", 256}}, "subgroup_size"},
      {{{"min_subgroup_size", 128}}, "subgroup_size"},
      {{{"storage_alignment", 48}}, "storage_alignment"},
      {{{"features", {"float16", "telepathy"}}}, "features"},
      {{{"features", "float16"}}, "features"},
      {{{"features", {"fragments"}}}, "features"},
      {{{"features", {"coopmat"}}, {"matrix_f16", json::array()}, {"matrix_s8", json::array()}}, "features"},
      {{{"matrix_f16", {"16x16"}}}, "matrix_f16"},
      {{{"matrix_f16", {"16x16x16x16"}}}, "matrix_f16"},
      {{{"matrix_s8", {"0x16x16"}}}, "matrix_s8"},
      {{{"matrix_s8", {"99999x16x16"}}}, "matrix_s8"},
      {{{"matrix_f16", json::array_t(9, "8x8x8")}}, "matrix_f16"},
      {{{"image_formats", {7}}}, "image_formats"},
  };
  const json good = profile_of("navi31");
  with(good, json::object());
  for (const auto& [changes, key] : wrong) {
    const Error error = error_of([&, &changes = changes] { with(good, changes); });
    EXPECT_EQ(error.code(), Code::BadSchema) << changes;
    EXPECT_EQ(error.path(), std::string("it: ") + key) << changes;
  }
  for (const auto& [key, value] : good.items()) {
    json less = good;
    less.erase(key);
    EXPECT_EQ(error_of([&] { with(less, json::object()); }).path(), "it: " + key);
  }
  for (const std::string& text : {std::string("[]"), std::string("{"), std::string(), std::string(1 << 17, '['),
                                  std::string(1 << 15, '['), std::string("\xff\xfe{}")})
    EXPECT_EQ(error_of([&] { parse_profile(text, "it"); }).code(), Code::BadSchema) << text.substr(0, 9);
  EXPECT_EQ(error_of([] { kernel_bench::read_profile("/no/such.json"); }).code(), Code::IoError);
  EXPECT_EQ(error_of([] { kernel_bench::read_profile("/"); }).code(), Code::PathRejected);
}

// A GPU with every feature, by a driver with the bug; the same with another version, kind, name, vendor or driver.
struct Case {
  const char* link;
  json has;
  std::vector<Feature> off;
  std::vector<json> has_not;
};

const std::vector<Case>& cases() {
  constexpr uint32_t kOld = VK_MAKE_API_VERSION(0, 512, 502, 0), kGood = VK_MAKE_API_VERSION(0, 512, 800, 64),
                     kNew = VK_MAKE_API_VERSION(0, 512, 842, 19);
  const auto by = [](VkDriverId driver, uint32_t number, const char* kind, const char* name) {
    return json{{"driver_id", driver}, {"driver_number", number}, {"kind", kind}, {"name", name}};
  };
  const json radv{{"driver_id", VK_DRIVER_ID_MESA_RADV}};
  static const std::vector<Case> all = {
      {"AMDVLK/issues/422",
       by(VK_DRIVER_ID_AMD_PROPRIETARY, VK_MAKE_API_VERSION(0, 2, 0, 388), "integrated", "AMD Radeon 860M"),
       {Feature::coopmat},
       {{{"kind", "discrete"}}, radv}},
      {"audio.cpp/pull/193",
       by(VK_DRIVER_ID_AMD_PROPRIETARY, VK_MAKE_API_VERSION(0, 2, 0, 353), "discrete", "AMD Radeon RX 6800"),
       {Feature::int_dot},
       {{{"name", "AMD Radeon RX 7900 XTX"}}, radv}},
      {"IGCIT/Intel-GPU-Community-Issue-Tracker-IGCIT/issues/1487",
       by(VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, 101u << 14 | 8826, "discrete", "Intel(R) Arc(TM) Pro B70 Graphics"),
       {Feature::coopmat},
       {{{"kind", "integrated"}}, {{"driver_id", VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA}}}},
      {"llama.cpp/issues/28502",
       by(VK_DRIVER_ID_IMAGINATION_PROPRIETARY, 1, "integrated", "PowerVR DXT-48-1536 MC1"),
       {Feature::coopmat, Feature::int_dot},
       {{{"driver_id", VK_DRIVER_ID_IMAGINATION_OPEN_SOURCE_MESA}}}},
      {"ncnn/issues/6778",
       by(VK_DRIVER_ID_QUALCOMM_PROPRIETARY, kOld, "integrated", "Adreno (TM) 640"),
       {Feature::subgroup_shuffle},
       {{{"driver_number", kGood}}, {{"driver_id", VK_DRIVER_ID_MESA_TURNIP}}}},
      {"ncnn/issues/6778",
       by(VK_DRIVER_ID_QUALCOMM_PROPRIETARY, kNew, "integrated", "Adreno (TM) 840"),
       {Feature::subgroup_shuffle},
       {{{"driver_number", kGood}}, {{"driver_id", VK_DRIVER_ID_MESA_TURNIP}}}},
      {"ncnn/pull/6972",
       by(VK_DRIVER_ID_QUALCOMM_PROPRIETARY, kNew, "integrated", "Adreno (TM) 840"),
       {Feature::coopmat},
       {{{"driver_number", kGood}}, {{"driver_id", VK_DRIVER_ID_MESA_TURNIP}}}},
      {"MoltenVK/issues/2756",
       by(VK_DRIVER_ID_MOLTENVK, 10401, "discrete", "AMD Radeon Pro 5500M"),
       {Feature::subgroup_arithmetic, Feature::subgroup_shuffle, Feature::subgroup_clustered},
       {{{"vendor_id", 0x106b}}, radv}},
  };
  return all;
}

TEST(DriverBugs, TheProfileOfADriverSwitchesThemAndNoOther) {
  const json good = profile_of("navi31");
  for (const Case& each : cases()) {
    json bad = good;
    bad.update(each.has);
    const DeviceInfo info = with(bad, json::object());
    const Features off = features_of(info, "");
    std::string back;
    for (const Feature feature : each.off) {
      ASSERT_TRUE(info.features.has(feature)) << name(feature);
      EXPECT_FALSE(off.has(feature)) << each.link << name(feature);
      back += std::string("+") + name(feature) + ",";
    }
    const Features given = features_of(info, back);
    for (const Feature feature : each.off) EXPECT_TRUE(given.has(feature)) << "the user knows better";
    EXPECT_THAT(bugs_of(info), testing::Contains(testing::Field(&DriverBug::link, HasSubstr(each.link))));
    for (const json& changes : each.has_not)
      EXPECT_THAT(bugs_of(with(bad, changes)),
                  testing::Not(testing::Contains(testing::Field(&DriverBug::link, HasSubstr(each.link)))))
          << changes;
  }
  EXPECT_EQ(cases().size(), driver_bugs().size()) << "each row has a case here";
}

// The driver would end the process.
TEST(DriverBugs, ADriverIsNotAskedWhatItCannotAnswer) {
  const json good = profile_of("navi31");
  EXPECT_FALSE(may_ask(with(good, cases()[0].has), Feature::coopmat));
  EXPECT_TRUE(may_ask(with(good, cases()[2].has), Feature::coopmat));
  EXPECT_TRUE(may_ask(with(good, json::object()), Feature::coopmat));
}

TEST(DriverBugs, NothingIsKnownOfTheDriversOfTheTests) {
  for (const char* name : {"llvmpipe", "swiftshader", "navi31", "turing", "m1", "adreno740"})
    EXPECT_THAT(bugs_of(with(profile_of(name), json::object())), testing::IsEmpty()) << name;
}

}  // namespace
}  // namespace pumice::engine::test
