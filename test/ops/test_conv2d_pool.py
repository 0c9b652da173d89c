# SPDX-License-Identifier: Apache-2.0
"""Pooling between convolutions by matrices: it reads and writes channels-last, and no copy stands between. Compared
with the same file by kernels of NCHW, whose pooling test_pool.py compares with PyTorch."""

from __future__ import annotations

import pytest
import torch
from support.device import is_llvmpipe
from support.one_call import OneCall

import pumice

CHANNELS, WIDE, SCALE = 32, 64, 0.05
NUMBERS = {"x_scale": SCALE * 0.9, "out_scale": SCALE * 0.7}
# kernel, stride, pads, dilation, ceil_mode, the image of 9 x 11 pixels that comes out
WINDOWS = {
    "max": ([3, 3], [2, 2], [1, 1, 1, 1], [1, 1], False, (5, 6)),
    "max of holes": ([3, 2], [1, 2], [0, 0, 0, 1], [2, 3], False, (5, 5)),
    "max beyond the end": ([2, 2], [2, 2], [0, 0, 0, 0], [1, 1], True, (5, 6)),
    "mean": ([3, 3], [2, 2], [1, 1, 1, 1], [1, 1], False, (5, 6)),
    "mean with padding": ([2, 5], [1, 2], [1, 2, 0, 2], [1, 1], False, (9, 6)),
    "mean of a large window": ([7, 6], [1, 1], [0, 0, 0, 0], [1, 1], False, (3, 6)),  # which no such kernel has
}


