# SPDX-License-Identifier: Apache-2.0
"""pumice-rt cross-compiled for 64-bit Arm, under qemu (./dev test --aarch64): with that machine's CPU driver, and with
the driver of Mali GPUs, which compiles and runs nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import pumice

ROOT = Path(__file__).parents[2]
TOOL, EMULATOR = ROOT / "build/aarch64-emulated/bin/pumice-rt", ROOT / "build/prefix/drv-arm64/run"
# Mesa optimizes no shader: a kernel takes seconds to compile there.
QUICK = {"PUMICE_DEVICE": "llvmpipe", "PUMICE_CACHE_DIR": "off", "MESA_SHADER_CACHE_DISABLE": "true"} | {
    "GALLIVM_PERF": "nopt",
    "PUMICE_FEATURES": "untested",
    "PUMICE_VALIDATE": "0",
}

pytestmark = pytest.mark.skipif(
    not TOOL.exists() or not EMULATOR.exists(), reason="./dev test --aarch64 installs the emulator and builds pumice-rt"
)


def tool(*arguments: str | Path, emulator: tuple[str | Path, ...] = (EMULATOR,), **more: str) -> str:
    command = [*emulator, TOOL, *arguments]
    environment = {**os.environ, **QUICK, **more}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_for_arm_and_needs_libc_and_libm_only() -> None:
    header = TOOL.read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == 183  # EM_AARCH64
    text = TOOL.read_bytes()
    assert b"libc.so.6\0" in text and b"libstdc++.so" not in text and b"libgcc_s.so" not in text


def test_it_finds_the_driver() -> None:
    assert "llvmpipe" in tool("devices") and "int_dot" in tool("devices")


def test_the_demos_model_answers_as_pytorch_does(tmp_path: Path) -> None:
    """all-MiniLM-L6-v2 as ./dev demo makes it, with the bound of test/models/test_minilm.py."""
    from minilm import build

    module, args, kwargs, dynamic_shapes = build()
    pumice.quantize(module, "int4", group_size=32, embeddings="int8")
    pumice.export(module, args, kwargs, dynamic_shapes=dynamic_shapes).save(tmp_path / "m.pumice")
    inputs = {"ids": torch.tensor([[101, 7592, 102]]), "mask": torch.ones(1, 3, dtype=torch.int64)}
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value.numpy())
    files = [tmp_path / f"{name}.npy" for name in inputs]
    tool("run", tmp_path / "m.pumice", "--inputs", *files, "--outputs", tmp_path / "out", "--timeout-ms", "250000")
    (answer,) = (tmp_path / "out").iterdir()
    with torch.inference_mode():
        want = module(*inputs.values())
    torch.testing.assert_close(torch.from_numpy(np.load(answer)), want, atol=2e-5, rtol=0)


def test_kernels_of_a_family_agree_with_fp64() -> None:
    """Odd sizes of a quantized product: one row, and the tiles of several."""
    words = ("--kernel", "pick", "--case", "m=1|9,n=37,k=96,g=32,bias=1,zero=random", "--replays", "2")
    rows = json.loads(tool("kernel", "test", "--op", "linear_q4gsw", *words, "--json"))["rows"]
    assert len(rows) >= 2 and {row["status"] for row in rows} == {"ok"}


@pytest.fixture
def mali(monkeypatch) -> dict:
    """What a program needs to see the Mali-G610 of ./dev fleet."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from setup import fleet_gpus

    (gpu,) = fleet_gpus.chosen(["g610"])
    return {"emulator": tuple(fleet_gpus.launcher(gpu)), **fleet_gpus.variables(gpu)}


def test_malis_profile_is_what_its_driver_says(mali: dict) -> None:
    said = json.loads(tool("devices", "--profile", **mali))
    kept = json.loads((ROOT / "test/profiles/g610.json").read_text())
    for each in (said, kept):  # of the machine that the driver runs on
        del each["heap_bytes"], each["memory_bytes"]
    assert said == kept


@pytest.mark.parametrize(
    "what",
    [
        ("softmax",),
        ("linear_q4gsw", "--kernel", "pick", "--case", "m=1|17|512,n=384,k=384,g=32,dtype=f16"),
        ("linear_q4gsw", "--kernel", "pick", "--case", "m=1,n=384,k=384,g=32"),
    ],
)
def test_malis_compiler_takes_kernels_without_spilling(mali: dict, what: tuple[str, ...], tmp_path: Path) -> None:
    log, features = tmp_path / "log.jsonl", "staged,untested"  # as ./dev fleet has them: nothing computes there
    more = mali | {"PUMICE_FEATURES": features, "PUMICE_PIPELINE_LOG": str(log)}
    rows = json.loads(tool("kernel", "compile", "--op", *what, "--json", **more))["rows"]
    assert rows and {row["status"] for row in rows} == {"ok"}
    made = [line for line in map(json.loads, log.read_text().splitlines()) if "ms" in line]
    assert made and all(line["statistics"]["Instructions"] > 0 for line in made)
    assert not [line["shader"] for line in made if line["statistics"]["Spills"] + line["statistics"]["Fills"] > 0]
