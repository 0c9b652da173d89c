# SPDX-License-Identifier: Apache-2.0
"""fp32 convolutions, on GPUs as sums of fp16 products: tiny beside huge, Inf and NaN, and what is folded into them.
Every device keeps the bound of ops/conv2d.cpp; `./dev test-gpu` runs them where conv/fragments.glslh does."""

from __future__ import annotations

import pytest
import torch
from support.conv import Case, convolve
from support.device import device
from support.one_call import OneCall
from torch.nn import functional as F

import pumice

INF, LEAST = float("inf"), 2.0**-126

on_gpu = pytest.mark.skipif("fragments" not in device().features, reason="no kernel of that kind runs here")
TILES = [pytest.param(name, marks=on_gpu) for name in ("split_conv64x32", "split_conv128x32")]

CASES = [
    Case(1, 64, 64, 3, (14, 14), padding=1),
    Case(2, 33, 40, (2, 3), (9, 8), (2, 1), (1, 2), (1, 2)),
    Case(3, 17, 12, 1, (5, 7)),
    Case(1, 3, 17, 7, (16, 15), 3, 3),
    Case(3, 176, 20, 3, (5, 5), padding=1),
    Case(1, 128, 8, 1, (7, 7), 2),
    Case(2, 8, 16, (5, 4), (17, 12), 3, 2),
    Case(1, 40, 5, 1, (6, 6)),
]


def extreme_x(case: Case) -> torch.Tensor:
    """Pixels of very different sizes, with tiny channels beside huge ones, zeros, Inf and NaN."""
    x = case.x()
    x[0, :, 0, 0] *= 1e30
    x[0, :, 0, 1] *= 1e-30
    x[0, :, 1, 0] *= 1e-41
    x[0, 0, 1, 1] = 1e12
    x[0, :, 2, 0] = 0
    x[0, :, 2, 1] *= torch.logspace(-20, 0, case.channels)
    x[0, 0, 3, 0], x[0, -1, 3, 2], x[0, 0, 4, 4] = INF, -INF, float("nan")
    x[0, 0, -1, -1] = 2.0**31  # the weights of this channel are mostly 0
    return x


def extreme_weight(module: torch.nn.Conv2d) -> torch.Tensor:
    weight = module.weight.detach().clone()
    weight[0] *= 1e20
    weight[1] *= 1e-25
    weight[2, 0] = 1e12
    weight[3, 0] = 0
    if len(weight) > 8:
        weight[4, 0, 0, 0], weight[5, 0, 0, 0], weight[7, 0, 0, 0] = INF, float("nan"), 1e-38
        weight[6] = 0
        weight[8:, 0] = 0
    return weight


def finite(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isfinite(), x, 0).abs().double()


def normal(x: torch.Tensor) -> torch.Tensor:
    """Drivers may take subnormal numbers for 0."""
    return torch.where((x.abs() >= LEAST) | x.isnan(), x, 0).double()


