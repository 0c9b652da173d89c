# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings of neighbours, in ExecuTorch's form, in front of an attention over caches; and what only looks like
one."""

from __future__ import annotations

import copy

import pytest
import torch
from support.interleaved_attention import SLOTS, WIDTH, Attention

import pumice

ROWS = {1: torch.export.Dim("rows", min=1, max=SLOTS - 1)}


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
