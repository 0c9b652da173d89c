# SPDX-License-Identifier: Apache-2.0
"""The C++ host of examples/executorch_host, built against an installed kit and ExecuTorch's wheel."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
import torch
from support.lowered import Lowered
from support.missing import OnCpu
from torch import nn

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/release"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


@pytest.mark.skipif(not (BUILD / "libpumice.so").exists(), reason="needs ./dev build")
def test_the_host_runs_what_python_lowered(tmp_path) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), OnCpu(), nn.Linear(32, 6))
    lowered = Lowered(tmp_path, model, (torch.ones(1, 4, 16),))
    assert len(lowered.report.partitions) == 2
    kit, site = tmp_path / "kit", importlib.util.find_spec("executorch.runtime").origin
    run("cmake", "--install", BUILD, "--prefix", kit)
    package = Path(site).parents[1] / "share/cmake"
    source = ROOT / "examples/executorch_host"
    options = [f"-DCMAKE_PREFIX_PATH={kit}", f"-Dexecutorch_DIR={package}", "-G", "Ninja"]
    run("cmake", "-S", source, "-B", tmp_path / "host", *options)
    run("cmake", "--build", tmp_path / "host")
    words = run(tmp_path / "host/host", lowered.path).stdout.split()
    (want,) = lowered.eager(torch.ones(1, 4, 16))
    torch.testing.assert_close(torch.tensor([float(w) for w in words]), want.flatten()[:8], atol=1e-5, rtol=1e-5)
    assert len((source / "main.cpp").read_text().splitlines()) <= 60
    other = tmp_path / "other"
    other.mkdir()
    (other / "executorch-config.cmake").touch()
    (other / "executorch-config-version.cmake").write_text(
        "set(PACKAGE_VERSION 1.6.0)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
    )
    options[1] = f"-Dexecutorch_DIR={other}"
    done = subprocess.run(["cmake", "-S", source, "-B", other, *options], capture_output=True, text=True, timeout=100)
    assert "was built for ExecuTorch 1.5; the one found is 1.6.0" in " ".join(done.stderr.split())
