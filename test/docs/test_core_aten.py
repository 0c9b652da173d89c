# SPDX-License-Identifier: Apache-2.0
"""How much of core ATen runs, counted from torch. The number may only grow."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from support.many import Many, normal

FEWEST = 181  # of 193 with torch 2.13
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def core() -> ModuleType:
    spec = importlib.util.spec_from_file_location("core_aten", ROOT / "docs/core_aten.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_operator_is_lost(core) -> None:
    names, running = core.core_aten(), core.runs()
    assert len(running) >= FEWEST, f"{len(running)} of {len(names)} run, {FEWEST} did before"
    assert len(running) == FEWEST, f"{len(running)} run: put that into FEWEST"


def test_every_other_one_has_a_reason(core) -> None:
    """And no reason is left of one that runs, or that torch no longer has."""
    assert set(core.core_aten()) - core.runs() == set(core.WHY_NOT)


def test_the_page_has_the_count_and_the_reasons(core) -> None:
    page = (ROOT / "docs/ops.md").read_text(encoding="utf-8")  # ./dev build writes it
    assert f"Core ATen: {len(core.runs())} of {len(core.core_aten())}." in page
    for name, reason in core.WHY_NOT.items():
        assert f"| `{name}` | {reason} |" in page


def test_sizes_of_every_kind_run(e2e) -> None:
    """What core_aten.SIZES says."""
    rows = torch.export.Dim("rows", min=2, max=64)
    functions = [
        lambda x: x * x.numel(), lambda x: x * x.stride(0), lambda x: x * x.storage_offset() + x.shape[0],
        lambda x: x * (2 if x.is_contiguous() else 3),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(4, 3), dynamic_shapes={"inputs": ({0: rows},)}, runs=[(normal(7, 3),)])
