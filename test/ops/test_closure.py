# SPDX-License-Identifier: Apache-2.0
"""Accepted means runnable: every row of the native table (operator, dtype, storage; ops/shared/accepted.h), and
PyTorch's own sample inputs for every operator of its database.

The samples of support/closure_samples.py have all rows between them; each is exported in its storages, loaded, run and
compared with eager PyTorch, and one of each kind goes through ExecuTorch's partitioner. Each first sample of the
database is either refused by export with a reason, or it is right. closure.json has what became of all of them: a
change of any fails, and `python -m support.closure` in test/ records them again.
`python -m support.operator_database --all` runs every sample of the database. Quantization schemes are those of
support/schemes.py, each in every dtype it comes in.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support import closure, operator_database, schemes
from support.closure_samples import samples
from support.op_seeds import SEEDS, operators
from support.operator_database import REFUSED

import pumice
from pumice._pumice import op_table

SAMPLES = samples()
RECORDED = closure.recorded()


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
    for dtype in operator_database.dtypes(info):
        found = operator_database.outcome(info, dtype=dtype)
        right = () if info.name in REFUSED else ("right",) if dtype is torch.float32 else ("right", "refused", "eager")
        assert found.kind in (right or ("refused", "eager")), f"{dtype} {found.kind}, {found.why}"
        told = closure.difference(closure.named(info, dtype), found.told or found.kind, RECORDED["database"])
        assert not told, told


def test_the_record_has_what_there_is() -> None:
    every = operator_database.database()
    database = {closure.named(info, dtype) for info in every for dtype in operator_database.dtypes(info)}
    assert (RECORDED["samples"].keys(), RECORDED["database"].keys()) == (SAMPLES.keys(), database), closure.AGAIN
    assert RECORDED["partitioner"].keys() == set(closure.partitioned()), closure.AGAIN


def test_every_row_of_the_table_has_a_sample() -> None:
    """In an accepted one, and no sample has a row that the table lacks."""
    assert closure.covered(RECORDED["samples"]) == closure.rows()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_row_of_the_table_runs(name: str) -> None:
    told = closure.difference(name, closure.outcome(SAMPLES[name]), RECORDED["samples"])
    assert not told, told


@pytest.mark.parametrize("name", closure.partitioned())
def test_executorchs_partitioner_takes_it(name: str) -> None:
    told = closure.difference(name, closure.delegated(SAMPLES[name]), RECORDED["partitioner"])
    assert not told, told


def test_a_change_is_told() -> None:
    """Planted: an accepted sample that is refused, a refused one that is accepted, another operator, a new sample."""
    was = {"a": {"buffer": ["relu f32"]}, "b": {"buffer": "refused BadDtype"}}
    assert not closure.difference("a", {"buffer": ["relu f32"]}, was)
    for name, now in (("a", was["b"]), ("b", was["a"]), ("a", {"buffer": ["abs f32"]}), ("c", was["a"])):
        told = closure.difference(name, now, was)
        assert told.startswith(f"{name}: ") and "python -m support.closure" in told
    assert closure.covered(was) == {"relu f32"}


def test_fp16_may_be_nearer_to_fp64_than_eager_and_not_farther() -> None:
    exact = torch.tensor([1.0, 1e6, torch.nan], dtype=torch.float64)
    for value, error in (([1, torch.inf, torch.nan], 0), ([1.5, torch.inf, torch.nan], 0.5)):
        assert operator_database.error_of(torch.tensor(value, dtype=torch.float16), exact) == error
    for value in (
        [torch.nan, torch.inf, torch.nan],
        [torch.inf, torch.inf, torch.nan],
        [1, 2, torch.nan],
        [1, torch.inf, 0],
    ):
        assert operator_database.error_of(torch.tensor(value, dtype=torch.float16), exact) == torch.inf


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
