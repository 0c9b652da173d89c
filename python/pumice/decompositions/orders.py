# SPDX-License-Identifier: Apache-2.0
"""Places in an order: searchsorted, mode, nanmedian, histograms; elements at places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


def places(boundaries: torch.Tensor, x: torch.Tensor, right: bool) -> torch.Tensor:
    """How many of the sorted boundaries [.., n] are before each x [.., m]: the bits of the number, highest first."""
    n = boundaries.shape[-1]
    found = torch.zeros_like(x, dtype=torch.int64)
    for bit in reversed(range(int(n).bit_length())):
        probe = found + (1 << bit)
        at = boundaries.gather(-1, (probe - 1).clamp(max=n - 1))
        before = ~(at > x) if right else ~(at >= x)  # of NaN all are before
        found = torch.where(before & (probe <= n), probe, found)
    return found


@takes_apart(aten.searchsorted.Tensor)
def searchsorted(
    sorted_sequence: torch.Tensor,
    self: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> torch.Tensor:
    """One row for all, or a row for each."""
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    dtype = torch.result_type(sorted_sequence, self)
    boundaries, x = sorted_sequence.to(dtype), self.to(dtype)
    if boundaries.dim() == 1:
        found = places(boundaries, x.reshape(-1), right or side == "right").reshape(x.shape)
    else:
        found = places(boundaries, x, right or side == "right")
    return found.to(torch.int32) if out_int32 else found


@takes_apart(aten.searchsorted.Scalar)
def searchsorted_of_a_number(sorted_sequence: torch.Tensor, self: float, **options: Any) -> torch.Tensor:
    """Of one number."""
    return searchsorted(sorted_sequence, torch.full((), self, dtype=sorted_sequence.dtype), **options)


@takes_apart(aten.bucketize.Tensor)
def bucketize(
    self: torch.Tensor, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False
) -> torch.Tensor:
    """searchsorted, the other way round."""
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


@takes_apart(aten.bucketize.Scalar)
def bucketize_of_a_number(self: float, boundaries: torch.Tensor, **options: Any) -> torch.Tensor:
    """Of one number."""
    return searchsorted_of_a_number(boundaries, self, **options)


def _of_a_dimension(
    self: torch.Tensor, dim: int, keepdim: bool, choose: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """An element and its place: `choose` gives its place [.., 1] among the values in order."""
    x = self.reshape(1) if self.dim() == 0 else self.movedim(dim, -1)
    values, places = x.sort(dim=-1)
    found = [ref.gather(-1, choose(values)) for ref in (values, places)]
    if self.dim() == 0:
        return tuple(ref.reshape(()) for ref in found)
    found = [ref.movedim(-1, dim) for ref in found]
    return tuple(found if keepdim else (ref.squeeze(dim) for ref in found))


@takes_apart(aten.mode.default)
def mode(self: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest of the most frequent elements, and the last place of it: runs of equal ones in order."""

    def end_of_the_longest_run(values: torch.Tensor) -> torch.Tensor:
        count = torch.arange(values.shape[-1]).expand(values.shape)
        is_first = torch.cat([count[..., :1] == 0, values[..., 1:] != values[..., :-1]], -1)
        return (count - torch.where(is_first, count, 0).cummax(-1).values).argmax(-1, keepdim=True)

    return _of_a_dimension(self, dim, keepdim, end_of_the_longest_run)


