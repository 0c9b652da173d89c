# SPDX-License-Identifier: Apache-2.0
"""What each set of the prefix is made of."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
ARCH = {"aarch64": "arm64"}.get(platform.machine(), "amd64")

# What every Debian 12 system has (and one with g++); newer libraries are made to work with these by oldlibc.
SYSTEM = ("libc6", "libstdc++6", "libgcc-s1", "gcc-12-base", "debconf", "dpkg", "tzdata")
COMPILER = ("libgcc-12-dev", "libstdc++-12-dev", "libobjc-12-dev", "libc6-dev", "binutils")
UNUSED_32_BIT = ("lib32gcc-s1", "lib32stdc++6", "libc6-i386")  # named by libclang-rt


@dataclass(frozen=True)
class Part:
    """Packages taken with one set of suites, the first suite preferred."""

    suites: tuple[str, ...]
    packages: tuple[str, ...]
    resolve: bool = True  # install what they depend on, too
    present: tuple[str, ...] = ()  # packages to take as installed already
    source: bool = field(default=False, repr=False)  # the authors' own sources of these packages, one archive each

    def machine(self, arch: str) -> str:
        """What the lock calls the machine that the packages are for."""
        return "source" if self.source else arch


@dataclass(frozen=True)
class Recipe:
    """A set: its parts and the finish, a function of finish.py."""

    parts: tuple[Part, ...]
    finish: str = ""
    place: str = ""  # the folder, when it is not the set's name
    edition: int = 1  # raise it when a finish changes, so that existing prefixes are made again
    arch: str = field(default=ARCH, repr=False)  # Debian's name of the machine that the packages are for


MESA_25 = (
    Part(("bookworm-backports", "bookworm"), ("mesa-vulkan-drivers",), present=(*SYSTEM, "libvulkan1")),
    Part(("bookworm",), ("libvulkan1",), resolve=False),
)
RECIPES = {
    "tools": Recipe((Part(("forky",), ("glslang-tools", "spirv-tools")),), "tools"),
    "hdr": Recipe(
        (
            Part(
                ("forky",),
                (
                    "libvulkan-dev",
                    "libvulkan-volk-dev",
                    "libvulkan-memory-allocator-dev",
                    "spirv-headers",
                    "vulkan-utility-libraries-dev",
                ),
                resolve=False,
            ),
            Part(
                ("bookworm",),
                (
                    "libxxhash-dev",
                    "libcli11-dev",
                    "nlohmann-json3-dev",
                    "libgtest-dev",
                    "libgmock-dev",
                    "googletest",
                    "libbenchmark-dev",
                    "libbenchmark1debian",
                    "libzstd-dev",
                ),
                resolve=False,
            ),
        ),
    ),
    "ccache": Recipe((Part(("bookworm",), ("ccache",), present=SYSTEM),), "ccache"),
    "drv26": Recipe(
        (
            Part(
                ("trixie-backports", "trixie"),
                ("mesa-vulkan-drivers",),
                present=(*SYSTEM, "libvulkan1", "libz3-4", "zlib1g"),
            ),
            Part(("bookworm",), ("libz3-4", "zlib1g"), present=SYSTEM),  # the newer libz3 needs a newer libstdc++
            Part(("forky",), ("libvulkan1",), resolve=False),
        ),
        "driver",
        place="drv",
    ),
    "drv25": Recipe(MESA_25, "driver", place="drv"),
    "mesa25": Recipe(MESA_25, "driver"),
    "own": Recipe((Part(("forky",), ("mesa-vulkan-drivers", "libvulkan1")),), "own", place="drv"),
    "val": Recipe((Part(("forky",), ("vulkan-validationlayers",), resolve=False),), "layer"),
    "swiftshader": Recipe((Part(("bookworm",), ("chromium-common",), resolve=False),), "swiftshader"),
    "clang": Recipe(
        (
            Part(("bookworm",), ("clang-14", "libclang-rt-14-dev"), present=SYSTEM + COMPILER + UNUSED_32_BIT),
            Part(("bookworm",), ("llvm-14",), resolve=False),  # llvm-cov and llvm-profdata
        ),
        "clang",
    ),
    "cross": Recipe(
        (Part(("bookworm",), ("g++-aarch64-linux-gnu", "qemu-user-static"), present=("libc6", "debconf", "dpkg")),),
        "cross",
    ),
    "drv-arm64": Recipe(
        (Part(("trixie-backports", "trixie"), ("mesa-vulkan-drivers", "mesa-drm-shim", "libvulkan1")),),
        "emulated",
        edition=3,
        arch="arm64",
    ),
    "gpus": Recipe(
        (
            Part(
                ("trixie-backports", "trixie"),
                ("mesa-vulkan-drivers", "mesa-drm-shim"),
                present=(*SYSTEM, "libvulkan1", "libz3-4", "zlib1g"),
            ),
            Part(("bookworm",), ("libz3-4", "zlib1g"), present=SYSTEM),
            Part(("forky",), ("libvulkan1",), resolve=False),
        ),
        "gpus",
    ),
    "intel-shim": Recipe(  # which Debian's mesa-drm-shim lacks
        (
            Part(("trixie",), ("mesa",), source=True),
            Part(("bookworm",), ("libdrm-dev", "python3-mako", "python3-markupsafe"), resolve=False),
        ),
        "intel_shim",
        edition=2,
    ),
    "peers": Recipe(
        (Part(("forky",), ("llama.cpp-tools", "libggml0-backend-vulkan"), present=("debconf", "wget")),), "peers"
    ),
    "browser": Recipe(
        (
            Part(
                ("bookworm",),
                ("chromium-headless-shell", "fonts-dejavu-core"),
                present=(*SYSTEM, "x11-utils", "xdg-utils"),  # which want Mesa with all of LLVM, for windows
            ),
        ),
        "browser",
        edition=2,
    ),
    "pydev": Recipe((Part(("bookworm",), ("libpython3.11-dev",), resolve=False),)),
    "pipwhl": Recipe((Part(("bookworm",), ("python3-pip-whl",), resolve=False),)),
}
