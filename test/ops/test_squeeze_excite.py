# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
import torch
from support.budget import MATMUL, ULP, Budget
from support.end_to_end import compare
from support.many import FLOATS, normal
from support.one_call import OneCall
from support.squeeze_excite import Gate
from torch.nn import functional as F

import pumice

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "relu6": F.relu6,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
}
FACTORS = Budget(
    rtol=8 * ULP,
    of_max=MATMUL.of_max,
    why="MATMUL twice, where the gate leaves a quarter of each; exp of sigmoid (3 + 2|x| ulp) times s (1 - s), 1 ulp",
)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("gate", [torch.sigmoid, F.hardsigmoid], ids=["sigmoid", "hardsigmoid"])
@pytest.mark.parametrize("sizes", [(6, 2), (37, 5), (40, 10), (300, 9), (1152, 48), (9, 300)], ids=str)
def test_sizes(e2e, sizes, gate, dtype) -> None:
    """Rows and words with tails, more hidden values than lanes, several workgroups for a row."""
    torch.manual_seed(0)
    for rows in (1, 3):
        x = normal(rows, sizes[0], 1, 1, dtype=dtype)
        module, ops = Gate(*sizes, gate=gate).to(dtype), {"squeeze_excite": 1, "view": 2}
        e2e.check(module, x, budget=FACTORS, reference="f64", expect_ops=ops, all_features=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("act", ACTIVATIONS)
def test_activations(e2e, act, dtype) -> None:
    torch.manual_seed(0)
    module, x = Gate(20, 7, act=ACTIVATIONS[act], bias=act != "relu6").to(dtype), 3 * normal(2, 20, 1, 1, dtype=dtype)
    e2e.check(module, x, budget=FACTORS, reference="f64", expect_ops={"squeeze_excite": 1, "view": 2})


def test_changing_rows(e2e) -> None:
    torch.manual_seed(0)
    rows, runs = torch.export.Dim("rows", min=1, max=300), [(normal(n, 10, 1, 1),) for n in (1, 2, 300)]
    options = {"dynamic_shapes": ({0: rows},), "runs": runs, "reference": "f64"}
    e2e.check(Gate(10, 3), normal(5, 10, 1, 1), budget=FACTORS, expect_ops={"squeeze_excite": 1, "view": 2}, **options)


def test_rows_larger_than_a_binding(e2e) -> None:
    torch.manual_seed(0)
    module, x = Gate(2000, 3).eval(), normal(300, 2000, 1, 1)
    session = pumice.load(bytes(e2e.export(module, x)), features="max_storage=256k")
    with torch.no_grad():
        compare(session(x), module(x), module.double()(x.double()), FACTORS, "in parts")


def test_special_values(e2e) -> None:
    """A NaN or an infinity in one row does not reach another, nor does the padding of a weight."""
    torch.manual_seed(0)
    x = normal(4, 6, 1, 1)
    x[0, 3], x[1, 5], x[2, 0] = torch.nan, torch.inf, -torch.inf
    e2e.check(Gate(6, 2), x, budget=FACTORS, reference="eager", all_features=True)


GIVEN: dict[str, Any] = {
    "x": (3, 6), "weight1": (2, 6), "bias1": (2,), "weight2": (6, 2), "bias2": (6,), "act": 4, "gate": 0
}  # fmt: skip


def program(**other: Any) -> bytes:
    given, b = GIVEN | other, OneCall()
    args = [given["act"], given["gate"]]
    dtypes = {name: given.get(f"{name}_dtype", torch.float32) for name in list(GIVEN)[:5]}
    tensors = [b.constant(torch.zeros(given[name], dtype=dtype)) for name, dtype in list(dtypes.items())[1:]]
    b.call("squeeze_excite", [b.input(dtypes["x"], given["x"]), *tensors, *args], dtypes["x"], given["x"])
    return b.bytes()


@pytest.mark.parametrize(
    ("match", "other"),
    [
        ("x is f32 of rank 3", {"x": (3, 6, 1)}),
        ("x has 7 columns", {"x": (3, 7)}),
        ("x is f16, a weight or the output f32", {"x_dtype": torch.float16}),
        ("not .6, 2.", {"weight2": (6, 3)}),
        ("not .6, 2.", {"weight2": (5, 2)}),
        ("a weight of rank 1", {"weight1": (6,)}),
        ("not .6, 2.", {"weight2": (12,)}),
        ("a bias is not f32 .2.", {"bias1": (3,)}),
        ("a bias is not f32 .6.", {"bias2": (6, 1)}),
        ("a bias is not f32", {"bias1_dtype": torch.float16}),
        ("activation 8", {"act": 8}),
        ("activation -1", {"act": -1}),
        ("gate 2", {"gate": 2}),
        ("at most 8192 by 1024", {"weight1": (1025, 6), "bias1": (1025,), "weight2": (6, 1025)}),
        ("at most 8192 by 1024", {"x": (1, 8193), "weight1": (1, 8193), "weight2": (8193, 1), "bias2": (8193,)}),
        ("at most 8192 by 1024", {"weight1": (0, 6), "bias1": (0,), "weight2": (6, 0)}),
    ],
)
def test_what_can_never_be_right(match, other) -> None:
    pumice.load(program())
    with pytest.raises(pumice.Error, match=match):
        pumice.load(program(**other))


def test_no_rows() -> None:
    assert pumice.load(program(x=(0, 6)))(torch.zeros(0, 6)).shape == (0, 6)
