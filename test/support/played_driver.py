# SPDX-License-Identifier: Apache-2.0
"""Drivers that are played (test/support/*_driver.cpp), for processes of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.command_line import ROOT


def playing(source: str, folder: Path) -> dict[str, str]:
    """The variables of a process whose driver this file of test/support plays."""
    flags = ["-std=c++20", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"]
    flags += [f"-I{ROOT}", f"-I{ROOT / 'build/prefix/hdr/usr/include'}"]
    subprocess.run(["g++", *flags, ROOT / "test/support" / source, "-o", folder / "driver.so", "-ldl"], check=True)
    loader = str(ROOT / "build/prefix/drv/libvulkan.so.1")
    return {"PUMICE_VULKAN_LOADER": str(folder / "driver.so"), "LIE_LOADER": loader}
