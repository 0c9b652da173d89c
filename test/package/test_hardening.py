# SPDX-License-Identifier: Apache-2.0
"""What reads the files of strangers is linked and compiled with the hardening that docs/security.md names."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest
from support.command_line import BIN

import pumice

ROOT = Path(__file__).parents[2]
PACKAGE = Path(pumice.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.mark.parametrize(
    "path",
    [BIN / "pumice-rt", PACKAGE / f"_pumice{SUFFIX}", PACKAGE / "executorch/libpumice_executorch.so"],
    ids=lambda path: path.name.split(".")[0],
)
def test_binaries_are_hardened(path: Path) -> None:
    def readelf(option: str) -> str:
        return subprocess.run(["readelf", option, "-W", path], capture_output=True, text=True, check=True).stdout

    segments = {line.split()[0]: line for line in readelf("-l").splitlines() if line.startswith("  GNU_")}
    assert "RWE" not in segments["GNU_STACK"] and "GNU_RELRO" in segments
    assert "BIND_NOW" in readelf("-d") or "NOW" in readelf("-d").partition("FLAGS_1")[2].partition("\n")[0]
    names = readelf("--dyn-syms")
    assert "__stack_chk_fail" in names and "__vsnprintf_chk" in names


@pytest.mark.parametrize("path", [BIN / "pumice-rt", ROOT / "build/release/libpumice.so"], ids=lambda path: path.name)
def test_what_is_shipped_is_small(path: Path, tmp_path: Path) -> None:
    subprocess.run(["strip", "-o", tmp_path / "small", path], check=True)
    assert (tmp_path / "small").stat().st_size <= 6_250_000  # shaders packed: they are 15 MB otherwise
