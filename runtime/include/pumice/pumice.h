/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of Pumice: run a .pumice file on a Vulkan device.
 *
 * Nothing thrown, raised or aborted crosses it: every call answers PUMICE_OK or the code of an error whose text
 * pumice_last_error() holds for the calling thread. Handles are numbers with a generation: a freed or invented one is
 * answered with PUMICE_WRONG_STATE, never with a crash. Structs begin with their size (PUMICE_INIT), so that they may
 * grow.
 *
 * Threads: every function may be called from any thread. A session serves one call at a time; a second one waits.
 * pumice_session_run and pumice_session_read are two calls, and another thread's run may come between them: threads
 * that share a session use pumice_session_call, which is one.
 */
#ifndef PUMICE_PUMICE_H_
#define PUMICE_PUMICE_H_

#include <stddef.h>
#include <stdint.h>

#define PUMICE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define PUMICE_API_VERSION 1
#define PUMICE_MAX_RANK 8

/* Codes are only ever added. 1-15 the file, 32-35 the caller, 64-68 the machine, 96 our own bug. */
typedef uint32_t pumice_status;
/* clang-format off */
enum {
  PUMICE_OK = 0,
  PUMICE_BAD_HEADER = 1, PUMICE_TRUNCATED = 2, PUMICE_UNSUPPORTED_VERSION = 3, PUMICE_CHECKSUM_MISMATCH = 4,
  PUMICE_BAD_SCHEMA = 5, PUMICE_LIMIT_EXCEEDED = 6, PUMICE_BAD_INDEX = 7, PUMICE_BAD_GRAPH = 8, PUMICE_BAD_SHAPE = 9,
  PUMICE_BAD_DTYPE = 10, PUMICE_BAD_QUANT_PARAMS = 11, PUMICE_UNKNOWN_OP = 12, PUMICE_WEIGHTS_MISMATCH = 13,
  PUMICE_PATH_REJECTED = 14, PUMICE_IO_ERROR = 15,
  PUMICE_INVALID_ARGUMENT = 32, PUMICE_WRONG_STATE = 33, PUMICE_BUSY = 34, PUMICE_CANCELLED = 35,
  PUMICE_TIMEOUT = 64, PUMICE_OUT_OF_HOST_MEMORY = 65, PUMICE_OUT_OF_DEVICE_MEMORY = 66,
  PUMICE_DEVICE_UNSUPPORTED = 67, PUMICE_DEVICE_LOST = 68,
  PUMICE_INTERNAL = 96
};
/* clang-format on */

/* Elements as the caller holds them: row-major, contiguous. bool: one byte, 0 or 1. */
typedef uint32_t pumice_dtype;
enum { PUMICE_F32 = 0, PUMICE_F16 = 1, PUMICE_I32 = 2, PUMICE_I64 = 3, PUMICE_BOOL = 4, PUMICE_U8 = 5, PUMICE_I8 = 6 };

typedef struct pumice_error {
  uint32_t struct_size;
  pumice_status code;
  const char* name;  /* "InvalidArgument" */
  const char* stage; /* "input" */
  const char* path;  /* "input 'ids'", "methods[0].ops[17] (softmax)"; may be empty */
  const char* text;
} pumice_error;

/* The last error of the calling thread; its strings are good until the thread's next call. Never null. */
PUMICE_API const pumice_error* pumice_last_error(void);
PUMICE_API uint32_t pumice_api_version(void);
PUMICE_API const char* pumice_version(void);

/* Text that a call hands over (JSON, UTF-8, ends with a NUL) is freed here; null is fine. */
PUMICE_API void pumice_text_free(char* text);

