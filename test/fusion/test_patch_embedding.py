# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.dispatches import dispatches
from support.unfused import Function, check_pattern
from torch import nn

import pumice

PATTERN = "patch_embedding"


def _tokens(conv, x):
    return conv(x).flatten(2).transpose(1, 2)


def _last(conv, x):
    return conv(x).permute(0, 2, 3, 1)


def _between(conv, x):
    return conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


@pytest.mark.parametrize("size", [(2, 2), (3, 2)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_patches(size, bias) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(5, 12, size, stride=size, bias=bias)
    image = torch.randn(2, 5, 3 * size[0], 4 * size[1])
    fused, common = {"patches": 1, "linear": 1}, {"pattern": PATTERN, "rtol": 4e-6}
    unfused = {"conv2d": 1, "permute": 1}
    check_pattern(Function(_tokens, conv), image, fused=fused, unfused={**unfused, "view": 1}, **common)
    fused["view"] = 1
    check_pattern(Function(_last, conv), image, fused=fused, unfused=unfused, **common)
    last = image.permute(0, 2, 3, 1).contiguous()
    unfused = {"conv2d": 1, "permute": 2}
    check_pattern(Function(_between, conv), last, fused=fused, unfused=unfused, **common)


def test_of_fp16() -> None:
    """Products of equal signs: a rounding of the result, by 2^-11, and sums in another order."""
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 8, 4, stride=4).half()
    image = torch.randn(1, 3, 8, 12).half()
    fused, unfused = {"patches": 1, "linear": 1}, {"conv2d": 1, "view": 1, "permute": 1}
    check_pattern(Function(_tokens, conv), image, pattern=PATTERN, rtol=2**-10, fused=fused, unfused=unfused)


@pytest.mark.parametrize(
    ("function", "conv", "height"),
    [
        (_tokens, nn.Conv2d(4, 8, 2, stride=2), 7),  # the last row of x is in no window
        (_tokens, nn.Conv2d(4, 8, 2, stride=1), 6),
        (_tokens, nn.Conv2d(4, 8, 2, stride=2, padding=1), 6),
        (_tokens, nn.Conv2d(4, 8, 2, stride=2, groups=2), 6),
        (_last, nn.Conv2d(4, 8, 1), 6),  # no patches: a product of pixels
        (lambda conv, x: (conv(x), _tokens(conv, x)), nn.Conv2d(4, 8, 2, stride=2), 6),  # read twice
        (lambda conv, x: conv(x).transpose(1, 2), nn.Conv2d(4, 8, 2, stride=2), 6),
    ],
)
def test_what_stays(function, conv, height) -> None:
    program = pumice.export(Function(function, conv), (torch.randn(1, 4, height, 6),))
    assert program.report.operators["conv2d"] == 1, program.report.operators
    assert "linear" not in program.report.operators


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize(("size", "copies"), [((16, 16), 0), ((4, 24), 0), ((16, 4), 1)], ids=str)
def test_patches_stay_in_the_image_where_a_kernel_reads_them_there(size, copies, dtype, tmp_path) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(4 if size[1] != 24 else 6, 384, size, stride=size).to(dtype)
    image = torch.randn(2, conv.in_channels, 9 * size[0], 11 * size[1]).to(dtype)  # 198 rows: fp32 is split
    image[1] *= 1000
    module = Function(_tokens, conv)
    program = pumice.export(module, (image,))
    got, want = pumice.load(bytes(program))(image).double(), _tokens(conv.double(), image.double())
    # fp16: the result's rounding; fp32: sums of K products, in parts of fp16 (2^-20 of the largest is ten deviations).
    unit = 2**-11 if dtype is torch.float16 else 2**-20
    assert ((got - want).abs() <= unit * 1.01 * want.abs() + 2**-20 * want.abs().amax(-1, keepdim=True)).all()
    assert dispatches(program, tmp_path).get("patches") == copies
