# SPDX-License-Identifier: Apache-2.0
"""`EndToEnd`: a module through export, bytes, load and run on a device, compared with eager PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
import torch

import pumice
from support.budget import EXACT, Budget


class EndToEnd:
    """Exports a module, runs it and compares the results; most tests of operators and models use it."""

    def export(
        self, module: torch.nn.Module, *inputs: Any, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> pumice.Program:
        return pumice.export(copy.deepcopy(module).eval(), inputs, kwargs, **options)

    def check(
        self,
        module: torch.nn.Module,
        *inputs: Any,
        kwargs: Mapping[str, Any] | None = None,
        dynamic_shapes: Any = None,
        budget: Budget = EXACT,
        runs: Iterable[Any] = (),
        expect_ops: Iterable[str] | Mapping[str, int] | None = None,
        all_features: bool = False,
        options: Any = None,
        reference: str = "auto",
    ) -> pumice.Program:
        """Exports with `inputs` and compares on them and on each of `runs`: a tuple of inputs, or a dict of named ones.

        reference: "f64" computes in double precision, "eager" as the module is, "auto" the first where possible.
        all_features: also with nothing optional on the device, and the kernels that a GPU would get.
        The first input runs twice and must give the same bits.
        """
        module = copy.deepcopy(module).eval()
        program = self.export(module, *inputs, kwargs=kwargs, dynamic_shapes=dynamic_shapes, options=options)
        _check_operators(program, expect_ops)
        calls = [(inputs, dict(kwargs or {})), *map(_call, runs)]
        data = bytes(program)
        for features in (None, "none,like_gpu") if all_features else (None,):
            session = pumice.load(data, features=features)
            eager = copy.deepcopy(module)
            exact = _double(module) if reference != "eager" else None
            if reference == "f64" and exact is None:
                raise AssertionError("the module cannot be run in fp64")
            for index, (args, named) in enumerate(calls):
                got = session(*args, **named)
                if index == 0 and not program.ir.states:
                    again = _tensors(session(*args, **named))
                    assert all(_same_bits(a, b) for a, b in zip(_tensors(got), again, strict=True)), (
                        "a replay gave other bits"
                    )
                with torch.no_grad():
                    want = eager(*copy.deepcopy(args), **copy.deepcopy(named))
                    better = _run_double(exact, args, named, reference) if exact is not None else None
                where = f"call {index}" + (f" with features={features}" if features else "")
                compare(got, want, want if better is None else better, budget, where)
        return program

    def refuses(self, module: torch.nn.Module, *inputs: Any, match: str, **options: Any) -> pumice.UnsupportedError:
        """Export raises UnsupportedError, and one of its reasons matches."""
        with pytest.raises(pumice.UnsupportedError, match=match) as caught:
            self.export(module, *inputs, **options)
        assert caught.value.reasons and all(str(reason) for reason in caught.value.reasons)
        return caught.value


def compare(got: Any, want: Any, better: Any, budget: Budget, where: str) -> None:
    """Nesting, shape, dtype, NaN and Inf as `want`; finite floats near `better`, the reference in higher precision."""
    if isinstance(want, torch.Tensor):
        assert isinstance(got, torch.Tensor), f"{where}: {type(got).__name__} instead of a tensor"
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (
            f"{where}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        )
        _compare_values(got, want, better, budget, where)
    elif isinstance(want, Mapping):
        assert isinstance(got, Mapping) and list(got) == list(want), f"{where}: the keys {list(got)}, not {list(want)}"
        for key in want:
            compare(got[key], want[key], better[key], budget, f"{where}.{key}")
    elif isinstance(want, list | tuple):
        kind = tuple if isinstance(want, tuple) else list
        assert isinstance(got, kind) and len(got) == len(want), (
            f"{where}: {type(got).__name__}, not a {kind.__name__} of {len(want)}"
        )
        assert getattr(got, "_fields", None) == getattr(want, "_fields", None), f"{where}: fields"
        for index, parts in enumerate(zip(got, want, better, strict=True)):
            compare(*parts, budget, f"{where}.{index}")
    else:
        assert got == want, f"{where}: {got!r}, not {want!r}"


def _compare_values(got: torch.Tensor, want: torch.Tensor, better: torch.Tensor, budget: Budget, where: str) -> None:
    if not want.dtype.is_floating_point:
        wrong = got != want
        assert not wrong.any(), f"{where}: {int(wrong.sum())} of {want.numel()} differ; {_first(wrong, got, want)}"
        return
    assert torch.equal(got.isnan(), want.isnan()), (
        f"{where}: NaN at other places; {_first(got.isnan() != want.isnan(), got, want)}"
    )
    infinite = want.isinf()
    assert torch.equal(got[infinite], want[infinite]) and torch.equal(got.isinf(), infinite), (
        f"{where}: Inf at other places; {_first(got.isinf() != infinite, got, want)}"
    )
    finite = want.isfinite() & better.isfinite()
    reference = torch.where(finite, better.double(), torch.zeros((), dtype=torch.float64))
    error = torch.where(finite, (got.double() - reference).abs(), torch.zeros((), dtype=torch.float64))
    over = error > budget.allowed(reference, want.dtype)
    assert not over.any(), (
        f"{where}: {int(over.sum())} of {want.numel()} beyond the budget, largest error {float(error.max()):.3g} where "
        f"the reference reaches {float(reference.abs().max()):.3g}; {_first(over, got, reference)} ({budget})"
    )


def _first(wrong: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> str:
    index = tuple(int(i) for i in wrong.nonzero()[0]) if wrong.any() else ()
    values = [tensor[index].item() if tensor.numel() else None for tensor in (got, want)]
    return f"first at {list(index)}: got {values[0]!r}, want {values[1]!r}"


def _check_operators(program: pumice.Program, expected: Iterable[str] | Mapping[str, int] | None) -> None:
    have = program.report.operators
    if isinstance(expected, Mapping):
        assert {name: have.get(name, 0) for name in expected} == dict(expected), f"operators: {have}"
    for name in expected or ():
        assert name in have or isinstance(expected, Mapping), f"'{name}' is not among {sorted(have)}"


def _call(run: Any) -> tuple[tuple, dict]:
    if isinstance(run, Mapping):
        return (), dict(run)
    return (tuple(run), {}) if isinstance(run, list | tuple) else ((run,), {})


def _double(module: torch.nn.Module) -> torch.nn.Module | None:
    """The module in fp64, or None when it has tensors that are more than numbers (quantized weights)."""
    tensors: Sequence[torch.Tensor] = [*module.parameters(), *module.buffers()]
    if any(type(t) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) for t in tensors):
        return None
    return copy.deepcopy(module).double()


def _run_double(module: torch.nn.Module, args: Any, named: Any, reference: str) -> Any:
    """The results in fp64. None when the module also has tensors that stay fp32, and `reference` allows that."""
    try:
        return module(*_doubled(args), **_doubled(named))
    except RuntimeError:
        if reference == "f64":
            raise
        return None


def _doubled(value: Any) -> Any:
    cast = lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else copy.deepcopy(t)  # noqa: E731
    return torch.utils._pytree.tree_map(cast, value)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()
