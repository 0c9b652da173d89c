# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn

import pumice

PATTERN = "position_embedding"


class Embeddings(nn.Module):
    """Of vision transformers: tokens before the patches, as many as `first` says, and after them."""

    def __init__(self, batch: int = 1, first: tuple[int, ...] = (1,), last: int = 0, **conv) -> None:
        super().__init__()
        self.patches = nn.Conv2d(**{"in_channels": 3, "out_channels": 12, "kernel_size": 4, "stride": 4, **conv})
        self.first = nn.ParameterList(torch.randn(1, rows, 12) for rows in first)
        self.last = nn.Parameter(torch.randn(1, last, 12))
        self.positions = nn.Parameter(torch.randn(batch, sum(first) + 6 + last, 12))
        self.tokens = lambda x: [*self.first, x, self.last] if last else [*self.first, x]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = [part.expand(len(x), -1, -1) for part in self.tokens(patches)]
        return torch.cat(tokens, 1) + self.positions


AS_ROWS, JOINED = {"patches": 1, "linear": 1}, {"patches": 1, "linear": 1, "cat": 1}
UNFUSED = {**JOINED, "add": 1}


@pytest.mark.parametrize(
    ("fused", "options"),
    [
        (AS_ROWS, {}),
        (AS_ROWS, {"first": (1, 4)}),  # registers
        (AS_ROWS, {"bias": False}),
        (JOINED, {"last": 2}),
        (JOINED, {"first": (), "last": 1}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_position_embedding(dtype, fused, options) -> None:
    """In fp16 a patch's position is rounded with the bias, where eager rounds the convolution, then the sum: an error
    of 2^-11 of the largest for each."""
    torch.manual_seed(0)
    module, image = Embeddings(**options).to(dtype).eval(), torch.randn(1, 3, 8, 12).to(dtype)
    rtol = 4e-6 if dtype is torch.float32 else 2**-10
    check_pattern(module, image, pattern=PATTERN, fused=fused, unfused=UNFUSED, rtol=rtol)


def test_positions_of_each_image() -> None:
    torch.manual_seed(1)
    module = Embeddings(batch=2).eval()
    image = torch.randn(2, 3, 8, 12)
    check_pattern(module, image, pattern=PATTERN, fused=JOINED, unfused=UNFUSED, rtol=4e-6)


def test_patches_of_odd_columns() -> None:
    """A row of zeros is of whole vec4 groups."""
    torch.manual_seed(3)
    module, image = Embeddings(kernel_size=3, stride=3).eval(), torch.randn(1, 3, 6, 9)
    check_pattern(module, image, pattern=PATTERN, fused=JOINED, unfused=UNFUSED, rtol=4e-6)


def test_an_image_larger_than_a_binding(monkeypatch) -> None:
    """Rows of zeros come in one dispatch, the patches alone in several."""
    module, image = Embeddings().eval(), torch.randn(1, 3, 8, 12)
    limited = "pumice.fusion.position_embedding.fits_a_binding"
    asked = []
    monkeypatch.setattr(limited, lambda shape: asked.append(list(shape)))
    assert pumice.export(module, (image,)).report.operators == JOINED
    assert asked == [[7, 48]]


def test_tokens_are_exact_beside_infinite_patches() -> None:
    """Their rows read nothing of the image."""
    torch.manual_seed(4)
    module, image = Embeddings().eval(), torch.full((1, 3, 8, 12), float("inf"))
    image[..., 4:] = float("nan")
    got = pumice.load(bytes(pumice.export(module, (image,))))(image)
    torch.testing.assert_close(got[:, 0], (module.first[0] + module.positions[:, :1])[:, 0], rtol=0, atol=0)
    assert not torch.isfinite(got[:, 1:]).any()


@pytest.mark.parametrize(
    "change",
    [
        lambda module, x: module(torch.cat((x, x))),  # positions that broadcast
        lambda module, x: torch.add(module(x), module.positions, alpha=2),
        lambda module, x: torch.cat((module.first[0] * x.sum(), module.patches(x).flatten(2).mT), 1) + module.positions,
        lambda module, x: torch.cat((module.patches(x).flatten(2).mT,) * 2, 1) + module.positions[:, :1],
    ],
)
def test_what_is_added_by_itself(change) -> None:
    torch.manual_seed(2)
    module, x = Function(change, Embeddings()).eval(), torch.randn(1, 3, 8, 12)
    program = pumice.export(module, (x,))
    assert program.report.operators["add"] == 1
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), atol=2e-5, rtol=2e-5)
