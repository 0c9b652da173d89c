# SPDX-License-Identifier: Apache-2.0
"""Calls through Python that must be refused or give the right result: ids R01-R06 and R12 of the list of bad inputs."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from torch import nn

import pumice


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, ids, x, flag):
        self.seen.add_(1)
        return torch.where(flag, self.table(ids) + x, x), self.seen + 0


@pytest.fixture(scope="module")
def data() -> bytes:
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=2, max=64)
    args = (torch.zeros(4, dtype=torch.int64), torch.zeros(4, 8), torch.ones(4, 1, dtype=torch.bool))
    return bytes(pumice.export(Model(), args, dynamic_shapes={name: {0: rows} for name in ("ids", "x", "flag")}))


def good(rows: int = 4) -> list[np.ndarray]:
    x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
    return [np.arange(rows) % 11, x, np.ones((rows, 1), np.bool_)]


def swap(index: int, value) -> list:
    inputs: list = good()
    inputs[index] = value
    return inputs


BAD = [
    ("R01 too few", good()[:2], "3"),
    ("R01 too many", [*good(), good()[0]], "4"),
    ("R01 none", swap(1, None), "'x'"),
    ("R01 wrong dtype", swap(1, good()[1].astype(np.float64)), "float64"),
    ("R01 int32 for int64", swap(0, good()[0].astype(np.int32)), "int32"),
    ("R01 uint8 for bool", swap(2, good()[2].astype(np.uint8)), "uint8"),
    ("R02 below min", [np.zeros(1, np.int64), np.zeros((1, 8), np.float32), np.ones((1, 1), np.bool_)], "2"),
    ("R02 above max", [np.zeros(65, np.int64), np.zeros((65, 8), np.float32), np.ones((65, 1), np.bool_)], "64"),
    ("R02 zero", [np.zeros(0, np.int64), np.zeros((0, 8), np.float32), np.ones((0, 1), np.bool_)], "0"),
    ("R02 rank", swap(1, np.zeros(8, np.float32)), "'x'"),
    ("R02 fixed dimension", swap(1, np.zeros((4, 9), np.float32)), "9"),
    ("R02 sizes that disagree", swap(0, np.zeros(5, np.int64)), "5"),
    ("R04 index -1", swap(0, np.array([0, 1, -1, 2])), "-1"),
    ("R04 index = vocabulary", swap(0, np.array([0, 11, 1, 2])), "11"),
    ("R04 index INT64_MAX", swap(0, np.array([0, 1, 2, 2**63 - 1])), "9223372036854775807"),
    ("R12 object array", swap(1, good()[1].astype(object)), "object"),
    ("R12 0-d", swap(1, np.float32(1)), "'x'"),
    ("R12 list", swap(1, [[1.0]]), "list"),
]


@pytest.mark.parametrize(("inputs", "match"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_refused_and_the_session_goes_on(data, inputs, match) -> None:
    session, canary = pumice.load(data), pumice.load(data)
    before = canary.run_flat(good())[0]
    with pytest.raises(pumice.InvalidInputError, match=match) as caught:
        session(*inputs)
    assert caught.value.code and caught.value.stage
    np.testing.assert_array_equal(session.run_flat(good())[0], before)
    np.testing.assert_array_equal(canary.run_flat(good())[0], before)


def test_strided_readonly_bigendian_and_freed_arrays(data) -> None:  # R12
    session = pumice.load(data)
    ids, x, flag = good()
    want = session(ids, x, flag)[0]
    wide = np.zeros((4, 16), np.float32)
    wide[:, ::2] = x
    frozen = x.copy()
    frozen.setflags(write=False)
    for other in (wide[:, ::2], frozen, x.astype(">f4"), np.asfortranarray(x)):
        np.testing.assert_array_equal(session(ids, other, flag)[0], want)
    result = session(ids, x.copy(), flag)[0]
    del session
    gc.collect()
    np.testing.assert_array_equal(result, want)


def test_thousand_random_shapes_equal_fresh_sessions(data) -> None:  # R05
    session = pumice.load(data)
    rows = np.random.default_rng(0).integers(2, 65, 200)
    fresh = {}
    for count in [64, 7, 64, 2, *rows]:
        if count not in fresh:
            fresh[count] = pumice.load(data).run_flat(good(count))[0]
        np.testing.assert_array_equal(session.run_flat(good(count))[0], fresh[count])


def test_reset_and_state_survive_a_refused_call(data) -> None:
    session = pumice.load(data)
    assert session(*good())[1][0] == 1
    with pytest.raises(pumice.InvalidInputError):
        session(*good()[:2])
    assert session(*good())[1][0] == 2
    with pytest.raises(pumice.InvalidInputError, match="index -1"):  # found on the device, when `seen` was updated
        session(*swap(0, np.array([0, 1, -12, 2])))
    assert session(*good())[1][0] == 3
    session.reset()
    assert session(*good())[1][0] == 1


@pytest.mark.parametrize("features", ["-coopmatt", "nothing", "-int_dot,-"])
def test_unknown_features_get_the_nearest(data, features) -> None:
    with pytest.raises(pumice.InvalidInputError, match=r"coopmat|none|int_dot|feature"):
        pumice.load(data, features=features)


def test_unknown_method_and_device(data) -> None:
    with pytest.raises(pumice.InvalidInputError, match="forward"):
        pumice.load(data).method("backward")
    with pytest.raises(pumice.DeviceError, match="llvmpipe"):  # lists what was found
        pumice.load(data, device="GeForce 256")


def test_ctrl_c_ends_a_run_cleanly(data, tmp_path) -> None:
    path = tmp_path / "m.pumice"
    path.write_bytes(data)
    code = (
        "import signal, numpy as np, pumice\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job inherits an ignored one
        f"s = pumice.load({str(path)!r})\n"
        "x = [np.zeros(4, np.int64), np.zeros((4, 8), np.float32), np.ones((4, 1), np.bool_)]\n"
        "s.run_flat(x); print('ready', flush=True)\n"
        "while True: s.run_flat(x)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()  # it runs for ever if the signal did not reach it
    assert process.returncode in (-signal.SIGINT, 130, 1) and "KeyboardInterrupt" in errors
    assert "Fatal" not in errors and "Segmentation" not in errors


def test_tensors_without_data(data) -> None:
    session = pumice.load(data)
    ids, x, flag = (torch.from_numpy(array) for array in good())
    for bad, match in [(x.to("meta"), "a meta tensor"), (x.to_sparse(), "not an array of numbers")]:
        with pytest.raises(pumice.InvalidInputError, match=match) as caught:
            session(ids, bad, flag)
        assert caught.value.code == "InvalidArgument" and caught.value.path == "input 'x'"
    torch.testing.assert_close(session(ids, torch._neg_view(x), flag)[0], session(ids, -x, flag)[0])


def test_a_module_without_data() -> None:
    module = nn.Linear(4, 3, device="meta").eval()
    with pytest.raises(pumice.UnsupportedError, match="'weight' is on the meta device, "):
        pumice.export(module, (torch.zeros(2, 4, device="meta"),))
