// SPDX-License-Identifier: Apache-2.0
// The C interface: stale handles, structs of other sizes, null pointers; and the same calls through pumice.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <thread>
#include <type_traits>

#include "pumice/pumice.hpp"
#include "runtime/describe.h"
#include "test/graph/make.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

pumice::Options options() {
  const char* device = std::getenv("PUMICE_DEVICE");
  return {.device = device != nullptr && *device != 0 ? device : "llvmpipe", .features = "", .cache_dir = "off"};
}

struct CApi : testing::Test {
  std::vector<std::byte> file = pumice::engine::test::adds().file();
  pumice::Model model = pumice::Model::load(file, options());
  std::vector<float> x{1, 2, 3};
  pumice_tensor input = pumice::view<float>(x, {1, 3});
};

std::string text() {
  return pumice_last_error()->text;
}

// This file includes the public header and the engine's: both have a Model and a Session, in different namespaces.
TEST_F(CApi, PublicAndEngineHeadersMeetInOneFile) {
  namespace engine = pumice::engine;
  static_assert(!std::is_same_v<pumice::Model, engine::Model> && !std::is_same_v<pumice::Session, engine::Session>);
  const auto loaded = engine::Model::load([] { return engine::Device::open({options().device, "", "off"}); }, file);
  EXPECT_EQ(loaded->program().methods.size(), model.num_methods());
  EXPECT_EQ(engine::describe(*loaded), model.describe());
}

TEST_F(CApi, RunsThroughTheCppHeader) {
  pumice::Session session(model);
  session.run({input});
  EXPECT_THAT(session.output<float>(0), ElementsAre(3, 5, 7));
  EXPECT_EQ(session.output(0).rank, 2u);
  EXPECT_EQ(session.output(0).dims[1], 3);
  const auto infos = model.inputs();
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_STREQ(infos[0].name, "x");
  EXPECT_STREQ(infos[0].symbol[0], "s");
  EXPECT_EQ(infos[0].symbol[1], nullptr);
  EXPECT_EQ(infos[0].min[0], 1);
  EXPECT_EQ(infos[0].max[0], 1000);
  EXPECT_THAT(model.describe(), HasSubstr("\"example\":[4,3]"));
  EXPECT_THAT(session.profile({&input, 1}), HasSubstr("\"op\":\"add\""));
  EXPECT_THAT(session.memory(), HasSubstr("\"arena\""));
  session.reset();
}

TEST_F(CApi, APreparedRunHasNoOutputs) {
  pumice::Session session(model);
  session.run({&input, 1});
  session.prepare({&input, 1});
  EXPECT_THAT(session.memory(), testing::Not(HasSubstr("\"arena\":0")));
  pumice_tensor output = PUMICE_INIT(pumice_tensor);
  EXPECT_EQ(pumice_session_output(session.handle(), 0, &output), PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_session_prepare(session.handle(), 7, &input, 1), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_session_prepare(session.handle(), 0, &input, 0), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_session_prepare(session.handle(), 0, nullptr, 1), PUMICE_INVALID_ARGUMENT);
  session.run({&input, 1});
  EXPECT_EQ(pumice_session_output(session.handle(), 0, &output), PUMICE_OK);
}

TEST_F(CApi, SessionsOutliveTheirModel) {
  pumice_session session;
  ASSERT_EQ(pumice_session_new(model.handle(), &session), PUMICE_OK);
  ASSERT_EQ(pumice_model_free(model.handle()), PUMICE_OK);
  EXPECT_EQ(pumice_session_run(session, 0, &input, 1), PUMICE_OK);
  EXPECT_EQ(pumice_session_free(session), PUMICE_OK);
}

