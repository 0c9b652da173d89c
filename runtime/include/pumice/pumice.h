/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of Pumice: run a .pumice file on a Vulkan device.
 *
 * No exception, signal or abort crosses it. Every call returns PUMICE_OK or the code of an error; pumice_last_error()
 * has its text, for the calling thread. Handles are numbers with a generation: a freed or invented handle gives
 * PUMICE_WRONG_STATE, never a crash. Structs begin with their size (PUMICE_INIT), so that they can grow. A null pointer
 * where none is allowed gives PUMICE_INVALID_ARGUMENT. In a process that was forked after the first call, every call
 * gives PUMICE_WRONG_STATE; so it does once exit() has begun, which waits for the calls under way, at most 2 s. During
 * a call the thread rounds to nearest, keeps denormal numbers and raises no floating-point exceptions. Any call can
 * give PUMICE_OUT_OF_HOST_MEMORY or PUMICE_INTERNAL.
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

/* Element types of tensors in the memory of the caller: row-major, contiguous, native byte order. bool: a byte, 0 or 1.
 */
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

/* The last error of the calling thread. Never null; its strings are valid until the next call of the thread. */
PUMICE_API const pumice_error* pumice_last_error(void);
/* PUMICE_API_VERSION of the library. */
PUMICE_API uint32_t pumice_api_version(void);
/* The version of the library, "0.1.0"; valid as long as the library is loaded. */
PUMICE_API const char* pumice_version(void);

/* Frees a text that a function below returned (JSON, UTF-8, NUL-terminated); null is allowed. */
PUMICE_API void pumice_text_free(char* text);

/* An empty struct with its size set: `pumice_options options = PUMICE_INIT(pumice_options);`. A library takes the
 * structs of older headers, too; what they lack has its default. */
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

/* A null string is not set: the environment variables PUMICE_DEVICE, PUMICE_FEATURES and PUMICE_CACHE_DIR hold then, or
 * the defaults that `pumice devices --help` lists. */
typedef struct pumice_options {
  uint32_t struct_size;
  /* Of one run; 0 = 60 000, on a CPU driver 600 000. A run that takes longer ends with PUMICE_TIMEOUT as one that was
   * cancelled; only where the device is not done 2 s later (a CPU driver: 60 s) with what was submitted, it is lost. */
  uint32_t timeout_ms;
  const char* device;    /* index, part of the name, or UUID */
  const char* features;  /* "-coopmat,-int_dot", "none", "+float_atomics" */
  const char* cache_dir; /* of the pipeline cache; "off" = none */
  /* Sets `data` and `bytes` of the external constant `key` and returns 0; nonzero: there is none. The bytes must stay
   * valid until the load returns. Called by the loading thread. Must not throw. */
  int (*external)(void* user, const char* key, const void** data, uint64_t* bytes);
  void* user;
  /* The file is not trusted, so it gets a budget. What it needs beyond `max_memory` is refused before anything is
   * allocated for it (PUMICE_LIMIT_EXCEEDED, with both numbers); a load, or the first run for new shapes, that takes
   * longer than `max_seconds` stops between two steps (PUMICE_TIMEOUT), and the device goes on working. */
  uint64_t max_memory; /* bytes on the device, of the model and one session; 0 = 80 % of its largest heap, on a CPU
                          driver or an integrated GPU also of the memory that the process may use */
  double max_seconds;  /* 0 = 60 */
} pumice_options;

typedef struct pumice_model {
  uint64_t handle;
} pumice_model;
typedef struct pumice_session {
  uint64_t handle;
} pumice_session;

/* The Vulkan devices of this machine as JSON, which the caller frees:
 * {"devices": [{"index", "name", "driver", "kind", "features", ...}], "why": "..."}. `why` explains an empty list. */
PUMICE_API pumice_status pumice_devices(char** json);

/* Validates a file of `bytes` bytes in its four gates: header, structure, meaning, memory plan. Touches no device.
 * Errors: 1 to 14; of a path also PUMICE_IO_ERROR and PUMICE_PATH_REJECTED (no regular file). */