@takes_apart(aten.nanmedian.dim)
def nanmedian_of_a_dimension(
    self: torch.Tensor, dim: int = -1, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower one of two in the middle of the numbers, which sorting puts before every NaN."""
    middle = lambda values: ((values == values).sum(-1, keepdim=True) - 1).clamp(min=0) // 2  # noqa: E731
    return _of_a_dimension(self, dim, keepdim, middle)


@takes_apart(aten.nanmedian.default)
def nanmedian(self: torch.Tensor) -> torch.Tensor:
    """Of all elements."""
    return nanmedian_of_a_dimension(self.reshape(-1), 0)[0]


def _counts(x: torch.Tensor, place: torch.Tensor, inside: torch.Tensor, bins: int, weight: Any = None) -> torch.Tensor:
    """What falls on each place; f32 counts up to 2^24."""
    amount = inside.to(x.dtype) if weight is None else torch.where(inside, weight, 0)
    return x.new_zeros(bins).scatter_add(0, torch.where(inside, place, 0), amount)


@takes_apart(aten.histc.default)
def histc(self: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """Equal bins from min to max, both included; of two equal numbers, from the smallest element to the largest."""
    x = self.reshape(-1)
    if x.shape[0] == 0:
        return x.new_zeros(bins)
    low, high = (x.amin(), x.amax()) if min == max else (torch.full_like(x, min)[:1], torch.full_like(x, max)[:1])
    low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    inside = (x >= low) & (x <= high)
    scaled = torch.where(inside, (x - low) * bins / (high - low), 0)
    return _counts(x, scaled.to(torch.int64).clamp(max=bins - 1), inside, bins)


def _histogram(
    self: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor | None, density: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Between edges in order; the last bin has its upper edge, too."""
    x, bins = self.reshape(-1), edges.shape[0] - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    place = (places(edges, x, True) - 1).clamp(min=0, max=bins - 1)
    counts = _counts(x, place, inside, bins, None if weight is None else weight.reshape(-1))
    return (counts / (counts.sum() * edges.diff()) if density else counts), edges.clone()


@takes_apart(aten.histogram.bins_tensor)
def histogram(
    self: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None, density: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Edges that are given."""
    return _histogram(self, bins, weight, density)


@takes_apart(aten.histogram.bin_ct)
def histogram_of_equal_bins(
    self: torch.Tensor,
    bins: int = 100,
    *,
    range: list[float] | None = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Over a range, or from the smallest element to the largest; one number alone is in the middle of a bin of 1."""
    x = self.reshape(-1)
    if range is not None or x.shape[0] == 0:
        low, high = (torch.full((1,), float(end), dtype=self.dtype) for end in range or (0, 1))
    else:
        low, high = x.amin().reshape(1), x.amax().reshape(1)
    low, high = torch.where(low == high, low - 0.5, low), torch.where(low == high, high + 0.5, high)
    step, at = (high - low) / bins, torch.arange(bins + 1)
    edges = torch.where(at <= bins // 2, low + step * at, high - step * (bins - at))  # as torch.linspace
    return _histogram(self, edges, weight, density)


@takes_apart(aten.take.default)
def take(self: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Elements in the order of the storage; an index of no dimensions is one, too."""
    return self.reshape(-1)[index.reshape(-1)].reshape(index.shape)


@takes_apart(aten.put.default)
def put(self: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    """Elements in the order of the storage."""
    flat = self.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate)
    return flat.reshape(self.shape)


def _scattered(self: torch.Tensor, src: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return self.reshape(-1).scatter(0, places.reshape(-1), src.reshape(-1)).reshape(self.shape)


@takes_apart(aten.diagonal_scatter.default)
def diagonal_scatter(
    self: torch.Tensor, src: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    """A diagonal of the places gives those of the elements."""
    return _scattered(self, src, torch.arange(self.numel()).reshape(self.shape).diagonal(offset, dim1, dim2))


@takes_apart(aten.as_strided_scatter.default)
def as_strided_scatter(
    self: torch.Tensor, src: torch.Tensor, size: list[int], stride: list[int], storage_offset: int | None = None
) -> torch.Tensor:
    """Places of a contiguous tensor; of two equal ones the last element counts."""
    return _scattered(self, src, torch.arange(self.numel()).as_strided(size, stride, storage_offset or 0))


@takes_apart(aten.nonzero_static.default)
def nonzero_static(self: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    """The coordinates of the first elements that are not zero; the others go to a place that is cut off."""
    x = self.reshape(-1) != 0
    place = torch.where(x, x.cumsum(0) - 1, size).clamp(max=size)
    count = torch.arange(x.shape[0])
    kept = torch.full((size + 1,), -1).scatter(0, place, count)[:size]
    rows = []
    for extent in reversed(self.shape) if x.shape[0] else (1,) * self.dim():
        rows.append(torch.where(kept < 0, fill_value, kept % extent))
        kept = torch.where(kept < 0, kept, kept // extent)
    return torch.stack(rows[::-1], -1) if rows else torch.zeros((size, 0), dtype=torch.int64)