/* An empty struct with its size set: `pumice_options options = PUMICE_INIT(pumice_options);` */
#ifdef __cplusplus
}
template <class T>
T pumice_init() {
  T t{};
  t.struct_size = sizeof(T);
  return t;
}
extern "C" {
#define PUMICE_INIT(type) (::pumice_init<type>())
#else
#define PUMICE_INIT(type) {.struct_size = sizeof(type)}
#endif

/* Null strings mean "not said": see `pumice devices --help` for what is then chosen. */
typedef struct pumice_options {
  uint32_t struct_size;
  uint32_t timeout_ms;   /* of one run; 0 = 60 000, on a CPU driver 600 000 */
  const char* device;    /* index, part of the name, or UUID */
  const char* features;  /* "-coopmat,-int_dot" or "none" */
  const char* cache_dir; /* of the pipeline cache; "off" = none */
  /* Hands over the bytes of an external constant; nonzero when there are none under `key`. The bytes are read before
   * the load returns. Must not throw. */
  int (*external)(void* user, const char* key, const void** data, uint64_t* bytes);
  void* user;
} pumice_options;

typedef struct pumice_model {
  uint64_t handle;
} pumice_model;
typedef struct pumice_session {
  uint64_t handle;
} pumice_session;

/* {"devices": [{"index", "name", "driver", "kind", "features", ...}], "why": "..."}; `why` explains an empty list. */
PUMICE_API pumice_status pumice_devices(char** json);

/* Proves the file without any device: header, structure, meaning, memory plan. */
PUMICE_API pumice_status pumice_check(const void* file, uint64_t bytes);
PUMICE_API pumice_status pumice_check_file(const char* path);
/* The same, and tells what is in the file: header, operators, values, memory plan, constants. */
PUMICE_API pumice_status pumice_inspect(const void* file, uint64_t bytes, char** json);
PUMICE_API pumice_status pumice_inspect_file(const char* path, char** json);

/* A model is the weights on the device; neither file nor memory is needed once it is loaded. `options` may be null. */
PUMICE_API pumice_status pumice_model_load(const void* file, uint64_t bytes, const pumice_options* options,
                                           pumice_model* model);
PUMICE_API pumice_status pumice_model_load_file(const char* path, const pumice_options* options, pumice_model* model);
/* Sessions made from the model live on. */
PUMICE_API pumice_status pumice_model_free(pumice_model model);
/* {"device": {...}, "methods": [{"name", "inputs", "outputs", "in_spec", "out_spec"}]} */
PUMICE_API pumice_status pumice_model_describe(pumice_model model, char** json);
PUMICE_API pumice_status pumice_model_num_methods(pumice_model model, uint32_t* count);
/* The number of the method called `name`; null: the first one. */
PUMICE_API pumice_status pumice_model_method(pumice_model model, const char* name, uint32_t* method);

typedef struct pumice_tensor_info {
  uint32_t struct_size;
  pumice_dtype dtype;
  uint32_t rank;
  uint32_t reserved;
  int64_t min[PUMICE_MAX_RANK]; /* bounds of each dimension, both included; equal when it is fixed */
  int64_t max[PUMICE_MAX_RANK];
  const char* symbol[PUMICE_MAX_RANK]; /* name of a dynamic dimension, else null */
  const char* name;                    /* these strings are good as long as the model's handle */
} pumice_tensor_info;

PUMICE_API pumice_status pumice_model_counts(pumice_model model, uint32_t method, uint32_t* num_inputs,
                                             uint32_t* num_outputs);
PUMICE_API pumice_status pumice_model_input(pumice_model model, uint32_t method, uint32_t index,
                                            pumice_tensor_info* info);
PUMICE_API pumice_status pumice_model_output(pumice_model model, uint32_t method, uint32_t index,
                                             pumice_tensor_info* info);

/* A session is the state (caches, counters) and the memory of its runs. Weights are shared with the model's other
 * sessions. */
PUMICE_API pumice_status pumice_session_new(pumice_model model, pumice_session* session);
PUMICE_API pumice_status pumice_session_free(pumice_session session);

typedef struct pumice_tensor {
  uint32_t struct_size;
  pumice_dtype dtype;
  uint32_t rank;
  uint32_t reserved;
  int64_t dims[PUMICE_MAX_RANK];
  const void* data; /* of an input: any alignment; of an output: null */
  uint64_t bytes;
} pumice_tensor;

/* Tells where an output of a call goes: `*data` becomes room for output->bytes, or stays null when it is not wanted.
 * Nonzero: there is no room, and the call ends with PUMICE_CANCELLED (the state has moved on). `output`: dtype and
 * shape, good until the function returns. It must not throw; what it asks of the same session gets PUMICE_BUSY. */
typedef int (*pumice_room)(void* user, uint32_t index, const pumice_tensor* output, void** data);

/* Copies the inputs, runs, waits, copies each output to where `room` says. Another thread's call of the session comes
 * before or after all of that, so every thread gets the outputs of its own inputs. */
PUMICE_API pumice_status pumice_session_call(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                             uint32_t num_inputs, pumice_room room, void* user);

/* The same in steps, for one thread. Copies the inputs, runs, waits. On an error there are no outputs. */
PUMICE_API pumice_status pumice_session_run(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                            uint32_t num_inputs);
/* Shape and size of an output of the last run. */
PUMICE_API pumice_status pumice_session_output(pumice_session session, uint32_t index, pumice_tensor* output);
/* Copies an output of the last run to `data`, which has room for exactly `bytes` as told above. */
PUMICE_API pumice_status pumice_session_read(pumice_session session, uint32_t index, void* data, uint64_t bytes);
/* State back to its values in the file. */
PUMICE_API pumice_status pumice_session_reset(pumice_session session);
/* A run with timestamps; outputs and state are as after pumice_session_run. {"total_us", "rows": [{"op", "call",
 * "source", "kernel", "shapes", "start_us", "us", "bytes", "flops"}]}, a row for each dispatch and copy, in order.
 * "call": which operator call of the method it is for, or -1; "start_us": since the first row began. */
PUMICE_API pumice_status pumice_session_profile(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                                uint32_t num_inputs, char** json);
/* Bytes on the device by kind: {"weights", "state", "arena", "textures", "io"}; textures: of weights and activations.
 */
PUMICE_API pumice_status pumice_session_memory(pumice_session session, char** json);

#ifdef __cplusplus
}
#endif
#endif /* PUMICE_PUMICE_H_ */
