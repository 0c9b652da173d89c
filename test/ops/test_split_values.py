# SPDX-License-Identifier: Apache-2.0
"""Values larger than one storage buffer of the device: calls are cut along outer dimensions (graph/boxes.h,
graph/slices.h). `max_storage` makes a device of the CPU driver whose buffers are so small that small values show
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch.nn import functional as F

import pumice


class Of(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


@dataclass
class Case:
    function: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    limit: int  # bytes of a binding
    dtype: torch.dtype = torch.float32


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(*x.shape[:2], 3, -1).transpose(1, 2)


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return heads(q) @ heads(k).transpose(-2, -1)


def attention(**options: bool) -> Callable[..., torch.Tensor]:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *mask: torch.Tensor) -> torch.Tensor:
        out = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), *mask, **options)
        return out.transpose(1, 2).reshape(q.shape)

    return run


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)


HALF = torch.float16
ROWS = ((1, 67, 48), (1, 68, 48), (1, 68, 48))
CASES = {
    "unary": Case(lambda x: x.sin(), ((3, 67, 31),), 4096),
    "unary f16": Case(lambda x: x.sin(), ((3, 67, 31),), 4096, dtype=HALF),
    "binary": Case(lambda x, y: x * y, ((3, 67, 31), (3, 67, 31)), 4096),
    "a row": Case(lambda x, y: x * y, ((3, 67, 31), (31,)), 8192),
    "a column": Case(lambda x, y: x - y, ((3, 67, 31), (3, 67, 1)), 8192),
    "an image": Case(lambda x, y: x / (y.abs() + 1), ((5, 2, 16, 17), (2, 1, 17)), 4096),
    "a batch": Case(lambda x, y: x - y, ((5, 2, 16, 8), (5, 1, 16, 8)), 1024),
    "outer": Case(lambda x, y: x[:, :, :, None] * y[:, :, None], ((3, 16, 9), (3, 16, 20)), 4096),
    "compare": Case(lambda x, y: torch.where(x > y, x, y * 2), ((5, 64, 31), (64, 31)), 8192),
    "clamp": Case(lambda x: x.clamp(-0.5, 0.75), ((3, 67, 31),), 4096),
    "cast": Case(lambda x: x.half().float() * 1.5, ((3, 67, 31),), 4096),
    "softmax": Case(lambda x: torch.softmax(x, -1), ((3, 67, 31),), 8192),
    "softmax of heads": Case(lambda x: torch.softmax(x, -1), ((1, 3, 65, 65),), 20000, HALF),
    "log_softmax": Case(lambda x: torch.log_softmax(x, 1), ((3, 31, 64),), 20000),
    "layer_norm": Case(lambda x, w: F.layer_norm(x, (31,), w, w), ((3, 67, 31), (31,)), 8192),
    "layer_norm of two": Case(lambda x, w: F.layer_norm(x, (16, 31), w), ((9, 16, 31), (16, 31)), 4096),
    "rms_norm": Case(lambda x, w: F.rms_norm(x, (31,), w), ((3, 67, 31), (31,)), 8192),
    "group_norm": Case(lambda x, w: F.group_norm(x, 3, w, w), ((9, 6, 8, 8), (6,)), 4096),
    "sum": Case(lambda x: x.sum(-1), ((3, 67, 31),), 8192),
    "mean": Case(lambda x: x.mean((2, 3), keepdim=True), ((4, 30, 9, 7),), 8192),
    "amax": Case(lambda x: x.amax((1, 2)), ((64, 11, 7),), 8192),
    "cat": Case(lambda x, y: torch.cat((x, y), -1), ((3, 64, 9), (3, 64, 12)), 8192),
    "cat of the first": Case(lambda x, y: torch.cat((x, y, x)), ((5, 16, 13), (7, 16, 13)), 4096),
    "slice": Case(lambda x: x[1:3, 1:-1] * 1.5, ((4, 67, 32),), 8192),
    "select": Case(lambda x: x[2] + 1, ((5, 67, 31),), 4096),
    "flip": Case(lambda x: x.flip(0, 2) + 1, ((3, 67, 36),), 4096),
    "transpose": Case(lambda x: x.transpose(1, 2).contiguous() + 1, ((2, 96, 64),), 16384),
    "of heads": Case(lambda x: x.permute(0, 2, 1, 3).contiguous() + 1, ((1, 67, 3, 16),), 4096),
    "expand": Case(lambda x: x.expand(5, 67, 32).contiguous() + 1, ((67, 1),), 8192),
    "repeat": Case(lambda x: x.repeat(3, 2, 1) + 1, ((2, 33, 16),), 2048),
    "pad": Case(lambda x: F.pad(x, (1, 2, 3, 0)), ((3, 16, 9, 13),), 4096),
    "max_pool": Case(lambda x: F.max_pool2d(x, 3, 2), ((4, 16, 9, 13),), 8192),
    "upsample": Case(lambda x: F.interpolate(x, scale_factor=2.0), ((4, 16, 6, 5),), 8192),
    "matmul": Case(scores, ((2, 67, 48), (2, 68, 48)), 20000),
    "matmul by rows": Case(scores, ((1, 67, 48), (1, 68, 48)), 13000),
    "matmul with a bias": Case(lambda a, b, c: torch.baddbmm(c, a, b), ((5, 64, 9), (5, 9, 30), (5, 64, 30)), 16000),
    "one matrix": Case(lambda a, b: a @ b, ((3, 64, 9), (9, 30)), 8192),
    "attention": Case(attention(), ((2, 67, 48), (2, 80, 48), (2, 80, 48)), 16384),
    "attention f16": Case(attention(), ((2, 67, 48), (2, 80, 48), (2, 80, 48)), 8192, HALF),
    "a causal one": Case(attention(is_causal=True), ((3, 67, 48),) * 3, 13000),
    "a mask": Case(attention(), (*ROWS, (1, 3, 67, 68)), 20000),
    "a mask by rows": Case(attention(), (*ROWS, (1, 3, 67, 68)), 13000),
    "a mask for all": Case(attention(), (*ROWS, (67, 68)), 13000),
    "shared keys": Case(grouped, ((2, 6, 33, 16), (2, 2, 20, 16), (2, 2, 20, 16), (1, 6, 33, 20)), 8192),
}


@pytest.mark.parametrize("name", CASES)
def test_as_eager_and_as_whole(name) -> None:
    case = CASES[name]
    torch.manual_seed(len(name))
    inputs = tuple(torch.randn(shape).to(case.dtype) for shape in case.shapes)
    program = bytes(pumice.export(Of(case.function), inputs))
    got = pumice.load(program, features=f"max_storage={case.limit}")(*inputs)
    tolerance = 1e-5 if case.dtype is torch.float32 else 2e-3
    torch.testing.assert_close(got, case.function(*inputs), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(got, pumice.load(program)(*inputs), rtol=tolerance / 10, atol=tolerance / 10)


@pytest.mark.parametrize("name", ["unary f16", "a row", "softmax of heads", "layer_norm", "sum"])
def test_bindings_that_begin_at_multiples_of_256(name) -> None:
    case = CASES[name]
    inputs = tuple(torch.randn(shape).to(case.dtype) for shape in case.shapes)
    session = pumice.load(bytes(pumice.export(Of(case.function), inputs)), features="max_storage=20000,alignment=256")
    torch.testing.assert_close(session(*inputs), case.function(*inputs), rtol=2e-3, atol=2e-3)


def test_parts_that_begin_elsewhere_are_refused_by_name() -> None:
    """Matrices of 67 x 67 numbers: the second one begins at byte 17956, no multiple of 16."""
    inputs = (torch.randn(1, 67, 48), torch.randn(1, 67, 48))
    program = bytes(pumice.export(Of(scores), inputs))
    with pytest.raises(pumice.Error, match=r"53868 bytes.* at most 20000 .*matmul.* does not split it") as caught:
        pumice.load(program, features="max_storage=20000")
    assert caught.value.code == "DeviceUnsupported"
    torch.testing.assert_close(
        pumice.load(program, features="max_storage=53872")(*inputs), scores(*inputs), rtol=1e-5, atol=1e-5
    )


class Block(torch.nn.Module):
    """A block of SAM's image encoder with global attention: relative positions are added to the scores."""

    def __init__(self, side: int, width: int, heads: int) -> None:
        super().__init__()
        self.side, self.heads = side, heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.rows = torch.nn.Parameter(torch.randn(side, side, width // heads) / 8)
        self.columns = torch.nn.Parameter(torch.randn(side, side, width // heads) / 8)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, side, width = x.shape[0], self.side, x.shape[-1]
        parts = self.qkv(x).reshape(batch, side * side, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts.reshape(3, batch * self.heads, side * side, -1).unbind(0)
        grid = q.reshape(batch * self.heads, side, side, -1)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        scores = (
            scores.view(-1, side, side, side, side)
            + torch.einsum("bhwc,hkc->bhwk", grid, self.rows)[:, :, :, :, None]
            + torch.einsum("bhwc,wkc->bhwk", grid, self.columns)[:, :, :, None, :]
        ).view(-1, side * side, side * side)
        out = scores.softmax(-1) @ v
        out = out.view(batch, self.heads, side, side, -1).permute(0, 2, 3, 1, 4)
        return self.project(out.reshape(batch, side, side, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def test_a_block_of_an_image_encoder() -> None:
    """Scores of 12 heads are 1.9 MB, one head 160 kB: of SAM's encoder 805 MB and 67 MB."""
    torch.manual_seed(3)
    module = Block(14, 96, 12).eval()
    x = torch.randn(1, 14, 14, 96)
    program = pumice.export(module, (x,))
    with torch.no_grad():
        want = module(x)
    for limit in (200_000, 160_000, 100_000):
        got = pumice.load(bytes(program), features=f"max_storage={limit}")(x)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_live_sizes_decide() -> None:
    """One session, calls that are cut and calls that are not."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(torch.softmax(x * y, -1) + x, (31,)).flip(2)

    dims = {0: torch.export.Dim("n", min=1, max=1000)}
    program = pumice.export(Of(function), (torch.randn(5, 4, 31), torch.randn(4, 31)), dynamic_shapes=((dims, {}),))
    session = pumice.load(bytes(program), features="max_storage=20000")
    y = torch.randn(4, 31)
    for rows in (7, 101, 1, 333, 101, 40):
        x = torch.randn(rows, 4, 31)
        torch.testing.assert_close(session(x, y), function(x, y), rtol=1e-4, atol=1e-5)
