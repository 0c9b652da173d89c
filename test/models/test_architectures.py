# SPDX-License-Identifier: Apache-2.0
"""Models as their libraries have them: each is one program that agrees with eager PyTorch, or is refused with what
to do; docs/models.md says which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from support.architectures import ARCHITECTURES, Architecture
from support.architectures.families import FAMILIES, REFUSED, family
from support.budget import ULP, Budget

import pumice

NETWORK = Budget(
    of_max=64 * ULP, why="sums in another order in some ten layers, as MATMUL's; each changes the result less"
)
PAGE = Path(__file__).parents[2] / "docs/models.md"


def _id(architecture: Architecture) -> str:
    return f"{architecture.name}, {architecture.part}"


@pytest.mark.parametrize("architecture", [each for each in ARCHITECTURES if not each.refused], ids=_id)
def test_one_program(e2e, architecture) -> None:
    torch.manual_seed(0)
    model, calls = architecture.make()
    e2e.check(model, *calls[0], runs=calls[1:], budget=NETWORK)


@pytest.mark.parametrize("architecture", [each for each in ARCHITECTURES if each.refused], ids=_id)
def test_refused(architecture) -> None:
    torch.manual_seed(0)
    model, calls = architecture.make()
    with pytest.raises(pumice.UnsupportedError, match=architecture.refused):
        pumice.export(model, calls[0])


@pytest.mark.large
@pytest.mark.parametrize("name", [*FAMILIES, *REFUSED])
def test_families_of_text(e2e, name) -> None:
    torch.manual_seed(0)
    model, (inputs,) = family(name)
    if name in REFUSED:
        e2e.refuses(model, *inputs, match=REFUSED[name])
    else:
        e2e.check(model, *inputs, budget=NETWORK)


def test_the_page_has_all_of_them() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| (one program|refused: [^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    want = [(a.name, a.part, f"refused: {a.instead}" if a.refused else "one program") for a in ARCHITECTURES]
    assert rows == want, "run python -m support.architectures in test/"