TEST_F(CApi, StaleHandlesAreWrongState) {  // R06
  pumice_session session;
  ASSERT_EQ(pumice_session_new(model.handle(), &session), PUMICE_OK);
  ASSERT_EQ(pumice_session_free(session), PUMICE_OK);
  EXPECT_EQ(pumice_session_free(session), PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_session_run(session, 0, &input, 1), PUMICE_WRONG_STATE);
  EXPECT_THAT(text(), HasSubstr("it was freed or never made"));
  pumice_session fresh;  // reuses the slot of the old one
  ASSERT_EQ(pumice_session_new(model.handle(), &fresh), PUMICE_OK);
  EXPECT_EQ(pumice_session_reset(session), PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_session_cancel(session), PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_session_seed(session, 1), PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_session_seed(fresh, 1), PUMICE_WRONG_STATE);
  EXPECT_THAT(text(), HasSubstr("draws no random numbers"));
  EXPECT_EQ(pumice_session_cancel(fresh), PUMICE_OK) << "no run is under way";
  pumice_tensor output = PUMICE_INIT(pumice_tensor);
  EXPECT_EQ(pumice_session_output(fresh, 0, &output), PUMICE_WRONG_STATE);
  for (const uint64_t invented : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, fresh.handle + 1})
    EXPECT_EQ(pumice_session_reset({invented}), PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_model_free({session.handle}),
            session.handle == model.handle().handle ? PUMICE_OK : PUMICE_WRONG_STATE);
  EXPECT_EQ(pumice_session_free(fresh), PUMICE_OK);
}

TEST_F(CApi, StructSizes) {  // R10
  const pumice::Options given = options();
  pumice_options none = given.c();
  pumice_model loaded{};
  const auto load = [&](const pumice_options* o) { return pumice_model_load(file.data(), file.size(), o, &loaded); };
  for (const uint32_t size : {0u, 4u, static_cast<uint32_t>(sizeof none) - 1, 1u << 30}) {
    none.struct_size = size;
    EXPECT_EQ(load(&none), PUMICE_INVALID_ARGUMENT) << size;
    EXPECT_STREQ(pumice_last_error()->path, "options");
  }
  none.struct_size = offsetof(pumice_options, max_memory);  // of the header before there was a budget
  none.max_memory = 1;                                      // not there: too little for any model
  EXPECT_EQ(load(&none), PUMICE_OK) << pumice_last_error()->text;
  EXPECT_EQ(pumice_model_free(loaded), PUMICE_OK);
  struct Newer {
    pumice_options options;
    uint64_t more;
  } newer{given.c(), 0};
  newer.options.struct_size = sizeof newer;
  EXPECT_EQ(load(&newer.options), PUMICE_OK);
  EXPECT_EQ(pumice_model_free(loaded), PUMICE_OK);
  newer.more = 1;
  EXPECT_EQ(load(&newer.options), PUMICE_UNSUPPORTED_VERSION);
}

TEST_F(CApi, NullPointers) {
  EXPECT_EQ(pumice_model_load(nullptr, 100, nullptr, nullptr), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_model_load_file(nullptr, nullptr, nullptr), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_devices(nullptr), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_check(nullptr, 1), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_check(nullptr, 0), PUMICE_TRUNCATED);
  EXPECT_EQ(pumice_inspect(file.data(), file.size(), nullptr), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_model_counts(model.handle(), 0, nullptr, nullptr), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_model_input(model.handle(), 0, 0, nullptr), PUMICE_INVALID_ARGUMENT);
  pumice::Session session(model);
  EXPECT_EQ(pumice_session_run(session.handle(), 0, nullptr, 1), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_session_new(model.handle(), nullptr), PUMICE_INVALID_ARGUMENT);
  pumice_text_free(nullptr);
}