PUMICE_API pumice_status pumice_check(const void* file, uint64_t bytes);
PUMICE_API pumice_status pumice_check_file(const char* path);
/* Validates likewise and returns the content as JSON, which the caller frees: {"header", "methods" (operators, values,
 * memory plan), "constants"}. */
PUMICE_API pumice_status pumice_inspect(const void* file, uint64_t bytes, char** json);
PUMICE_API pumice_status pumice_inspect_file(const char* path, char** json);

/* Validates a file, opens a device, and copies the weights to it. The file, or its memory, is not needed after that.
 * `options` may be null. Errors: those of pumice_check; PUMICE_INVALID_ARGUMENT (options), PUMICE_WEIGHTS_MISMATCH (an
 * external constant), PUMICE_DEVICE_UNSUPPORTED, PUMICE_OUT_OF_DEVICE_MEMORY, PUMICE_DEVICE_LOST, PUMICE_TIMEOUT (the
 * budget's time; the device is not lost). */
PUMICE_API pumice_status pumice_model_load(const void* file, uint64_t bytes, const pumice_options* options,
                                           pumice_model* model);
PUMICE_API pumice_status pumice_model_load_file(const char* path, const pumice_options* options, pumice_model* model);
/* Ends the self test of the kernels, which a load on a CPU driver from a file leaves to the first call of a session
 * that runs or prepares anything: that call, or this one, waits for it. Does nothing where it has ended. Then
 * pumice_model_describe has all results. Errors: PUMICE_IO_ERROR where a kernel is wrong and the file, from which the
 * weights are then loaded anew, has changed since the load; PUMICE_DEVICE_LOST, PUMICE_TIMEOUT (the budget's time). */
PUMICE_API pumice_status pumice_model_test(pumice_model model);
/* Frees the handle. Sessions of the model stay usable; the weights are freed with the last one. */
PUMICE_API pumice_status pumice_model_free(pumice_model model);
/* The device and the methods of a model as JSON, which the caller frees:
 * {"device": {...}, "methods": [{"name", "inputs", "outputs", "in_spec", "out_spec"}], "needs": {...}}. "needs": bytes
 * on the device that the load reckoned, {"weights", "weight_textures", "loading" (the most while weights are packed),
 * "states", "arena", "textures", "io"}, of one session after a run of each method at the shapes of the export. */
PUMICE_API pumice_status pumice_model_describe(pumice_model model, char** json);
PUMICE_API pumice_status pumice_model_num_methods(pumice_model model, uint32_t* count);
/* The number of the method called `name`, from 0; null: the first one. PUMICE_INVALID_ARGUMENT when there is none. The
 * functions below take that number as `method`. */
PUMICE_API pumice_status pumice_model_method(pumice_model model, const char* name, uint32_t* method);

typedef struct pumice_tensor_info {
  uint32_t struct_size;
  pumice_dtype dtype;
  uint32_t rank;
  uint32_t reserved;
  int64_t min[PUMICE_MAX_RANK]; /* bounds of each dimension, both included; equal when it is fixed */
  int64_t max[PUMICE_MAX_RANK];
  const char* symbol[PUMICE_MAX_RANK]; /* name of a dynamic dimension, else null */
  const char* name;                    /* these strings are valid until the model is freed */
} pumice_tensor_info;

/* How many inputs and outputs a method has. */
PUMICE_API pumice_status pumice_model_counts(pumice_model model, uint32_t method, uint32_t* num_inputs,
                                             uint32_t* num_outputs);
/* What an input or output is: dtype, shape, name. PUMICE_INVALID_ARGUMENT when `index` is not less than its count. */
PUMICE_API pumice_status pumice_model_input(pumice_model model, uint32_t method, uint32_t index,
                                            pumice_tensor_info* info);
PUMICE_API pumice_status pumice_model_output(pumice_model model, uint32_t method, uint32_t index,
                                             pumice_tensor_info* info);

