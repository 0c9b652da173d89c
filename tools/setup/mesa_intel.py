# SPDX-License-Identifier: Apache-2.0
"""Mesa's shim for Intel GPUs, which no package of Debian has: libintel_noop_drm_shim.so from Mesa's sources.

Its few files are compiled by themselves: Mesa's own build would ask for meson, flex, bison and four more libraries.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setup.progress import run

FOLDERS = ("include", "src/c11", "src/compiler", "src/drm-shim", "src/intel", "src/util")  # that are looked into
NAME = "libintel_noop_drm_shim.so"
GENERATED = (  # below src/intel/dev: the script, what it reads, what it writes
    ("gen_wa_helpers.py", ("mesa_defs.json",), ("intel_wa.h", "intel_wa.c")),
    ("intel_device_info_gen_h.py", (), ("intel_device_info_gen.h",)),
    ("intel_device_info_serialize_gen_c.py", (), ("intel_device_info_serialize_gen.c",)),
)
SOURCES = (
    *("drm-shim/device.c", "drm-shim/drm_shim.c", "intel/tools/intel_noop_drm_shim.c", "intel/common/intel_gem.c"),
    *(f"intel/dev/{name}.c" for name in ("intel_device_info", "intel_hwconfig", "intel_kmd")),
    *(f"intel/dev/{kernel}/intel_device_info.c" for kernel in ("i915", "xe")),
    *(f"util/{name}.c" for name in ("anon_file", "hash_table", "log", "os_misc", "parson", "ralloc", "set")),
    *(f"util/{name}.c" for name in ("simple_mtx", "u_call_once", "u_debug", "u_process", "vma")),
    *("c11/impl/threads_posix.c", "c11/impl/time.c"),
)
# What Mesa's configuration finds out about glibc and GCC. NDEBUG: the driver asks for a buffer of no bytes on purpose.
DEFINED = (
    "NDEBUG", "_GNU_SOURCE", "HAVE_PTHREAD", "HAVE_STRUCT_TIMESPEC", "HAVE_TIMESPEC_GET", "HAVE_MEMFD_CREATE",
    "HAVE_ENDIAN_H", "HAVE_SECURE_GETENV", "HAVE_PROGRAM_INVOCATION_NAME", "HAVE_FUNC_ATTRIBUTE_PACKED",
    "HAVE___BUILTIN_FFS", "HAVE___BUILTIN_FFSLL", "HAVE___BUILTIN_CLZ", "HAVE___BUILTIN_EXPECT",
    "HAVE___BUILTIN_UNREACHABLE", "UTIL_ARCH_LITTLE_ENDIAN=1", "UTIL_ARCH_BIG_ENDIAN=0", 'PACKAGE_VERSION="Mesa"',
)  # fmt: skip

# As kernels do, and the shim by itself does not: memory that is handed out again is zero. Nothing runs that would fill
# it, and Pumice would read what was there before as its kernels' words.
ZEROS = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include "drm-shim/drm_shim.h"
int __real_drm_shim_bo_init(struct shim_bo *bo, size_t size);
int __wrap_drm_shim_bo_init(struct shim_bo *bo, size_t size) {
  const int result = __real_drm_shim_bo_init(bo, size);
  if (result == 0) fallocate(shim_device.mem_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, bo->mem_addr, size);
  return result;
}
"""


def build(mesa: Path, packages: Path, log: Path) -> Path:
    """The library, made in `mesa`, the sources. `packages`: /usr of libdrm-dev and of Mako, which the scripts need."""
    source, made = mesa / "src", mesa / "made"
    folder = made / "intel/dev"
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(packages / "lib/python3/dist-packages")}
    for script, inputs, outputs in GENERATED:
        words = [source / "intel/dev" / script, *(source / "intel/dev" / name for name in inputs)]
        run([sys.executable, *words, *(folder / name for name in outputs)], log=log, env=environment)
    (folder / "zeros.c").write_text(ZEROS)
    # Of the helpers only those functions are kept that are called.
    options = ["-shared", "-fPIC", "-O1", "-w", "-std=gnu11", "-fvisibility=hidden", "-ffunction-sections"]
    options += ["-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,--wrap=drm_shim_bo_init"]
    options += [*(f"-D{name}" for name in DEFINED)]
    here = ("include", "include/drm-uapi", "src", "src/intel", "src/intel/dev", "src/util", "made", "made/intel")
    options += [f"-I{each}" for each in (*(mesa / name for name in here), folder, packages / "include")]
    files = [*(source / name for name in SOURCES), *sorted(folder.glob("*.c"))]
    run(["gcc", *options, "-o", mesa / NAME, *files, "-lm", "-ldl", "-lpthread"], log=log)
    return mesa / NAME
