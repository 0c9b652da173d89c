# SPDX-License-Identifier: Apache-2.0
"""Accepted means runnable: PyTorch's own sample inputs for every operator of its database.

Each first sample is either refused by export with a reason, or it loads, runs and gives what eager PyTorch gives; which
operators are refused in f32 is known. `python -m support.operator_database --all` runs every sample. Quantization
schemes are those of test/schemes.py, each in every dtype it comes in.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support import operator_database, schemes
from support.op_seeds import SEEDS, operators
from support.operator_database import REFUSED

import pumice
from pumice import ops as _  # noqa: F401 (fills the table of records)
from pumice._pumice import op_table
from pumice.lowering import registry

# The dtypes that take different roads through our records, of operators that have one; each one's own test has all.
OTHER_DTYPES = (torch.int64, torch.bool)
RECORDED = {str(target).split(".")[1] for target in registry.targets() if str(target).startswith("aten")}


def test_every_operator_has_a_seed_of_fuzz_execute() -> None:
    """python -m support.op_seeds makes OPERATOR.pumice, reach_seeds OPERATOR-N.pumice; an operator that is new and has
    none is not fuzzed."""
    seeds = {path.stem: path.read_bytes() for path in SEEDS.glob("*.pumice")}
    assert seeds.keys() >= {row[0] for row in op_table()}
    for name, file in seeds.items():
        assert name.split("-")[0] in operators(file)


def test_most_operators_of_torch_run() -> None:
    """Nine of ten of those whose results are tensors of known sizes and dtypes; the count may only grow."""
    names = {info.name for info in operator_database.database()}
    assert set(REFUSED) <= names, "no longer in torch's database"
    known = [name for name in names if REFUSED.get(name) not in operator_database.NOT_ASKED]
    running = len(names) - len(REFUSED)
    assert running >= 408 and running / len(known) >= 0.9, f"{running} of {len(known)} run"


@pytest.mark.parametrize("info", operator_database.database(), ids=lambda info: info.name)
def test_accepted_means_runnable(info: Any) -> None:
    found = operator_database.outcome(info)
    if info.name in REFUSED:
        assert found.kind in ("refused", "eager"), f"it does not have to be in REFUSED: {found}"
        return
    assert found.kind == "right", found.why
    if info.name in operator_database.OPEN or not {info.aten_name, info.name, info.name.split(".")[-1]} & RECORDED:
        return
    for dtype in OTHER_DTYPES:
        if dtype in info.dtypes:
            found = operator_database.outcome(info, dtype=dtype)
            assert found.kind in ("right", "refused", "eager"), f"{dtype} {found.why}"


@pytest.mark.parametrize(("scheme", "dtype"), schemes.cases(), ids=str)
def test_every_scheme_runs(scheme: schemes.Scheme, dtype: torch.dtype) -> None:
    """On the example, and where nothing optional is on the device: every kernel family that a scheme may meet."""
    args = schemes.inputs(dtype)
    module = scheme.quantize(schemes.layers(dtype), args)
    program = pumice.export(module, args)
    found = {name: count for name, count in program.report.operators.items() if name != "view"}  # a view runs nothing
    assert found == scheme.ops
    want = module(*args)
    for features in (None, "none,like_gpu"):
        got = pumice.load(bytes(program), features=features)(*args)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        # Eager rounds every dequantized number; a hidden activation so close to a tie may become the other integer.
        rtol = 8e-3 if dtype is torch.float16 else 2e-5
        step = 0.02 if "activations" in scheme.name or "PT2E" in scheme.name else 0.0
        error = (got.double() - want.double()).abs()
        assert (error <= (rtol + step) * want.double().abs().max()).all()
        assert error.median() <= rtol * want.double().abs().max()
