# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings of neighbours, in ExecuTorch's form, in front of an attention over caches; and what only looks like
one."""

from __future__ import annotations

import copy

import pytest
import torch

import pumice
from pumice.passes import cached_attention  # noqa: F401 (defines the operator)

WIDTH, HEADS, GROUPS, SIZE, SLOTS = 32, 4, 2, 16, 12
ROWS = {1: torch.export.Dim("rows", min=1, max=SLOTS - 1)}


class Attention(torch.nn.Module):
    """`form`: how cos and sin are picked, or what is not as in a rotation."""

    def __init__(self, form: str = "item", slots: int = SLOTS, norm: bool = False) -> None:
        super().__init__()
        self.form, self.norm = form, norm
        self.q = torch.nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.k, self.v = (torch.nn.Linear(WIDTH, GROUPS * SIZE, bias=False) for _ in range(2))
        self.q_norm, self.k_norm = (torch.nn.Parameter(1 + 0.1 * torch.randn(SIZE)) for _ in range(2))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(1, GROUPS, SLOTS, SIZE))
        angle = torch.outer(torch.arange(slots), 1e2 ** -torch.linspace(0, 1, SIZE // 2))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def angles(self, position: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.form == "index":
            return self.cos[position], self.sin[position]
        at = (position + 1 if self.form == "late" else position)[-1].item()
        torch._check_is_size(at)
        torch._check(at + rows <= self.cos.shape[0])
        return self.cos.narrow(0, at, rows), self.sin.narrow(0, at, rows)

    def rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x [1, L, heads, E]."""
        a, b = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
        if self.form == "swapped":
            a, b = b, a
        cos, sin = (t.view(1, t.shape[0], 1, t.shape[1]) for t in (cos, sin))
        low = a * cos + b * sin if self.form == "other sign" else a * cos - b * sin
        high = a * sin + (b * (cos + 1) if self.form == "other factor" else b * cos)
        parts = [high, low] if self.form == "other order" else [low, high]
        return torch.stack(parts, dim=-1).flatten(3).type_as(x)

    def normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight if self.norm else x

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = x.shape
        q, k, v = (layer(x).view(batch, rows, -1, SIZE) for layer in (self.q, self.k, self.v))
        q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        angles = self.angles(position, rows)
        q, k = self.rotate(q, *angles), self.rotate(k, *angles)
        heads_first = (t.transpose(1, 2) for t in (q, k, v))
        out, keys, values = torch.ops.pumice.cached_attention(
            *heads_first, self.keys, self.values, position, SIZE**-0.5
        )
        self.keys.copy_(keys)
        self.values.copy_(values)
        return out.reshape(batch, rows, -1)


def check(module: Attention, operators: dict[str, int], tolerance: float = 2e-5) -> None:
    """The program has these operators, 0 for none, and a session does what eager does: a prompt, single tokens, some
    more, and the prompt again."""
    dtype = module.cos.dtype
    calls = [(0, 1), (1, 1), (2, 1), (1, 1)] if module.form == "index" else [(0, 4), (4, 1), (5, 1), (6, 3), (0, 2)]
    example = torch.randn(1, calls[0][1], WIDTH).to(dtype), torch.tensor([2])
    dynamic = None if module.form == "index" else {"x": ROWS, "position": None}
    with torch.no_grad():
        program = pumice.export(module, example, dynamic_shapes=dynamic)
    assert {name: program.report.operators.get(name, 0) for name in operators} == operators
    generator = torch.Generator().manual_seed(5)
    for features in (None, "none", "none,like_gpu"):
        session, eager = pumice.load(bytes(program), features=features), copy.deepcopy(module)
        for position, rows in calls:
            args = torch.randn(1, rows, WIDTH, generator=generator).to(dtype), torch.tensor([position])
            with torch.no_grad():
                torch.testing.assert_close(session(*args), eager(*args), atol=tolerance, rtol=tolerance)
        for position in (-1, SLOTS):
            with pytest.raises(pumice.Error, match="outside"):
                session(args[0], torch.tensor([position]))


FUSED = {"cached_attention_interleaved": 1, "linear": 1, "mul": 0, "cat": 0}


def attention(dtype: torch.dtype = torch.float32, **options) -> Attention:
    torch.manual_seed(4)
    return Attention(**options).eval().to(dtype)


@pytest.mark.parametrize("options", [{}, {"norm": True}, {"form": "index"}, {"slots": SLOTS + 3}], ids=str)
def test_the_attention_rotates_and_picks_angles(options) -> None:
    check(attention(**options), {**FUSED, "index_select": 0})


def test_halves() -> None:
    """The rotation is in fp32 in between, as in the operator."""
    check(attention(torch.float16), {**FUSED, "index_select": 0, "cast": 0}, 6e-3)


def test_angles_of_other_positions() -> None:
    """They are picked by operators of their own."""
    check(attention(form="late", slots=SLOTS + 1), {**FUSED, "index_select": 2})


@pytest.mark.parametrize("form", ["swapped", "other sign", "other factor", "other order"])
def test_what_is_no_rotation_stays(form) -> None:
    check(attention(form=form), {"cached_attention": 1, "cached_attention_interleaved": 0, "linear": 3, "cat": 2})