TEST_F(CApi, OddTensors) {
  pumice::Session session(model);
  const auto run = [&](const auto& change) {
    pumice_tensor odd = input;
    change(odd);
    return pumice_session_run(session.handle(), 0, &odd, 1);
  };
  EXPECT_EQ(run([](pumice_tensor& t) { t.rank = 9; }), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(run([](pumice_tensor& t) { t.dtype = 7; }), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(run([](pumice_tensor& t) { t.struct_size = 8; }), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(run([](pumice_tensor& t) { t.dims[0] = INT64_MIN; }), PUMICE_INVALID_ARGUMENT);
  std::vector<char> shifted(13);
  std::memcpy(shifted.data() + 1, x.data(), 12);
  EXPECT_EQ(run([&](pumice_tensor& t) { t.data = shifted.data() + 1; }), PUMICE_OK);
  EXPECT_THAT(session.output<float>(0), ElementsAre(3, 5, 7));
  float short_of[2];
  EXPECT_EQ(pumice_session_read(session.handle(), 0, short_of, sizeof short_of), PUMICE_INVALID_ARGUMENT);
  EXPECT_EQ(pumice_session_read(session.handle(), 1, short_of, 0), PUMICE_INVALID_ARGUMENT);
}

TEST_F(CApi, EveryThreadGetsItsOwnOutputs) {
  pumice::Session session(model);
  std::vector<std::thread> threads;
  std::vector<int> right(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto value = static_cast<float>(1000 * t + i);
        const std::vector<float> mine(300, value);
        const auto outputs = session.call({pumice::view<float>(mine, {100, 3})});
        right[static_cast<size_t>(t)] += outputs[0].values<float>() == std::vector<float>(300, 2 * value + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, testing::Each(300));
}

TEST_F(CApi, RoomForOutputs) {  // R11
  pumice::Session session(model);
  const auto call = [&](pumice_room room, void* user) {
    return pumice_session_call(session.handle(), 0, &input, 1, room, user);
  };
  EXPECT_EQ(call(nullptr, nullptr), PUMICE_INVALID_ARGUMENT);
  const auto nowhere = [](void*, uint32_t, const pumice_tensor*, void**) { return 0; };
  EXPECT_EQ(call(nowhere, nullptr), PUMICE_OK);
  EXPECT_THAT(session.output<float>(0), ElementsAre(3, 5, 7));
  const auto full = [](void*, uint32_t, const pumice_tensor*, void**) { return 1; };
  EXPECT_EQ(call(full, nullptr), PUMICE_CANCELLED);
  EXPECT_STREQ(pumice_last_error()->path, "output 0");
  const auto again = [](void* user, uint32_t, const pumice_tensor*, void**) {
    EXPECT_EQ(pumice_session_reset(*static_cast<pumice_session*>(user)), PUMICE_BUSY);
    return 0;
  };
  pumice_session handle = session.handle();
  EXPECT_EQ(call(again, &handle), PUMICE_OK);
  const auto throws = [](uint32_t, const pumice_tensor&) -> void* { throw std::runtime_error("full"); };
  EXPECT_THROW(session.call_into({&input, 1}, 0, throws), std::runtime_error);
  const auto outputs = session.call({input});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].dims, ElementsAre(1, 3));
  EXPECT_THAT(outputs[0].values<float>(), ElementsAre(3, 5, 7));
}

// All inputs are copied before anything runs, so an output may go where an input came from.
TEST_F(CApi, R09_OutputOverInput) {
  pumice::Session session(model);
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const auto into = [&](uint64_t at) {
    return [&memory, at](uint32_t, const pumice_tensor&) -> void* { return &memory[at]; };
  };
  const std::vector<int64_t> one{1, 3}, two{2, 3};
  session.call_into(std::vector{pumice::view(PUMICE_F32, two, memory.data(), 24)}, 0, into(0));
  EXPECT_THAT(memory, ElementsAre(3, 5, 7, 9, 11, 13));
  session.call_into(std::vector{pumice::view(PUMICE_F32, one, memory.data(), 12)}, 0, into(1));
  EXPECT_THAT(memory, ElementsAre(3, 7, 11, 15, 11, 13));
}

// A function that misbehaves as far as C lets it: nothing unwinds or hangs.
TEST_F(CApi, R11_BytesFromOutside) {
  pumice::engine::test::Maker maker = pumice::engine::test::lookup();
  maker.model.program.constants[0].external = true;
  const auto bytes = std::exchange(maker.model.constants, {});
  const std::vector<std::byte> outside = maker.file();
  const pumice::Options chosen = options();
  pumice_options given = chosen.c();
  pumice_model loaded;
  const auto load = [&](auto function, void* user) {
    given.external = function;
    given.user = user;
    return pumice_model_load(outside.data(), outside.size(), &given, &loaded);
  };
  using Data = const void**;
  EXPECT_EQ(load([](void*, const char*, Data, uint64_t*) { return 1; }, nullptr), PUMICE_WEIGHTS_MISMATCH);
  EXPECT_EQ(load([](void*, const char*, Data, uint64_t*) { return 0; }, nullptr), PUMICE_WEIGHTS_MISMATCH);
  EXPECT_THAT(text(), HasSubstr("got 0 bytes for 'c0', want 40"));
  const auto null = [](void*, const char*, Data, uint64_t* size) {
    *size = 40;
    return 0;
  };
  EXPECT_EQ(load(null, nullptr), PUMICE_INVALID_ARGUMENT);
  EXPECT_STREQ(pumice_last_error()->path, "external 'c0'");
  EXPECT_THAT(text(), HasSubstr("null pointer for 40 bytes"));
  EXPECT_EQ(load([](void*, const char*, Data, uint64_t*) -> int { throw std::runtime_error("thrown"); }, nullptr),
            PUMICE_INTERNAL);
  EXPECT_EQ(text(), "thrown");
  const auto enters = [](void* user, const char*, Data data, uint64_t* size) {
    char* json = nullptr;
    EXPECT_EQ(pumice_devices(&json), PUMICE_OK);
    pumice_text_free(json);
    const auto& right = *static_cast<const std::vector<std::byte>*>(user);
    *data = right.data();
    *size = right.size();
    return 0;
  };
  std::vector<std::byte> right = bytes;
  right.resize(40);
  ASSERT_EQ(load(enters, &right), PUMICE_OK) << text();
  EXPECT_EQ(pumice_model_free(loaded), PUMICE_OK);
}

TEST_F(CApi, FreedWhileRunning) {  // R07
  pumice_session session;
  ASSERT_EQ(pumice_session_new(model.handle(), &session), PUMICE_OK);
  std::thread runner([&] {
    for (int i = 0; i < 50; ++i) {
      const pumice_status status = pumice_session_run(session, 0, &input, 1);
      EXPECT_TRUE(status == PUMICE_OK || status == PUMICE_WRONG_STATE) << status;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(pumice_session_free(session), PUMICE_OK);
  runner.join();
}

TEST_F(CApi, ErrorsBelongToTheThread) {
  EXPECT_EQ(pumice_check(nullptr, 1), PUMICE_INVALID_ARGUMENT);
  std::thread([] { EXPECT_EQ(pumice_last_error()->code, static_cast<pumice_status>(PUMICE_OK)); }).join();
  EXPECT_STREQ(pumice_last_error()->name, "InvalidArgument");
}

TEST_F(CApi, AForkedChildIsRefused) {  // R13
  pumice::Session session(model);
  const pid_t child = fork();
  if (child == 0) _exit(pumice_session_run(session.handle(), 0, &input, 1) == PUMICE_WRONG_STATE ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  session.run({input});
}

TEST_F(CApi, ChecksAndInspectsWithoutADevice) {
  EXPECT_NO_THROW(pumice::check_bytes(file));
  EXPECT_THAT(pumice::inspect(file), HasSubstr("\"arena_bytes\""));
  file[100] ^= std::byte{1};
  EXPECT_EQ(pumice_check(file.data(), file.size()), PUMICE_CHECKSUM_MISMATCH);
  const pumice::Options nowhere{.device = "no such device", .features = "", .cache_dir = ""};
  const pumice_options given = nowhere.c();
  pumice_model loaded{};  // the file is checked before a device is opened
  EXPECT_EQ(pumice_model_load(file.data(), file.size(), &given, &loaded), PUMICE_CHECKSUM_MISMATCH);
  EXPECT_EQ(pumice_check_file("/no/such/file"), PUMICE_IO_ERROR);
  EXPECT_EQ(pumice_check_file("/"), PUMICE_PATH_REJECTED);
  EXPECT_EQ(pumice_check_file("/dev/zero"), PUMICE_PATH_REJECTED);
}

}  // namespace
