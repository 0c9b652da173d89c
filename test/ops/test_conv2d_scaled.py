# SPDX-License-Identifier: Apache-2.0
"""A convolution of an image by factors of its channels: by matrices it multiplies while it loads x. Compared bit for
bit with the same file in which the product is an output, too, so that it is computed by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from support.conv import has_splits
from support.device import device
from support.one_call import OneCall
from support.squeeze_excite import SqueezeExcite
from torch import nn

import pumice

MATRICES = "like_gpu,kernel=conv32x32"


@dataclass
class Net:
    """conv(image * factors), then more."""

    channels: int
    height: int
    width: int
    out: int = 24
    kernel: int = 1
    factors: tuple | None = None  # their shape; [n, C, 1, 1]
    image_first: bool = True
    residual: bool = False  # act(conv + other)
    next_kernel: int = 0  # of a convolution behind it: it reads channels-last
    dtype: torch.dtype = torch.float16
    batch: int | str = "n"

    def conv(self, program: OneCall, x, channels: int, out: int, kernel: int, inner: bool):
        columns = channels * kernel**2
        weight = (torch.randn(out, columns) * columns**-0.5).to(self.dtype)
        geometry = [[kernel] * 2, [1, 1], [kernel // 2] * 4, [1, 1], 1, False, 0]
        args = [x, program.constant(weight), program.constant(torch.randn(out)), *geometry]
        return program.call("conv2d", args, self.dtype, [self.batch, out, self.height, self.width], inner)

    def file(self, product_is_output: bool) -> bytes:
        torch.manual_seed(5)
        program, dtype = OneCall(), self.dtype
        dims = [self.batch, self.channels, self.height, self.width]
        image = program.input(dtype, dims)
        factors = program.input(dtype, self.factors or [self.batch, self.channels, 1, 1])
        sides = [image, factors] if self.image_first else [factors, image]
        x = program.call("mul", sides, dtype, dims, inner=not product_is_output)
        more = self.residual or self.next_kernel != 0
        y = self.conv(program, x, self.channels, self.out, self.kernel, inner=more)
        if self.residual:
            dims = [self.batch, self.out, self.height, self.width]
            other = program.input(dtype, dims)
            y = program.call("add_relu", [y, other], dtype, dims, self.next_kernel != 0)
        if self.next_kernel:
            self.conv(program, y, self.out, 16, self.next_kernel, inner=False)
        return program.bytes()

    def inputs(self, n: int) -> list[torch.Tensor]:
        shape = (n, self.channels, self.height, self.width)
        factors = [n if size == "n" else size for size in self.factors or ("n", self.channels, 1, 1)]
        inputs = [torch.randn(shape), torch.rand(factors)]
        inputs += [torch.randn(n, self.out, self.height, self.width)] if self.residual else []
        return [x.to(self.dtype) for x in inputs]


def check(net: Net, *, fused: bool, features: str = MATRICES, batches: tuple[int, ...] = (2, 1, 3)) -> list[str]:
    one, two = (pumice.load(net.file(apart), features=features) for apart in (False, True))
    for n in batches:
        inputs = net.inputs(n)
        got, (product, want) = one(*inputs), two(*inputs)
        assert torch.equal(product, inputs[0] * inputs[1])
        assert torch.equal(got, want), (got - want).abs().max()
    rows, apart = (session.profile(*inputs) for session in (one, two))
    ran, apart = (
        [row.kernel for row in rows] + ["splits" for row in rows if has_splits(row)],
        [row.kernel for row in apart],
    )
    assert apart[0].startswith("binary["), apart
    assert any(kernel.startswith("binary[") for kernel in ran) != fused, ran
    return ran


@pytest.mark.parametrize("image_first", [True, False])
@pytest.mark.parametrize(
    ("channels", "height", "width"),
    [(48, 8, 8), (33, 4, 9), (20, 2, 2), (7, 6, 6), (800, 2, 6)],  # 2 x 2, 2 x 6: a half8 of two images; 800: splits
    ids=str,
)
def test_nchw(channels: int, height: int, width: int, image_first: bool) -> None:
    ran = check(Net(channels, height, width, image_first=image_first), fused=True)
    assert any(kernel.startswith("conv2d_matrix[nchw") for kernel in ran), ran
    assert not any(kernel.startswith("conv2d_to_channels_last") for kernel in ran), ran
    assert ("splits" in ran) == (channels == 800), ran


@pytest.mark.parametrize(("channels", "height", "width"), [(48, 7, 7), (33, 3, 5), (6, 1, 1), (800, 7, 7)], ids=str)
def test_images_that_are_no_vec4_groups(channels: int, height: int, width: int) -> None:
    """The copy of x to channels-last multiplies."""
    ran = check(Net(channels, height, width), fused=True)
    assert any(kernel.startswith("conv2d_to_channels_last") for kernel in ran), ran


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (7, 7)], ids=str)
def test_between_other_convolutions(height: int, width: int, residual: bool) -> None:
    check(Net(40, height, width, residual=residual, next_kernel=3), fused=True)


on_fragments = pytest.mark.skipif("fragments" not in device().features, reason="no kernel of that kind runs here")


@on_fragments
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(
    "net",
    [
        Net(48, 8, 8),
        Net(96, 7, 7, out=40),
        Net(480, 5, 9, out=80, residual=True),
        Net(64, 2, 2, out=17),
        Net(200, 14, 14, out=112, next_kernel=3),
        Net(40, 1, 7),
    ],
    ids=str,
)
def test_few_pixels(net: Net, dtype: torch.dtype) -> None:
    """The kernel gathers the channels of an image that is NCHW itself."""
    kernel = "split_conv_gemvf8x2" if dtype is torch.float32 else "conv_gemvf8x2"
    for n in (1, 3):
        ran = check(replace(net, dtype=dtype, batch=n), fused=True, features=f"kernel={kernel}", batches=(n,))
        assert any(kernel.startswith("conv2d_fragments[") for kernel in ran), ran
        # Of the residual, no other.
        assert sum(kernel.startswith("conv2d_to_channels_last") for kernel in ran) == net.residual, ran


def test_factors_of_infinity_and_nan() -> None:
    """Of one image alone: of its first channel, which is behind the last one of the image before."""
    for height, width in ((2, 2), (3, 3)):
        net = Net(33, height, width)
        one, two = (pumice.load(net.file(apart), features=MATRICES) for apart in (False, True))
        for value in (float("inf"), float("nan")):
            image, factors = net.inputs(2)
            factors[1, 0] = value
            got, want = one(image, factors), two(image, factors)[1]
            assert torch.equal(got.nan_to_num(7), want.nan_to_num(7)) and want[0].isfinite().all()


@pytest.mark.parametrize(
    "net",
    [
        Net(48, 8, 8, kernel=3),
        Net(48, 8, 8, factors=("n", 1, 1, 1)),
        Net(48, 8, 8, factors=(1, 48, 1, 1)),
        Net(48, 8, 8, factors=("n", 48, 8, 8)),
        Net(48, 8, 8, factors=(48, 1, 1)),
    ],
    ids=["3x3", "of images", "of all images", "of pixels", "of rank 3"],
)
def test_other_products(net: Net) -> None:
    check(net, fused=False)


def test_another_kernel() -> None:
    check(Net(48, 8, 8), fused=False, features="kernel=conv_tiled")


class Block(nn.Module):
    """The second half of a block of EfficientNet or MobileNetV3."""

    def __init__(self, channels: int, out: int, **options) -> None:
        super().__init__()
        self.scaled = SqueezeExcite(channels, 8, **options)
        self.project = nn.Sequential(nn.Conv2d(channels, out, 1, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.project(self.scaled(x)) + other


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("size", [7, 8])
def test_an_export_with_a_batch_of_any_size(size: int, linear: bool) -> None:
    torch.manual_seed(6)
    block = Block(48, 24, linear=linear).eval().half()
    inputs = torch.randn(2, 48, size, size).half(), torch.randn(2, 24, size, size).half()
    batch = torch.export.Dim("batch", min=1, max=8)
    program = pumice.export(block, inputs, dynamic_shapes=({0: batch}, {0: batch}))
    session = pumice.load(bytes(program), features=MATRICES)
    for n in (2, 1, 3):
        inputs = torch.randn(n, 48, size, size).half(), torch.randn(n, 24, size, size).half()
        with torch.no_grad():
            want = block(*inputs)
        assert (session(*inputs).float() - want.float()).abs().max() <= 4 * 2.0**-11 * want.abs().max()
    ran = [row.kernel for row in session.profile(*inputs)]
    assert not any(kernel.startswith("binary[") for kernel in ran), ran


def test_a_product_declared_with_another_shape() -> None:
    program, f16 = OneCall(), torch.float16
    image, factors = program.input(f16, [2, 16, 8, 8]), program.input(f16, [2, 16, 1, 1])
    product = program.call("mul", [image, factors], f16, [2, 16, 8, 9], inner=True)
    weight = program.constant(torch.randn(24, 16).half())
    geometry = [[1, 1], [1, 1], [0] * 4, [1, 1], 1, False, 0]
    program.call("conv2d", [product, weight, None, *geometry], f16, [2, 24, 8, 8])
    with pytest.raises(pumice.InvalidFileError) as error:
        pumice.load(program.bytes(), features=MATRICES)
    assert error.value.code == "BadShape"
