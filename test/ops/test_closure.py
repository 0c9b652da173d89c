# SPDX-License-Identifier: Apache-2.0
"""Accepted means runnable: PyTorch's own sample inputs for every operator it has that we have a record for.

Each sample is either refused by export with a reason, or it loads, runs and gives what eager PyTorch gives. Operators
are taken from torch's database, so that nothing here repeats our own idea of what an operator is. Quantization schemes
are those of test/schemes.py, each in every dtype it comes in.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from support import schemes
from support.op_seeds import SEEDS, operators
from torch.testing._internal.common_methods_invocations import op_db

import pumice
from pumice import ops as _  # noqa: F401 (fills the table of records)
from pumice._pumice import op_table
from pumice.lowering import registry

# The dtypes that take different roads through our records; each operator's own test has all of them.
DTYPES = (torch.float32, torch.int64, torch.bool)
SAMPLES = 1
RECORDED = {str(target).split(".")[1] for target in registry.targets() if str(target).startswith("aten")}
OPERATORS = [
    info
    for info in op_db
    if {info.aten_name, info.name, info.name.split(".")[-1]} & RECORDED and not info.variant_test_name
]
# What eager PyTorch itself leaves open, with the reason.
OPEN = {
    "empty_like": "its values are anything", "new_empty": "its values are anything", "empty": "its values are anything",
    "empty_strided": "its values are anything", "new_empty_strided": "its values are anything",
}  # fmt: skip
# Eager leaves open which of equal elements is meant: the argument that is the dimension, where it is not named.
PLACES = {"sort": 0, "topk": 1, "kthvalue": 1}


def element_at(name: str, sample: Any, places: torch.Tensor) -> torch.Tensor:
    """What the places that sort, topk or kthvalue gives stand for."""
    at = PLACES[name]
    dim = sample.kwargs.get("dim", sample.args[at] if len(sample.args) > at else -1)
    if sample.input.dim() == 0:
        return sample.input.expand(places.shape)
    if places.dim() == sample.input.dim():
        return sample.input.gather(dim, places)
    return sample.input.gather(dim, places.unsqueeze(dim)).squeeze(dim)


def test_every_operator_has_a_seed_of_fuzz_execute() -> None:
    """python -m support.op_seeds makes OPERATOR.pumice, reach_seeds OPERATOR-N.pumice; an operator that is new and has
    none is not fuzzed."""
    seeds = {path.stem: path.read_bytes() for path in SEEDS.glob("*.pumice")}
    assert seeds.keys() >= {row[0] for row in op_table()}
    for name, file in seeds.items():
        assert name.split("-")[0] in operators(file)


class Call(torch.nn.Module):
    """Calls an operator with the tensors of a sample as inputs and everything else fixed."""

    def __init__(self, function: Any, args: tuple, kwargs: dict) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)

        def fill(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return next(rest)
            return type(value)(map(fill, value)) if type(value) in (list, tuple) else value

        return self.function(*map(fill, self.args), **{key: fill(value) for key, value in self.kwargs.items()})


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor | np.ndarray):  # numpy: the answer to a call without any tensor
        return [torch.as_tensor(value)]
    return [tensor for item in value for tensor in tensors_of(item)] if isinstance(value, list | tuple) else []


def same(got: torch.Tensor, want: torch.Tensor) -> bool:
    if not want.dtype.is_floating_point:
        return torch.equal(got, want)
    rtol = 4e-3 if want.dtype is torch.float16 else 2e-5  # the budgets proper are those of each operator's own test
    return got.dtype == want.dtype and torch.allclose(got, want, rtol=rtol, atol=rtol, equal_nan=True)


@pytest.mark.parametrize("info", OPERATORS, ids=lambda info: info.name)
def test_accepted_means_runnable(info: Any) -> None:
    if info.name in OPEN:
        pytest.skip(OPEN[info.name])
    for dtype in DTYPES:
        if dtype not in info.dtypes:
            continue
        for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
            args = (sample.input, *sample.args)
            module = Call(info.op, args, sample.kwargs)
            inputs = [t for value in (*args, *sample.kwargs.values()) for t in tensors_of(value)]
            try:
                program = pumice.export(module, tuple(inputs))
            except pumice.UnsupportedError as error:
                assert error.reasons and all(str(reason).strip() for reason in error.reasons)
                continue
            try:
                want = tensors_of(module(*inputs))
            except NotImplementedError:
                continue  # eager does not have it
            got = tensors_of(pumice.load(bytes(program))(*inputs))
            shapes = [tuple(tensor.shape) for tensor in inputs]
            assert len(got) == len(want)
            if info.name in PLACES and tuple(got[1].shape) == tuple(want[1].shape):
                got[1], want[1] = (element_at(info.name, sample, places) for places in (got[1], want[1]))
            for a, b in zip(got, want, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{dtype} {shapes}"
                assert same(a, b), f"{dtype} {shapes} {sample.args} {sample.kwargs}\n{a}\n{b}"


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