/* A session has the state of a model (caches, counters) and the memory of its runs. The sessions of a model share its
 * weights. Errors: PUMICE_OUT_OF_DEVICE_MEMORY, PUMICE_DEVICE_LOST. */
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

/* The same, with the method run `steps` times (1 to 4096) in few submits, each time with the same inputs: only its
 * state moves on, and inputs that the model writes (the file's feature input_updates). The outputs are those of the
 * last time. A time limit holds for all together. */
PUMICE_API pumice_status pumice_session_call_steps(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                                   uint32_t num_inputs, uint32_t steps, pumice_room room, void* user);

/* The same in parts, for one thread. Copies the inputs, runs, waits. On an error there are no outputs. */
PUMICE_API pumice_status pumice_session_run(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                            uint32_t num_inputs);
/* Makes what the first run with inputs of these dtypes and shapes needs: kernels are compiled (and kept in the cache),
 * memory is allocated, the run is recorded; it then takes as long as later ones. The data of the inputs is not read.
 * After it there are no outputs of an earlier run. Errors are those of pumice_session_run. */
PUMICE_API pumice_status pumice_session_prepare(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                                uint32_t num_inputs);
/* Dtype, shape and size in bytes of an output of the last run; `data` becomes null. PUMICE_WRONG_STATE when there was
 * no run, or the last one failed. */
PUMICE_API pumice_status pumice_session_output(pumice_session session, uint32_t index, pumice_tensor* output);
/* Copies an output of the last run to `data`. PUMICE_INVALID_ARGUMENT unless `bytes` is exactly what
 * pumice_session_output returned; PUMICE_WRONG_STATE as there. */
PUMICE_API pumice_status pumice_session_read(pumice_session session, uint32_t index, void* data, uint64_t bytes);
/* Ends the run under way: the thread that waits in it gets PUMICE_CANCELLED, within two seconds or so. May be called
 * from any thread, and never waits. The device is done with the run then, the session is usable, and its state is as
 * before the run; where the run updates more than 1 MiB of state, further runs get PUMICE_WRONG_STATE until
 * pumice_session_reset. A run of which nothing is left to submit ends as usual (long runs are submitted in parts of
 * about 100 ms). Does nothing when no run is under way. */
PUMICE_API pumice_status pumice_session_cancel(pumice_session session);
/* Sets the state back to its values in the file. */
PUMICE_API pumice_status pumice_session_reset(pumice_session session);
/* Random numbers that the model draws go on from this seed: the same seed, the same runs. PUMICE_WRONG_STATE where it
 * draws none. pumice_session_reset goes back to the seed in the file. */
PUMICE_API pumice_status pumice_session_seed(pumice_session session, uint64_t seed);
/* A run with timestamps; outputs, state and errors are those of pumice_session_run, and PUMICE_DEVICE_UNSUPPORTED where
 * the device has no timestamps. Returns JSON, which the caller frees: {"total_us", "rows": [{"op", "call", "source",
 * "kernel", "shapes", "operands", "start_us", "us", "bytes", "flops", "operations", "split"}]}, a row for each dispatch
 * and copy, in order. "call": the number of its operator call in the method, or -1; "source": line and layer of the
 * user's model; "operands": names of the call's tensors, constants by their key; "start_us": microseconds since the
 * first row began; "operations": those of "flops" by their arithmetic, "f32", "f16", "i8", and fp32 that two or three
 * products of fp16 make, too, "f32 by 2" and "f32 by 3"; "split": whether the kernel makes fp32 of those. */
PUMICE_API pumice_status pumice_session_profile(pumice_session session, uint32_t method, const pumice_tensor* inputs,
                                                uint32_t num_inputs, char** json);
/* Bytes on the device by kind as JSON, which the caller frees: {"weights", "state", "arena", "textures", "io"};
 * textures: of weights and activations. A run allocates "arena" and "io", so they are 0 before the first one: "needs"
 * of pumice_model_describe says what they will be. */
PUMICE_API pumice_status pumice_session_memory(pumice_session session, char** json);

#ifdef __cplusplus
}
#endif
#endif /* PUMICE_PUMICE_H_ */
