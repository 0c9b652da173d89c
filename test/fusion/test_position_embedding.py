# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn

import pumice

PATTERN = "position_embedding"


class Embeddings(nn.Module):
    """Of vision transformers: a class token before the patches, `last`: and two after them."""

    def __init__(self, batch: int = 1, last: bool = False) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, stride=4)
        self.token, self.last = (nn.Parameter(torch.randn(1, rows, 12)) for rows in (1, 2))
        self.positions = nn.Parameter(torch.randn(batch, 9 if last else 7, 12))
        self.tokens = lambda x: [self.token, x, self.last] if last else [self.token, x]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = [part.expand(len(x), -1, -1) for part in self.tokens(patches)]
        return torch.cat(tokens, 1) + self.positions


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_position_embedding(dtype, last) -> None:
    """In fp16 the sum is rounded once, where eager rounds it twice."""
    torch.manual_seed(0)
    module, image = Embeddings(last=last).to(dtype).eval(), torch.randn(1, 3, 8, 12).to(dtype)
    fused = {"view": 2, "permute": 1, "linear": 1, "cat": 1}
    rtol = 4e-6 if dtype is torch.float32 else 2**-10
    check_pattern(module, image, pattern=PATTERN, fused=fused, unfused={**fused, "add": 1}, rtol=rtol)


def test_positions_of_each_image() -> None:
    torch.manual_seed(1)
    ops = {"view": 2, "permute": 1, "linear": 1, "cat": 1}
    module = Embeddings(batch=2).eval()
    check_pattern(module, torch.randn(2, 3, 8, 12), pattern=PATTERN, fused=ops, unfused={**ops, "add": 1}, rtol=4e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda module, x: module(torch.cat((x, x))),  # positions that broadcast
        lambda module, x: torch.add(module(x), module.positions, alpha=2),
        lambda module, x: torch.cat((module.token * x.sum(), module.patches(x).flatten(2).mT), 1) + module.positions,
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
