# SPDX-License-Identifier: Apache-2.0
"""Images of another size without aliases, by a matrix for each direction; volumes read at places of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


def _triangle(x: torch.Tensor) -> torch.Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: torch.Tensor, a: float = -0.5) -> torch.Tensor:
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return torch.where(x < 1, near, torch.where(x < 2, far, 0))


def _weights(
    size: int, made: int, aligned: bool, scale: float | None, filter_of: Callable, reach: float
) -> torch.Tensor:
    """[made, size]: of each result the weights of all elements, which the filter spreads wider the smaller it gets."""
    if aligned:
        step = (size - 1) / (made - 1) if made > 1 else 0.0
    else:
        step = 1 / scale if scale else size / made
    wide = max(step, 1.0)
    center = step * (torch.arange(made, dtype=torch.float32) + 0.5)
    first = (center - reach * wide + 0.5).clamp(min=0).to(torch.int64)
    end = (center + reach * wide + 0.5).to(torch.int64).clamp(max=size)
    at = torch.arange(size)
    inside = (at >= first[:, None]) & (at < end[:, None])
    weights = torch.where(inside, filter_of((at - center[:, None] + 0.5) / wide), 0)
    return weights / weights.sum(-1, keepdim=True)


def _resized(x: torch.Tensor, size: list[int], aligned: bool, scales: tuple, filter_of: Callable, reach: float):
    height, width = size
    across = _weights(x.shape[-1], width, aligned, scales[1], filter_of, reach)
    down = _weights(x.shape[-2], height, aligned, scales[0], filter_of, reach)
    return (down @ (x.to(torch.float32) @ across.T)).to(x.dtype)


def _antialiased(filter_of: Callable, reach: float) -> Callable:
    """A filter of so many elements on each side, more where one of the result stands for more than one."""

    def resized(
        self: torch.Tensor,
        output_size: list[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:
        if not self.is_floating_point():  # lowering/instead.py says what to do
            return NotImplemented
        return _resized(self, output_size, align_corners, (scales_h, scales_w), filter_of, reach)

    return resized


takes_apart(aten._upsample_bilinear2d_aa.default)(_antialiased(_triangle, 1.0))
takes_apart(aten._upsample_bicubic2d_aa.default)(_antialiased(_cubic, 2.0))


def _mirrored(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Between two walls."""
    if low == high:
        return torch.zeros_like(x)
    span = high - low
    away = (x - low).abs()
    turns, rest = (away / span).floor(), away % span
    return torch.where(turns % 2 == 0, rest + low, span - rest + low)


def _places(x: torch.Tensor, size: int, padding: int, aligned: bool) -> torch.Tensor:
    """Of grid coordinates -1 .. 1; padding: 0 zeros, 1 border, 2 reflection."""
    x = (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2
    if padding == 2:
        x = _mirrored(x, 0.0, size - 1.0) if aligned else _mirrored(x, -0.5, size - 0.5)
    if padding == 0:
        return torch.where(x.abs() < 2**31, x, -100)  # as eager PyTorch: infinite and NaN ones are outside
    return torch.where(x == x, x.clamp(0, size - 1), size - 1)  # likewise NaN is the last one


@takes_apart(aten.grid_sampler_3d.default)
def grid_sampler_3d(
    input: torch.Tensor, grid: torch.Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> torch.Tensor:
    """The nearest element, or a sum over the eight around each place."""
    batch, channels, *sizes = input.shape
    flat = input.reshape(batch, channels, math.prod(sizes))
    places = [_places(grid[..., 2 - i], sizes[i], padding_mode, align_corners) for i in range(3)]

    def corner(at: list[torch.Tensor]) -> torch.Tensor:
        inside = torch.ones_like(at[0], dtype=torch.bool)
        place = torch.zeros_like(at[0], dtype=torch.int64)
        for x, size in zip(at, sizes, strict=True):
            inside = inside & (x >= 0) & (x < size)
            place = place * size + x.clamp(0, size - 1).to(torch.int64)
        index = torch.where(inside, place, 0).reshape(batch, 1, -1).expand(-1, channels, -1)
        found = flat.gather(2, index).reshape(batch, channels, *grid.shape[1:4])
        return torch.where(inside.unsqueeze(1), found, 0)  # not a product: the element there may be infinite

    if interpolation_mode == 1:
        return corner([place.round() for place in places])
    below = [place.floor() for place in places]
    total = torch.zeros((), dtype=input.dtype)
    for ends in itertools.product((0, 1), repeat=3):
        weight = torch.ones_like(places[0])
        for end, place, low in zip(ends, places, below, strict=True):
            weight = weight * ((place - low) if end else (low + 1 - place))
        total = total + corner([low + end for low, end in zip(below, ends, strict=True)]) * weight.unsqueeze(1)
    return total


def _windows(size: int, made: int) -> torch.Tensor:
    """[made, longest]: places of the elements that each result stands for, the last one again where there are fewer."""
    at = torch.arange(made)
    first, end = at * size // made, ((at + 1) * size + made - 1) // made
    longest = -(-size // made) + 1
    return torch.minimum(first[:, None] + torch.arange(longest), end[:, None] - 1)


def _adaptive_max_pool(self: torch.Tensor, output_size: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    dims = len(output_size)
    sizes = self.shape[-dims:]
    lead = self.dim() - dims
    x, places = self, torch.zeros((1,) * (2 * dims), dtype=torch.int64)
    for i in reversed(range(dims)):
        index = _windows(sizes[i], output_size[i])
        x = x[(slice(None),) * (lead + i) + (index,)]
        shape = [1] * (2 * dims)
        shape[2 * i], shape[2 * i + 1] = index.shape
        places = places + index.reshape(shape) * math.prod(sizes[i + 1 :])
    order = [*range(0, 2 * dims, 2), *range(1, 2 * dims, 2)]
    x = x.permute(*range(lead), *(lead + dim for dim in order)).flatten(-dims)
    places = places.permute(order).flatten(-dims)
    count = torch.arange(x.shape[-1])
    last_nan = torch.where(x != x, count, -1).amax(-1, keepdim=True)  # PyTorch keeps the last NaN, and its place
    best = torch.where(last_nan >= 0, last_nan, x.argmax(-1, keepdim=True))
    return x.gather(-1, best).squeeze(-1), places.expand(x.shape).gather(-1, best).squeeze(-1)


@takes_apart(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(self: torch.Tensor, output_size: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest elements and their places in the plane, the first of equal ones."""
    return _adaptive_max_pool(self, output_size)


@takes_apart(aten.adaptive_max_pool3d.default)
def adaptive_max_pool3d(self: torch.Tensor, output_size: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Of volumes."""
    return _adaptive_max_pool(self, output_size)