class Net(OneCall):
    """x: [n, 3, 18, 22]. A convolution halves the images; of integers the values' zero point is `zero`."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.dtype, self.floats = dtype, dtype.is_floating_point
        self.low = 0 if dtype is torch.uint8 else -128
        self.zero = self.low + 125
        self.x = self.input(dtype, ["n", 3, 18, 22])

    def conv(self, x, channels: tuple[int, int], image: tuple[int, int], kernel: int, stride: int, inner: bool):
        columns, pad = channels[0] * kernel**2, kernel // 2
        real = torch.randn(channels[1], columns) * (2 / columns) ** 0.5
        bias = self.constant(torch.randn(channels[1]) * 0.2)
        geometry = [[kernel] * 2, [stride] * 2, [pad] * 4, [1, 1], 1, False, 0]
        dims = ["n", channels[1], *image]
        if self.floats:
            return self.call("conv2d", [x, self.constant(real.half()), bias, *geometry], self.dtype, dims, inner)
        scale = real.abs().amax(1, keepdim=True) / 127
        weight = self.constant((real / scale).round().to(torch.int8))
        args = [x, weight, self.constant(scale), None, bias, *geometry, SCALE, self.zero]
        args += [NUMBERS["x_scale"], self.zero, self.low, self.low + 255]
        return self.call("q8ta_conv2d", args, self.dtype, dims, inner)

    def numbers(self) -> list:
        """Of a mean of integers."""
        return [NUMBERS["x_scale"], self.zero, NUMBERS["out_scale"], self.zero + 3, self.low, self.low + 255]

    def pool(self, name: str, x, inner: bool):
        *window, image = WINDOWS[name]
        mean = name.startswith("mean")
        more = [name == "mean with padding", None] if mean else []
        if mean and not self.floats:
            more += self.numbers()
        op = "max_pool" if not mean else "avg_pool" if self.floats else "q8ta_avg_pool"
        return self.call(op, [x, *window, *more], self.dtype, ["n", CHANNELS, *image], inner)


def both(file: bytes, dtype: torch.dtype) -> tuple[pumice.Session, pumice.Session]:
    """By matrices, and by kernels that have no other layout."""
    kernel = "conv32x32" if dtype.is_floating_point else "conv8_16x32" if is_llvmpipe() else "conv8_64x128"
    return pumice.load(file, features=f"kernel={kernel}"), pumice.load(file, features="kernel=conv_tiled")


def compare(file: bytes, dtype: torch.dtype, values: int) -> list[str]:
    """Of two batches; the kernels that ran. `values`: that are rounded to fp16 one after another."""
    matrices, tiled = both(file, dtype)
    for n in (2, 1):
        x = torch.randn(n, 3, 18, 22).half()
        if not dtype.is_floating_point:
            x = torch.randint(0, 256, (n, 3, 18, 22)).to(torch.uint8).view(dtype)
        for got, want in zip(matrices(x), tiled(x), strict=True):
            limit = values * 2.0**-11 * want.abs().max().item() if dtype.is_floating_point else 0
            assert (got.double() - want.double()).abs().max() <= limit, (got, want)
            assert want.unique().numel() > 15
    return [row.kernel.split("[")[0] for row in matrices.profile(x)]


DTYPES = [torch.uint8, torch.int8, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", WINDOWS)
def test_between_convolutions(name, dtype) -> None:
    net = Net(dtype)
    pooled = net.pool(name, net.conv(net.x, (3, CHANNELS), (9, 11), 3, 2, inner=True), inner=True)
    net.conv(pooled, (CHANNELS, WIDE), WINDOWS[name][-1], 3, 1, inner=False)
    net.conv(pooled, (CHANNELS, CHANNELS), WINDOWS[name][-1], 1, 1, inner=False)
    ran = compare(net.bytes(), dtype, 3)
    large = "large" in name
    assert ran.count("conv2d_to_nchw") == 0 and ran.count("conv2d_to_channels_last") == large, ran
    assert ran.count("conv2d_row_taps") == 1 and ran.count("pool") == 1, ran


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_others_read_is_nchw(dtype) -> None:
    """A pooled image that is an output, too, and one that nothing else reads."""
    net = Net(dtype)
    x = net.conv(net.x, (3, CHANNELS), (9, 11), 3, 2, inner=True)
    pooled = net.pool("max", x, inner=False)
    net.conv(pooled, (CHANNELS, WIDE), (5, 6), 3, 1, inner=False)
    net.pool("max of holes", x, inner=False)
    compare(net.bytes(), dtype, 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("image", "stride"), [((9, 11), 2), ((3, 4), 6)])
def test_mean_of_an_image(image, stride, dtype) -> None:
    net = Net(dtype)
    dims = ["n", CHANNELS, *image]
    x = net.conv(net.x, (3, CHANNELS), image, 3, stride, inner=True)
    x = net.call("view", [x, [-1, *dims[1:]]], dtype, dims, inner=True)  # as where it is quantized again
    if net.floats:
        pixel = net.call("mean", [x, [2, -1], True], dtype, ["n", CHANNELS, 1, 1], inner=True)
    else:
        args = [x, [1, 1], *net.numbers()]
        pixel = net.call("q8ta_adaptive_avg_pool", args, dtype, ["n", CHANNELS, 1, 1], inner=True)
    net.call("view", [pixel, [-1, CHANNELS]], dtype, ["n", CHANNELS])
    net.conv(pixel, (CHANNELS, WIDE), (1, 1), 1, 1, inner=False)
    ran = compare(net.bytes(), dtype, 3)
    assert ran.count("conv2d_to_nchw") == 0 and ran.count("pool") == 1 and "reduce" not in ran, ran


def test_mean_without_dimensions_of_size_1() -> None:
    net = Net(torch.float16)
    x = net.conv(net.x, (3, CHANNELS), (9, 11), 3, 2, inner=True)
    net.call("mean", [x, [2, 3], False], torch.float16, ["n", CHANNELS])
    ran = compare(net.bytes(), torch.float16, 2)
    assert ran.count("pool") == 1 and "conv2d_to_nchw" not in ran, ran


def test_a_mean_beside_another_reader_copies_nothing() -> None:
    net = Net(torch.float16)
    x = net.conv(net.x, (3, CHANNELS), (9, 11), 3, 2, inner=True)
    net.call("mean", [x, [2, 3], True], torch.float16, ["n", CHANNELS, 1, 1])
    net.call("relu", [x], torch.float16, ["n", CHANNELS, 9, 11])
    ran = compare(net.bytes(), torch.float16, 2)
    assert "conv2d_to_nchw" not in ran and "pool" not in ran, ran