def allowed(case: Case, x: torch.Tensor, weight: torch.Tensor, want: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bound of ops/conv2d.cpp, and sum|x w|."""
    x, weight = finite(x), finite(weight)
    size = convolve(case, x, weight, None)
    ones = torch.ones(1, case.channels, *weight.shape[2:], dtype=torch.float64)
    pads = (case.padding,) * 2 if isinstance(case.padding, int) else case.padding
    spread = {"kernel_size": weight.shape[2:], "stride": case.stride, "dilation": case.dilation, "padding": pads}
    largest = F.unfold(x, **spread).amax(1).reshape(len(x), 1, *want.shape[2:])
    rows = weight.flatten(1)
    reach = largest * rows.sum(1)[:, None, None] + convolve(case, x, ones, None) * rows.amax(1)[:, None, None]
    flushed = convolve(case, x * (x < LEAST), weight, None) + convolve(case, x, weight * (weight < LEAST), None)
    terms = rows.shape[1]
    rounded = (2**-23 * (terms + 26) + 2**-19) * size + 2**-24 * want.abs().nan_to_num(0, 0, 0)
    return rounded + 2**-49 * reach + flushed + (terms + 1) * LEAST, size


@pytest.mark.parametrize("kernel", [None, *TILES])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_extremes(case: Case, kernel: str | None) -> None:
    torch.manual_seed(1)
    module = case.module()
    module.weight.data, module.bias.data = extreme_weight(module), torch.zeros(case.out)
    x, weight = extreme_x(case), module.weight.detach()
    session = pumice.load(bytes(pumice.export(module, (x,))), features=kernel and f"kernel={kernel}")
    got = session(x).double()
    want = convolve(case, x.double(), weight.double(), None)
    flushed = convolve(case, normal(x), normal(weight), None)
    bound, size = allowed(case, x, weight, want)
    fits = size < 1e38
    known = fits & want.isfinite()
    assert known.any() and ((got - want).abs() <= bound)[known].all()
    for each in (torch.isnan, torch.isposinf, torch.isneginf):
        assert ((each(got) == each(want)) | (each(got) == each(flushed)))[fits].all()
    if {"fragments", "split"} <= set(session.device.features):
        assert any(row.split for row in session.profile(x))
        assert kernel is None or any("conv2d_tile_fragments[" in row.kernel for row in session.profile(x))


class Chain(torch.nn.Module):
    """Channels-last from layer to layer on GPUs, the sum in the second convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(channels, channels, 1)
        self.second = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.last = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.first(x).relu()
        y = (self.second(y) + y).relu()
        return self.last(y), -y


@pytest.mark.parametrize(
    ("dtype", "kernel"),
    [
        (torch.float32, None),
        (torch.float16, None),
        *[pytest.param(torch.float32, *each.values, marks=on_gpu) for each in TILES],
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [7, 8])
def test_between_convolutions(size: int, dtype: torch.dtype, kernel: str | None) -> None:
    """Of one image other kernels are picked than of many: the sizes of a session change."""
    torch.manual_seed(2)
    module = Chain(40).to(dtype).eval()
    shapes = ({0: torch.export.Dim("n", min=1, max=512)},)
    program = pumice.export(module, (torch.zeros(2, 40, size, size, dtype=dtype),), dynamic_shapes=shapes)
    session = pumice.load(bytes(program), features=kernel and f"kernel={kernel}")
    exact = Chain(40).double()
    exact.load_state_dict({name: value.double() for name, value in module.state_dict().items()})
    for batch in (1, 3, 128, 2):
        x = torch.randn(batch, 40, size, size).to(dtype)
        for got, want in zip(session(x), exact(x.double()), strict=True):
            # Three layers, each of numbers up to 8: fp16 rounds three results, sums of 400 products stay below that.
            limit = 2.0**-16 if dtype is torch.float32 else 2.0**-6
            assert (got.double() - want).abs().max() <= limit


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("channels", "height", "width"), [(48, 8, 8), (33, 4, 9), (33, 3, 5), (6, 1, 1)], ids=str)
def test_factors_of_channels(channels: int, height: int, width: int, kernel: int) -> None:
    """conv(image * factors) with the product as an output, too, which is then computed by itself: the same bits."""

    def file(apart: bool) -> bytes:
        torch.manual_seed(3)
        program, f32 = OneCall(), torch.float32
        image, factors = program.input(f32, [3, channels, height, width]), program.input(f32, [3, channels, 1, 1])
        x = program.call("mul", [image, factors], f32, [3, channels, height, width], inner=not apart)
        weight, bias = torch.randn(24, channels * kernel**2), torch.randn(24)
        geometry = [[kernel] * 2, [1, 1], [kernel // 2] * 4, [1, 1], 1, False, 0]
        args = [x, program.constant(weight), program.constant(bias), *geometry]
        program.call("conv2d", args, f32, [3, 24, height, width])
        return program.bytes()

    image, factors = torch.randn(3, channels, height, width), torch.rand(3, channels, 1, 1)
    factors[1, 0] = INF  # behind the last channel of the image before
    got = pumice.load(file(False))(image, factors)
    product, want = pumice.load(file(True))(image, factors)
    assert torch.equal(product, image * factors) and want[0].isfinite().all()
    assert torch.equal(got.isnan(), want.isnan()) and torch.equal(got.nan_to_num(7), want.nan_to_num(7))
