# SPDX-License-Identifier: Apache-2.0
"""llama::update_cache and llama::custom_sdpa, which ExecuTorch's language models call, against ExecuTorch's kernels."""

from __future__ import annotations

import copy

import pytest
import torch
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401 (defines the operators)
from torch import nn

import pumice

HEADS, GROUPS, SIZE, SLOTS = 4, 2, 8, 12
ROWS = torch.export.Dim("rows", min=1, max=SLOTS - 1)


class Attention(nn.Module):
    """What the caches hold is read by the attention alone, or `also` by the model; `mode`: what a row may see. Queries
    stand where their rows are written, `late` positions later, or at a `fixed` one."""

    def __init__(self, mode="causal", dtype=torch.float32, batch=1, scale=None, also=False, late=0, fixed=None) -> None:
        super().__init__()
        self.mode, self.scale, self.also, self.late, self.fixed = mode, scale, also, late, fixed
        for name in ("keys", "values"):
            start = torch.randn(batch, SLOTS, GROUPS, SIZE, generator=torch.Generator().manual_seed(len(name)))
            self.register_buffer(name, start.to(dtype))

    def forward(self, q, k, v, position):
        at = position[0].item()
        torch._check(at >= 0)
        torch._check(at + self.late + k.shape[1] <= SLOTS)
        torch.ops.llama.update_cache(k, self.keys, at)
        torch.ops.llama.update_cache(v, self.values, at)
        at = at + self.late if self.late else at if self.fixed is None else self.fixed
        # fp16 as ExecuTorch's models do it: their kernel has fp32 only.
        q, keys, values = (t.float() for t in (q, self.keys, self.values))
        if self.mode == "mask":
            mask = torch.where(torch.arange(SLOTS) % 3 == 0, 0.0, -1e9).expand(q.shape[1], SLOTS)
            out = torch.ops.llama.custom_sdpa(q, keys, values, 0, mask, 0.0, False, self.scale)
        else:
            out = torch.ops.llama.custom_sdpa(q, keys, values, at, None, 0.0, self.mode == "causal", self.scale)
        return (out, self.keys + 1) if self.also else out


def steps(batch: int, dtype: torch.dtype) -> list[tuple[torch.Tensor, ...]]:
    made, position = [], 2  # what the caches hold at first is read, too
    generator = torch.Generator().manual_seed(7)
    for rows in (3, 1, 1, 4):
        shapes = ((batch, rows, heads, SIZE) for heads in (HEADS, GROUPS, GROUPS))
        made.append((*(torch.randn(s, generator=generator).to(dtype) for s in shapes), torch.tensor([position])))
        position += rows
    return made


@pytest.mark.parametrize(
    ("options", "operator"),
    [
        ({}, "cached_attention"),
        ({"batch": 2, "scale": 0.7}, "cached_attention"),
        ({"dtype": torch.float16}, "cached_attention"),
        ({"also": True}, "sdpa"),
        ({"fixed": SLOTS - 4}, "sdpa"),
        ({"mode": "all"}, "sdpa"),
        ({"mode": "mask", "batch": 2}, "sdpa"),
    ],
    ids=str,
)
def test_attention_over_caches(options, operator) -> None:
    module = Attention(**options)
    dtype, batch = options.get("dtype", torch.float32), options.get("batch", 1)
    calls = steps(batch, dtype)
    sizes = {1: ROWS}
    dynamic = {"q": sizes, "k": sizes, "v": sizes, "position": None}
    exported = torch.export.export(copy.deepcopy(module), calls[0], dynamic_shapes=dynamic)
    program = pumice.export(exported)
    assert program.report.operators[operator] == 1 and not program.report.reasons
    session = pumice.load(bytes(program))
    for call in calls:
        want, got = module(*call), session(*call)
        for a, b in zip(*((t if isinstance(t, tuple) else (t,)) for t in (got, want)), strict=True):
            tolerance = 2e-3 if dtype is torch.float16 else 2e-6
            torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)
    for position in (-1, SLOTS):  # nothing may be read or written outside of the caches
        with pytest.raises(pumice.Error, match="outside"):
            session(*calls[1][:3], torch.tensor([position]))


def test_rows_that_stand_elsewhere_than_what_they_write() -> None:
    """Then the two operators cannot become one."""
    module, calls = Attention(late=2), steps(1, torch.float32)
    with pytest.raises(pumice.UnsupportedError, match=r"custom_sdpa.*\n?.*no operator computes this"):
        pumice.export(torch.export.export(copy.deepcopy(module), calls[1]))
