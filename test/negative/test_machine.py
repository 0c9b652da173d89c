# SPDX-License-Identifier: Apache-2.0
"""Machines where something is missing or broken: no loader, no driver, a damaged or unwritable cache folder (ids D01,
D11, E01-E03)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pumice
from pumice.runtime import selftest
from pumice.runtime.selftest import self_test

RUN = "from pumice.runtime.selftest import self_test; print(self_test())"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )


def test_no_driver_is_a_device_error() -> None:
    done = python(RUN, VK_DRIVER_FILES="/nonexistent.json", VK_ADD_DRIVER_FILES="", PUMICE_DEVICE="")
    assert done.returncode == 1 and "DeviceError" in done.stderr, done.stderr
    assert "Vulkan" in done.stderr or "driver" in done.stderr


def test_no_loader_is_a_device_error() -> None:
    done = python(RUN, PUMICE_VULKAN_LOADER="/nonexistent/libvulkan.so.1")
    assert done.returncode == 1 and "DeviceError" in done.stderr and "/nonexistent" in done.stderr, done.stderr


def test_a_cpu_driver_is_never_picked_unnamed() -> None:
    done = python(RUN, PUMICE_DEVICE="")
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert "llvmpipe" in done.stderr and "PUMICE_DEVICE" in done.stderr


def test_importing_touches_no_torch() -> None:
    done = python("import sys, pumice, pumice.runtime.selftest; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "random", "folder"])
def test_a_damaged_pipeline_cache_is_rebuilt_with_one_warning(damage: str, tmp_path: Path) -> None:
    first = python(RUN, PUMICE_CACHE_DIR=str(tmp_path))
    assert first.returncode == 0 and not first.stderr, first.stderr
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "key"]
    good = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        bad = {
            "empty": b"",
            "cut": good[:-7],
            "flip": good[:-9] + bytes([good[-9] ^ 1]) + good[-8:],
            "random": os.urandom(999),
        }
        path.write_bytes(bad[damage])
    second = python(RUN, PUMICE_CACHE_DIR=str(tmp_path))
    assert second.returncode == 0 and "is right" in second.stdout, second.stderr
    assert second.stderr.count("warning") <= 1
    if damage != "folder":
        assert path.read_bytes() != bad[damage], "the cache was not written anew"
        third = python(RUN, PUMICE_CACHE_DIR=str(tmp_path))
        assert third.returncode == 0 and not third.stderr, third.stderr


def test_cache_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = python(RUN, PUMICE_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert done.returncode == 0 and "is right" in done.stdout
    assert not list(tmp_path.glob("*.tmp*"))


def test_cache_off_writes_nothing(tmp_path: Path) -> None:
    done = python(RUN, PUMICE_CACHE_DIR="off", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("pumice*"))


def test_loading_and_unloading_leaves_nothing_behind() -> None:
    import psutil

    process = psutil.Process()
    for _ in range(5):
        self_test()
    files, memory = process.num_fds(), process.memory_info().rss
    for _ in range(40):
        self_test()
    assert process.num_fds() == files
    assert process.memory_info().rss - memory < 16 << 20


def test_a_device_that_computes_wrong_numbers_is_refused(monkeypatch) -> None:
    """D11. Kernels that rely on where a driver keeps matrices are probed: test/vulkan/features_test.cpp."""

    class Wrong:
        def __init__(self, session: pumice.Session) -> None:
            self.session, self.device = session, session.device

        def run_flat(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
            (out,) = self.session.run_flat(arrays)
            out[4, 36] *= 1.001
            return [out]

    monkeypatch.setattr(selftest, "load", lambda *args, **named: Wrong(pumice.load(*args, **named)))
    with pytest.raises(pumice.DeviceError, match=r"softmax\(x \+ y\) on .*llvmpipe.* is off by") as caught:
        self_test()
    assert caught.value.code == "DeviceUnsupported"


def test_devices_tells_what_a_kernel_may_use() -> None:
    device = next(device for device in pumice.devices() if "llvmpipe" in device.name)
    assert device.kind == "cpu" and device.limits["max_storage_bytes"] >= 1 << 27
    assert isinstance(device.features, tuple) and np.prod(device.limits["subgroup_size"]) >= 1
