# SPDX-License-Identifier: Apache-2.0
"""driver.cpp, a C++ host with ExecuTorch's runtime and the backend."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

DRIVER = Path(__file__).parents[2] / "build/release/bin/delegate_driver"
needs_driver = pytest.mark.skipif(not DRIVER.exists(), reason="needs ./dev build")


def driver(*words: object, **environment: str) -> str:
    command = [str(DRIVER), *map(str, words)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run(
    path: Path, calls: Sequence[tuple[torch.Tensor, ...]], dtypes: Sequence[torch.dtype]
) -> list[list[torch.Tensor]]:
    """The outputs of each call of a .pte in a process of its own; `dtypes` of the outputs."""
    words: list[object] = []
    for args in calls:
        for arg in args:
            file = path.with_suffix(f".in{len(words)}")
            file.write_bytes(arg.contiguous().numpy().tobytes())
            words += [file, "x".join(map(str, arg.shape))]
    shapes = iter(driver("run", path, path.with_suffix(".out"), *words).splitlines())
    results = []
    for call in range(len(calls)):
        outputs = []
        for number, dtype in enumerate(dtypes):
            raw = path.with_suffix(f".out.{call}.{number}").read_bytes()
            flat = torch.from_numpy(np.frombuffer(raw, np.uint8).copy()).view(dtype)
            outputs.append(flat.reshape([int(size) for size in next(shapes).split()]))
        results.append(outputs)
    return results
