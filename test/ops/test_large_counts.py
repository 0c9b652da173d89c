# SPDX-License-Identifier: Apache-2.0
"""Images whose sizes, sums or places are beyond what 24 or 31 bits count."""

from __future__ import annotations

import pytest
import torch
from support.one_call import OneCall
from torch.nn import functional as F

import pumice


def run(op: str, x: torch.Tensor, args: list, dims: list[int]) -> torch.Tensor:
    calls = OneCall()
    calls.call(op, [calls.input(x.dtype, list(x.shape)), *args], x.dtype, dims)
    return torch.from_numpy(pumice.load(calls.bytes()).run_flat([x.numpy()])[0])


@pytest.mark.parametrize("shape", [(3000, 3001), (3, 3_000_001)])
def test_sums_of_integers(shape) -> None:
    """9 million differences of -255 need 33 bits; the mean is exact."""
    x = torch.full((1, 1, *shape), -128, dtype=torch.int8)
    x[0, 0, -1] = 127
    want = round(-255 * (shape[0] - 1) / shape[0]) + 127
    got = run("q8ta_adaptive_avg_pool", x, [[1, 1], 0.5, 127, 0.5, 127, -128, 127], [1, 1, 1, 1])
    assert got.item() == want
    window = [*shape] if max(shape) < 1 << 15 else [shape[0], 1]
    args = [window, window, [0] * 4, [1, 1], False, False, None, 0.5, 127, 0.5, 127, -128, 127]
    dims = [1, 1, 1, shape[1] // window[1]]
    assert run("q8ta_avg_pool", x, args, dims).unique().tolist() == [want]


def test_a_row_of_integers_that_32_bits_do_not_sum() -> None:
    x = torch.zeros(1, 1, 1, 8_421_249, dtype=torch.int8)
    with pytest.raises(pumice.Error, match="a sum over rows of 8421249 integers; 32 bits hold 8421247") as caught:
        run("q8ta_adaptive_avg_pool", x, [[1, 1], 0.5, 0, 0.5, 0, -128, 127], [1, 1, 1, 1])
    assert caught.value.code == "LimitExceeded"


def test_a_window_with_more_places_than_31_bits_count() -> None:
    """Of 32767 x 32767 dilated places, which only a file can ask for; the padding counts."""
    x = torch.ones(1, 1, 32767, 2)
    args = [[32767, 2], [1, 1], [0] * 4, [1, 1], False, True, None]
    torch.testing.assert_close(run("avg_pool", x, args, [1, 1, 1, 1]), F.avg_pool2d(x, (32767, 2)))
    x = torch.ones(1, 1, 2, 2)
    pads, stretch = 32767, 32767  # a window over 65535 x 65534 places, of which three rows and columns are looked at
    args = [[3, 3], [1, 1], [pads] * 4, [stretch, stretch], False, True, None]
    got = run("avg_pool", x, args, [1, 1, 2, 2])
    assert got.max().item() == pytest.approx(1 / 65535**2, rel=1e-3)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8], ids=str)
@pytest.mark.parametrize("size", [2**24 + 3, 2**24 + 4])
def test_resizing_beyond_24_bits(mode, dtype, size) -> None:
    """float(size - 1) is `size` for 2^24 + 4: the last place was read past the end."""
    x = (torch.arange(size, dtype=torch.float64) % 113 + 1).to(dtype).reshape(1, 1, 1, size)
    if dtype == torch.uint8:
        args = [[1, 3], None, None, mode == 2, False, 1.0, 0, 1.0, 0, 0, 255]
        got = run("q8ta_upsample2d", x, args, [1, 1, 1, 3])
    else:
        got = run("upsample2d", x, [[1, 3], None, None, mode], [1, 1, 1, 3])
    assert got.shape == (1, 1, 1, 3)
    assert got.min() >= 1 and got.max() <= 113, "an element that is not of the image"
    if mode == 2:
        assert got.flatten()[-1] == x.flatten()[-1]


def test_a_step_beyond_any_image() -> None:
    """Places of 2^20 elements a step, clamped before they become integers."""
    x = torch.arange(8.0).reshape(1, 1, 1, 8)
    for mode in (0, 1):
        got = run("upsample2d", x, [[1, 1 << 16], None, 2.0**-20, mode], [1, 1, 1, 1 << 16])
        assert got[0, 0, 0, 0] == (0 if mode == 0 else 7) and (got[0, 0, 0, 1:] == 7).all()
