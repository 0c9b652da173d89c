/* SPDX-License-Identifier: Apache-2.0
 *
 * Pumice as a backend of ExecuTorch: the library pumice_executorch, for the ExecuTorch it was built with.
 *
 * After pumice_executorch_register() the ExecuTorch runtime of this process runs the parts of a .pte file that
 * PumicePartitioner has lowered. Options at load time (BackendOptions, all text) and at export (compile specs):
 * "device", "features" and "cache_dir", as in pumice_options of pumice.h; what is given at load time wins.
 */
#ifndef PUMICE_EXECUTORCH_H_
#define PUMICE_EXECUTORCH_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Registers "PumiceBackend" with ExecuTorch, once for a process; further calls change nothing. Returns 0, or
 * ExecuTorch's error code: 18 (InvalidArgument) when somebody else has taken the name. */
__attribute__((visibility("default"))) uint32_t pumice_executorch_register(void);

/* The version of ExecuTorch this library was built with: "1.5.1". Another minor version must not load it. */
__attribute__((visibility("default"))) const char* pumice_executorch_version(void);

#ifdef __cplusplus
}
#endif
#endif /* PUMICE_EXECUTORCH_H_ */
