# SPDX-License-Identifier: Apache-2.0
"""Convolutions by matrices one after another: the values between them are channels-last, and a sum of two values
is computed with the convolution before it. Compared with the same file by the kernels that know neither."""

from __future__ import annotations

import pytest
import torch
from support.conv import has_splits
from support.device import is_llvmpipe
from support.one_call import OneCall
from torch.nn.functional import conv2d

import pumice

SCALE, WIDE, NARROW, RELU = 0.05, 176, 16, 1  # WIDE: its 3 x 3 convolutions are summed in splits


class Chain:
    """Convolutions and sums of one dtype. x: [n, WIDE, 6, 7], whose images do not begin with a vec4 group."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.program, self.dtype = OneCall(), dtype
        self.zero = {torch.int8: -3, torch.uint8: 131}.get(dtype, 0)
        self.low = 0 if dtype is torch.uint8 else -128
        self.x = self.program.input(dtype, ["n", WIDE, 6, 7])

    @property
    def floats(self) -> bool:
        return self.dtype.is_floating_point

    def conv(self, x, sizes: tuple[int, int], out: int, kernel: int, stride: int = 1, inner: bool = True, act: int = 0):
        columns, pad = sizes[1] * kernel**2, kernel // 2
        geometry = [[kernel] * 2, [stride] * 2, [pad] * 4, [1, 1], 1, False, act]
        image = [(6 + 2 * pad - kernel) // stride + 1, (7 + 2 * pad - kernel) // stride + 1]
        dims = ["n", out, *image]
        real = torch.randn(out, columns) * (2 / columns) ** 0.5
        bias = torch.randn(out) * 0.2
        constant = self.program.constant
        if self.floats:
            args = [x, constant(real.half()), constant(bias), *geometry]
            return self.program.call("conv2d", args, self.dtype, dims, inner)
        scale = real.abs().amax(1, keepdim=True) / 127
        weight = (real / scale).round().to(torch.int8)
        args = [x, constant(weight), constant(scale), None, constant(bias), *geometry, SCALE, self.zero]
        args += [SCALE * 0.9, self.zero + 2, self.low, self.low + 255]
        return self.program.call("q8ta_conv2d", args, self.dtype, dims, inner)

    def add(self, a, b, channels: int, act: int, inner: bool = False):
        dims = ["n", channels, 6, 7]
        if self.floats:
            return self.program.call(
                "add_relu" if act else "add", [a, b] if act else [a, b, 1.0], self.dtype, dims, inner
            )
        numbers = [
            SCALE * 0.9,
            self.zero + 2,
            SCALE * 1.1,
            self.zero,
            act,
            SCALE,
            self.zero,
            self.low + 5,
            self.low + 250,
        ]
        return self.program.call("q8ta_add", [a, b, *numbers], self.dtype, dims, inner)


def chain(dtype: torch.dtype) -> bytes:
    torch.manual_seed(3)
    net = Chain(dtype)
    first = net.conv(net.x, (6, WIDE), NARROW, 3, act=RELU)  # in splits, read channels-last
    wide = net.conv(first, (6, NARROW), WIDE, 1)
    total = net.add(net.conv(wide, (6, WIDE), NARROW, 3), first, NARROW, RELU, inner=True)  # in splits
    net.conv(total, (6, NARROW), NARROW, 3, stride=2, inner=False)  # written as other readers want it
    last = net.add(wide, net.conv(total, (6, NARROW), WIDE, 1), WIDE, 0)  # an output
    net.add(last, last, WIDE, 0)  # of no convolution, and read again
    return net.program.bytes()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float16], ids=str)
def test_chain(dtype) -> None:
    file = chain(dtype)
    floats = dtype.is_floating_point
    kernel = "conv32x32" if floats else "conv8_16x32" if is_llvmpipe() else "conv8_64x128"
    matrices = pumice.load(file, features=f"kernel={kernel}")
    tiled = pumice.load(file, features="kernel=conv_tiled")
    for n in (2, 1):
        x = (
            torch.randn(n, WIDE, 6, 7).half()
            if floats
            else torch.randint(0, 256, (n, WIDE, 6, 7)).to(torch.uint8).view(dtype)
        )
        for got, want in zip(matrices(x), tiled(x), strict=True):
            if floats:
                # A rounding to fp16 of each of five values on the way, of a size like that of the largest.
                limit = 5 * 2.0**-11 * want.abs().max()
                assert (got.float() - want.float()).abs().max() <= limit, (got - want).abs().max()
            else:
                assert torch.equal(got, want)
                assert want.unique().numel() > 50
    ran = [row.kernel.split("[")[0] for row in matrices.profile(x)]
    assert ran.count("conv2d_matrix" if floats else "conv2d_matrix_int8") == 5, ran
    assert ran.count("binary" if floats else "q8ta_binary") == 1, ran
    assert ran.count("conv2d_to_channels_last") == 1 and ran.count("conv2d_to_nchw") == 1, ran


@pytest.mark.parametrize("sum_too", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float16], ids=str)
def test_images_of_a_pixel_are_no_copies(dtype, sum_too) -> None:
    """But for bytes without a sign, which channels-last values have. `sum_too`: of two such convolutions of x."""
    torch.manual_seed(5)
    net, floats = Chain(dtype), dtype.is_floating_point
    net.program = OneCall()
    x = net.program.input(dtype, [3, WIDE, 1, 1])
    constant, real = net.program.constant, torch.randn(NARROW, WIDE) * (2 / WIDE) ** 0.5
    geometry, dims = [[1, 1], [1, 1], [0] * 4, [1, 1], 1, False, 0], [3, NARROW, 1, 1]

    def conv(weight: torch.Tensor):
        if floats:
            return net.program.call("conv2d", [x, constant(weight.half()), None, *geometry], dtype, dims, sum_too)
        scale = torch.full((NARROW, 1), 1 / 40)
        numbers = [SCALE, net.zero, SCALE * 0.9, net.zero + 2, net.low, net.low + 255]
        args = [x, constant((weight * 40).round().to(torch.int8)), constant(scale), None, None, *geometry, *numbers]
        return net.program.call("q8ta_conv2d", args, dtype, dims, sum_too)

    y = conv(real)
    if sum_too:
        numbers = [SCALE * 0.9, net.zero + 2] * 2 + [0, SCALE * 2, net.zero, net.low, net.low + 255]
        args = [y, conv(real.flip(1)), *([1.0] if floats else numbers)]
        net.program.call("add" if floats else "q8ta_add", args, dtype, dims)
    kernel = "conv32x32" if floats else "conv8_16x32" if is_llvmpipe() else "conv8_64x128"
    matrices, tiled = (pumice.load(net.program.bytes(), features=f"kernel={k}") for k in (kernel, "conv_tiled"))
    value = torch.randn(3, WIDE, 1, 1).half() if floats else torch.randint(0, 256, (3, WIDE, 1, 1)).to(torch.uint8)
    value = value.view(dtype)
    got, want = matrices(value), tiled(value)
    limit = 2.0**-9 if floats else 0
    assert torch.allclose(got.float(), want.float(), rtol=limit, atol=limit), (got, want)
    assert want.unique().numel() > 30
    ran = [row.kernel.split("[")[0] for row in matrices.profile(value)]
    assert ran.count("conv2d_to_channels_last") == (dtype is torch.uint8), ran
    assert ran.count("conv2d_to_nchw") == (sum_too and dtype is torch.uint8), ran


def pair(dtype: torch.dtype, kernel: int) -> tuple[bytes, torch.Tensor, torch.Tensor]:
    """A convolution of `dtype` into f16, and one of f16 that reads it channels-last, with both weights in fp64.
    x: [n, WIDE, 8, 8]."""
    torch.manual_seed(4)
    program = OneCall()
    constant = program.constant
    x = program.input(dtype, ["n", WIDE, 8, 8])
    columns = WIDE * kernel**2
    real = torch.randn(NARROW, columns) * (2 / columns) ** 0.5

    def geometry(size: int) -> list:
        return [[size] * 2, [1, 1], [size // 2] * 4, [1, 1], 1, False, 0]

    if dtype.is_floating_point:
        weight = real.half()
        op, args = "conv2d", [x, constant(weight), None, *geometry(kernel)]
        first = weight.double()
    else:
        scale = real.abs().amax(1, keepdim=True) / 127
        weight = (real / scale).round().to(torch.int8)
        args = [x, constant(weight), constant(scale), None, None, *geometry(kernel), SCALE, -3]
        op, first = "conv2d_q8ta_q8csw", weight.double() * scale.double()
    between = program.call(op, args, torch.float16, ["n", NARROW, 8, 8], inner=True)
    second = (torch.randn(WIDE, NARROW * 9) * (2 / (NARROW * 9)) ** 0.5).half()
    program.call("conv2d", [between, constant(second), None, *geometry(3)], torch.float16, ["n", WIDE, 8, 8])
    return program.bytes(), first.view(NARROW, WIDE, kernel, kernel), second.double().view(WIDE, NARROW, 3, 3)


def convolved(x: torch.Tensor, weight: torch.Tensor, off: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
    """In fp64, x being `off` off; and how far off the f16 of fp32 sums may be, which round each product and the end."""
    padding = weight.shape[-1] // 2
    want, sizes = conv2d(x, weight, padding=padding), conv2d(x.abs(), weight.abs(), padding=padding)
    error = weight[0].numel() * 2.0**-24 * sizes
    if off is not None:
        error = error + conv2d(off, weight.abs(), padding=padding)
    return want, error + 2.0**-11 * (want.abs() + error) + 2.0**-25  # half of f16's least number


@pytest.mark.parametrize(("dtype", "kernel"), [(torch.float16, 1), (torch.int8, 3)], ids=str)
def test_what_reads_no_channels_last_writes_them(dtype, kernel) -> None:
    """Of f16 that a pointwise convolution reads as they are, and of integers, whose sums come in splits."""
    file, first, second = pair(dtype, kernel)
    matrices = pumice.load(file, features="like_gpu,kernel=conv32x32")
    x = torch.randn(2, WIDE, 8, 8).half() if kernel == 1 else torch.randint(-128, 128, (2, WIDE, 8, 8)).to(torch.int8)
    between, between_off = convolved(x.double() if kernel == 1 else (x.double() + 3) * SCALE, first)
    want, off = convolved(between, second, between_off)
    assert ((matrices(x).double() - want).abs() <= off).all()
    ran = {row.kernel: has_splits(row) for row in matrices.profile(x)}
    if kernel == 1:
        assert "conv2d_matrix[nchw,channels_last]" in ran, ran
    elif is_llvmpipe():
        assert ran.get("conv2d_matrix_int8[f16,channels_last]"), ran
    else:  # a GPU has a kernel for few pixels, which takes no splits
        assert ran.keys() & {"conv2d_matrix_int8[f16,channels_last]", "conv2d_fragments_int8[f16,channels_last]"}, ran
