# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose output tiles several workgroups share (split-K): the last one of a tile adds the sums of all. All
floats are small integers, whose sums are exact in fp32 and fp16: answers have the bits of eager PyTorch in fp64."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import torch
from support.conv import has_splits
from support.device import is_llvmpipe
from support.one_call import OneCall
from torch.nn import functional as F

import pumice

MATRICES, DOTS = "like_gpu,kernel=conv32x32", "like_gpu,kernel=conv_dot32x32"
BYTES = "like_gpu,kernel=conv8_16x32"
SMALL = [DOTS, *([BYTES] * is_llvmpipe())]  # no matrices of another driver divide that tile
# Of large tiles in many splits a dispatch adds the sums.
LARGE_MATRICES, LARGE_DOTS, LARGE_BYTES = (
    f"like_gpu,kernel={n}" for n in ("conv32x64", "conv_dot64x64", "conv8_32x32")
)
CHANNELS = 800  # of x: 25 chunks of fp16 in a pixel; 117 of bytes in a 3x3 patch


def small(*shape: int, most: int = 1) -> torch.Tensor:
    return torch.randint(-most, most + 1, shape)


class Net:
    """A convolution in splits, perhaps a tensor that is added, perhaps a convolution that reads it channels-last."""

    def __init__(self, kernel: int, height: int, width: int, out: int, residual: bool, then: bool) -> None:
        torch.manual_seed(height * width + out)
        self.dims = [CHANNELS, height, width]
        self.program, f16 = OneCall(), torch.float16
        self.weight, self.bias, self.next = small(out, CHANNELS * kernel**2), small(out, most=9), small(8, out)
        self.kernel, self.residual, self.then = kernel, residual, then
        x = self.program.input(f16, ["n", *self.dims])
        dims = ["n", out, height, width]
        y = self.conv(x, self.weight, self.bias, kernel, dims, inner=residual or then)
        if residual:
            y = self.program.call("add_relu", [y, self.program.input(f16, dims)], f16, dims, inner=then)
        if then:
            self.conv(y, self.next, None, 1, ["n", 8, height, width], inner=False)

    def conv(self, x, weight: torch.Tensor, bias: torch.Tensor | None, kernel: int, dims: list, inner: bool):
        geometry = [[kernel] * 2, [1, 1], [kernel // 2] * 4, [1, 1], 1, False, 0]
        bias = None if bias is None else self.program.constant(bias.float())
        args = [x, self.program.constant(weight.half()), bias, *geometry]
        return self.program.call("conv2d", args, torch.float16, dims, inner)

    def inputs(self, n: int) -> list[torch.Tensor]:
        x = [small(n, *self.dims).half()]
        return [*x, small(n, len(self.weight), *self.dims[1:], most=9).half()] if self.residual else x

    def want(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        weight = self.weight.double().view(-1, CHANNELS, self.kernel, self.kernel)
        y = F.conv2d(x.double(), weight, self.bias.double(), padding=self.kernel // 2)
        y = y if other is None else F.relu(y + other.double())
        return (F.conv2d(y, self.next.double()[..., None, None]) if self.then else y).half()


@pytest.mark.parametrize(
    ("kernel", "height", "width", "out", "residual", "then"),
    [
        (1, 7, 7, 40, False, False),  # a copy of x; images that are no vec4 groups, and a last tile of few rows
        (1, 4, 9, 24, False, False),  # x as NCHW
        (1, 4, 9, 24, True, False),
        (3, 5, 5, 36, False, False),
        (3, 5, 7, 48, False, True),
        (3, 5, 7, 48, True, True),
        (1, 1, 1, 33, False, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("features", [MATRICES, MATRICES + ",submit_us=1"], ids=["whole", "in pieces"])
def test_floats(kernel, height, width, out, residual, then, features) -> None:
    net = Net(kernel, height, width, out, residual, then)
    session = pumice.load(net.program.bytes(), features=features)
    for n in (2, 1, 3, 2, 2):  # recordings of other shapes have the same tickets
        inputs = net.inputs(n)
        want = net.want(*inputs)
        for _ in range(3):
            assert torch.equal(session(*inputs), want)
    rows = session.profile(*inputs)
    assert any(has_splits(row) for row in rows), rows


def ran(rows: list, name: str) -> bool:
    return any(row.kernel.startswith(name) for row in rows)


@pytest.mark.parametrize(
    ("height", "width", "out", "residual", "then"), [(5, 5, 36, False, False), (5, 7, 48, True, True)], ids=str
)
def test_floats_of_large_tiles(height, width, out, residual, then) -> None:
    net = Net(3, height, width, out, residual, then)
    session = pumice.load(net.program.bytes(), features=LARGE_MATRICES)
    for n in (2, 1, 3):
        inputs = net.inputs(n)
        assert torch.equal(session(*inputs), net.want(*inputs))
    assert ran(session.profile(*inputs), "conv2d_split_k[")


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float16], ids=str)
@pytest.mark.parametrize("features", [each + more for each in SMALL for more in ("", ",submit_us=1")])
def test_bytes(dtype, features) -> None:
    """The bits of the kernel that a CPU gets, which has no splits."""
    assert not ran(check_bytes(dtype, features, channels=176), "conv2d_split_k_int8")


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("features", [LARGE_BYTES, LARGE_DOTS])
def test_bytes_of_large_tiles(dtype, features) -> None:
    assert ran(check_bytes(dtype, features, channels=800), "conv2d_split_k_int8")


def of_bytes(program: OneCall, x, dtype: torch.dtype, channels: int, out: int, dims: list, inner: bool = False):
    """A 3x3 convolution of 8-bit integers."""
    weight = small(out, channels * 9, most=127).to(torch.int8)
    args = [x, program.constant(weight), program.constant(torch.rand(out, 1) * 1e-3), None]
    args += [program.constant(torch.randn(out)), [3, 3], [1, 1], [1] * 4, [1, 1], 1, False, 0, 0.02, 3]
    low, high = (0, 255) if dtype is torch.uint8 else (-128, 127)
    name, tail = ("conv2d_q8ta_q8csw", []) if dtype.is_floating_point else ("q8ta_conv2d", [0.11, 7, low, high])
    return program.call(name, [*args, *tail], dtype, dims, inner)


def check_bytes(dtype: torch.dtype, features: str, channels: int) -> list:
    torch.manual_seed(4)
    program, out = OneCall(), 40
    x_dtype = torch.uint8 if dtype is torch.uint8 else torch.int8
    for height, width in [(5, 5), (4, 8)]:
        x = program.input(x_dtype, ["n", channels, height, width])
        of_bytes(program, x, dtype, channels, out, ["n", out, height, width])
    session, plain = (pumice.load(program.bytes(), features=each) for each in (features, ""))
    for n in (2, 1, 2):
        inputs = [torch.randint(0, 128, (n, channels, *size)).to(x_dtype) for size in [(5, 5), (4, 8)]]
        for got, want in zip(session(*inputs), plain(*inputs), strict=True):
            assert torch.equal(got, want)
    rows = session.profile(*inputs)
    assert [has_splits(row) for row in rows if row.kernel.startswith(("conv2d_matrix", "conv2d_dot"))] == [True, True]
    return rows


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float16], ids=str)
def test_bytes_of_large_tiles_between_convolutions(dtype) -> None:
    """The dispatch that adds the sums writes channels-last."""
    torch.manual_seed(5)
    program, x_dtype = OneCall(), torch.uint8 if dtype is torch.uint8 else torch.int8
    x = program.input(x_dtype, ["n", CHANNELS, 5, 5])
    y = of_bytes(program, x, dtype, CHANNELS, 48, ["n", 48, 5, 5], inner=True)
    if dtype.is_floating_point:
        args = [y, program.constant(small(16, 48).half()), None, [1, 1], [1, 1], [0] * 4, [1, 1], 1, False, 0]
        program.call("conv2d", args, dtype, ["n", 16, 5, 5])
    else:
        of_bytes(program, y, dtype, 48, 16, ["n", 16, 5, 5])
    session, plain = (pumice.load(program.bytes(), features=each) for each in (LARGE_BYTES, ""))
    x = torch.randint(0, 128, (2, CHANNELS, 5, 5)).to(x_dtype)
    got, want = session(x), plain(x)
    # Sums of 48 numbers in fp32, in another order, and one rounding to fp16; of bytes none.
    allowed = 2.0**-10 * want.abs() + 2.0**-12 if dtype.is_floating_point else 0
    assert ((got.double() - want.double()).abs() <= allowed).all()
    short = {torch.int8: "i8", torch.uint8: "u8", torch.float16: "f16"}[dtype]
    assert ran(session.profile(x), f"conv2d_split_k_int8[{short},channels_last]")


def branches(count: int) -> tuple[OneCall, torch.Tensor]:
    """So many convolutions of one x, which may run at once where their tickets differ."""
    program = OneCall()
    x = program.input(torch.float16, ["n", CHANNELS, 4, 4])
    weights = small(count, 24, CHANNELS)
    for weight in weights:
        geometry = [[1, 1], [1, 1], [0] * 4, [1, 1], 1, False, 0]
        args = [x, program.constant(weight.half()), None, *geometry]
        program.call("conv2d", args, torch.float16, ["n", 24, 4, 4])
    return program, weights


def check_branches(session: pumice.Session, weights: torch.Tensor, n: int) -> None:
    x = small(n, CHANNELS, 4, 4).half()
    for got, weight in zip(session(x), weights, strict=True):
        assert torch.equal(got, F.conv2d(x.double(), weight.double()[..., None, None]).half())


def test_branches(monkeypatch) -> None:
    monkeypatch.setenv("PUMICE_CHECK_HAZARDS", "1")
    program, weights = branches(17)
    session = pumice.load(program.bytes(), features=MATRICES)
    for n in (1, 2, 3):
        check_branches(session, weights, n)


def together(*actions: Callable[[], object]) -> None:
    errors: list[BaseException] = []

    def run(action: Callable[[], object]) -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_sessions_at_once() -> None:
    """Each session has its tickets; the threads of one session take turns."""
    program, weights = branches(5)
    one, two = (pumice.load(program.bytes(), features=MATRICES + ",submit_us=1") for _ in range(2))
    together(*[lambda s=s: [check_branches(s, weights, 1 + i % 2) for i in range(10)] for s in (one, one, two, two)])


def test_after_runs_that_were_stopped() -> None:
    """Between two submits some of a tile's splits have counted themselves: the session clears what they left."""
    program, weights = branches(9)
    session = pumice.load(program.bytes(), features=MATRICES + ",submit_us=1")
    check_branches(session, weights, 2)
    x, stopped = small(2, CHANNELS, 4, 4).half(), 0
    begin = time.monotonic()
    session(x)
    seconds = time.monotonic() - begin
    for i in range(12):
        timer = threading.Timer(seconds * (i + 1) / 13, session.cancel)
        timer.start()
        try:
            session(x)
        except pumice.Error as error:
            assert error.code == "Cancelled"
            stopped += 1
        timer.join()
        check_branches(session, weights, 2)
    assert stopped > 0
