/* SPDX-License-Identifier: Apache-2.0
 *
 * Pumice as a backend of ExecuTorch: the library pumice_executorch, for the ExecuTorch it was built with.
 *
 * After pumice_executorch_register() the ExecuTorch runtime of this process runs the parts of a .pte file that
 * PumicePartitioner has lowered. Options of one program at load time (LoadBackendOptionsMap), of all that are loaded
 * later (executorch::runtime::set_option, get_option), and of one at export (compile specs); the first one that is set
 * wins: "device", "features", "cache_dir"  text, as in pumice_options of pumice.h; "" is not set "profile"  bool, not
 * at export: whether an event tracer gets every dispatch (true), or the delegate call alone InvalidArgument: an unknown
 * key, or a value of another type; NotFound: get_option of an unknown key.
 */
#ifndef PUMICE_EXECUTORCH_H_
#define PUMICE_EXECUTORCH_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Registers "PumiceBackend" with ExecuTorch, once for a process; further calls change nothing. Returns 0, or
 * ExecuTorch's error code: 18 (InvalidArgument) when another backend has that name. */
__attribute__((visibility("default"))) uint32_t pumice_executorch_register(void);

/* The version of ExecuTorch this library was built with: "1.5.1". Another minor version must not load it. */
__attribute__((visibility("default"))) const char* pumice_executorch_version(void);

#ifdef __cplusplus
}
#endif
#endif /* PUMICE_EXECUTORCH_H_ */
