# SPDX-License-Identifier: Apache-2.0
"""pumice-rt cross-compiled for 64-bit Arm, under qemu with that machine's CPU driver (./dev test --aarch64)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import pumice

ROOT = Path(__file__).parents[2]
TOOL, EMULATOR = ROOT / "build/aarch64-linux/bin/pumice-rt", ROOT / "build/prefix/drv-arm64/run"

pytestmark = pytest.mark.skipif(
    not TOOL.exists() or not EMULATOR.exists(), reason="./dev test --aarch64 installs the emulator and builds pumice-rt"
)


def tool(*arguments: str | Path) -> str:
    done = subprocess.run(
        [EMULATOR, TOOL, *arguments],
        env={**os.environ, "PUMICE_DEVICE": "llvmpipe", "PUMICE_VALIDATE": "0", "PUMICE_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_for_arm_and_needs_libc_and_libm_only() -> None:
    header = TOOL.read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == 183  # EM_AARCH64
    text = TOOL.read_bytes()
    assert b"libc.so.6\0" in text and b"libstdc++.so" not in text and b"libgcc_s.so" not in text


def test_it_finds_the_driver() -> None:
    assert "llvmpipe" in tool("devices") and "int_dot" in tool("devices")


def test_a_quantized_model_answers_as_pytorch_does(tmp_path: Path) -> None:
    """One row and few operators: compiling a kernel in the emulator takes tens of seconds."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 8), nn.GELU()).eval()
    pumice.quantize(model, "int4", group_size=32)
    x = torch.randn(1, 64)
    pumice.export(model, (x,)).save(tmp_path / "m.pumice")
    np.save(tmp_path / "x.npy", x.numpy())
    tool(
        "run",
        tmp_path / "m.pumice",
        "--inputs",
        tmp_path / "x.npy",
        "--outputs",
        tmp_path / "out",
        "--timeout-ms",
        "250000",
    )
    (answer,) = (tmp_path / "out").iterdir()
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(np.load(answer)), model(x), rtol=1e-5, atol=1e-6)
