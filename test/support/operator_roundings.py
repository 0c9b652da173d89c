# SPDX-License-Identifier: Apache-2.0
"""How far the results of a program of ATen operators may be off: measured with random errors in fp64.

support/roundings.py does so for networks, layer by layer. Here each operator's result has an error as large as that
operator alone may have (support/budget.py; support/sums.py for products), of a random sign. What the operators after it
make of these errors depends on the program: it runs several times, and a difference larger than all that were seen is
not explained by roundings. Where nothing rounds, as with integers and moved data, no difference is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Interpreter
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from support.operator_errors import error_of

FLOATS = (torch.float16, torch.bfloat16, torch.float32)


@dataclass
class Explained:
    """Of each result of a program: fp64, and its error in each of the runs with random errors."""

    want: list[Any]
    off: list[list[torch.Tensor]]

    def worst(self, got: Sequence[Any], eager: Sequence[Any], whole: bool = False) -> float:
        """The largest error of an element by the largest that roundings explain, infinite where they explain none;
        whole: the norm of a result's error by that of the runs, for networks, of which few runs are made.

        eager: the results of PyTorch in the program's own dtypes, which say what is NaN or infinite."""
        pairs = zip(got, eager, self.want, self.off, strict=True)
        return max((_worst(*each, whole) for each in pairs if isinstance(each[1], torch.Tensor)), default=0.0)


def _worst(got: torch.Tensor, eager: torch.Tensor, want: torch.Tensor, off: list[torch.Tensor], whole: bool) -> float:
    if (got.dtype, got.shape) != (eager.dtype, eager.shape):
        return torch.inf
    if not eager.dtype.is_floating_point and torch.equal(got, eager):
        return 0.0
    a, b = got.double(), eager.double()
    finite = b.isfinite() & want.double().isfinite()
    if not torch.equal(
        a.nan_to_num(0.0, torch.inf, -torch.inf)[~finite], b.nan_to_num(0.0, torch.inf, -torch.inf)[~finite]
    ):
        return torch.inf
    if not torch.equal(a.isnan(), b.isnan()) or not a[finite].isfinite().all():
        return torch.inf
    error = (a - want.double())[finite].abs()
    seen = torch.stack([each[finite].abs() for each in off])
    if whole:
        error, allowed = error.norm(), seen.square().sum(dim=-1).mean().sqrt()
    else:
        allowed = seen.amax(dim=0)
    ratio = torch.where(error == 0, 0.0, error / allowed)
    return float(ratio.max()) if ratio.numel() else 0.0


@torch.no_grad()
def explained(program: ExportedProgram, inputs: Sequence[Any], runs: int = 16) -> Explained:
    """Runs the program, as torch.export made it, in fp64: once exactly, and `runs` times with errors."""
    module = copy.deepcopy(program.module(check_guards=False)).double()  # its weights are the model's
    stored = _stored(program)
    exact = _run(module, inputs, _InDouble(stored, None))
    off = []
    for seed in range(runs):
        noisy = _run(module, inputs, _InDouble(stored, torch.Generator().manual_seed(seed)))
        off.append([_difference(a, b) for a, b in zip(noisy, exact, strict=True)])
    return Explained(exact, [list(each) for each in zip(*off, strict=True)])


def _difference(a: Any, b: Any) -> Any:
    return (a.double() - b.double()).nan_to_num(0.0) if isinstance(a, torch.Tensor) else None


def _run(module: torch.nn.Module, inputs: Sequence[Any], mode: _InDouble) -> list[Any]:
    """All results of one run, which may write into the inputs and the module's states."""
    states = {name: tensor.clone() for name, tensor in module.named_buffers()}
    given = tree_map(lambda leaf: _double(_clone(leaf)), tuple(inputs))
    results = [_clone(leaf) for leaf in tree_leaves(_Steps(module, mode).run(*given))]
    for name, tensor in module.named_buffers():
        tensor.copy_(states[name])
    return results


def _stored(program: ExportedProgram) -> torch.dtype:
    """The least exact type of floats in the program."""
    values = (leaf for node in program.graph.nodes for leaf in tree_leaves(node.meta.get("val")))
    dtypes = {value.dtype for value in values if isinstance(value, torch.Tensor)}
    return next((dtype for dtype in (torch.bfloat16, torch.float16) if dtype in dtypes), torch.float32)


class _Steps(Interpreter):
    """Operators that are not ATen's quantize and dequantize: they run in fp32, as they are."""

    def __init__(self, module: torch.nn.Module, mode: _InDouble) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.mode = mode

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        if getattr(target, "namespace", "aten") == "aten":
            with self.mode:
                return super().call_function(target, args, kwargs)
        result = super().call_function(target, *tree_map(_single, (args, kwargs)))
        return tree_map(lambda value: self.mode.off(target, args, kwargs, _double(value)), result)


class _InDouble(TorchDispatchMode):
    """Meanwhile each ATen operator computes in fp64; with a generator, its result has a random error."""

    def __init__(self, stored: torch.dtype, generator: torch.Generator | None) -> None:
        super().__init__()
        self.stored, self.generator = stored, generator

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is torch.ops.aten._assert_tensor_metadata.default:
            return None
        args, kwargs = tree_map(_double, (args, kwargs or {}))
        before = tree_map(_clone, args) if func._schema.is_mutable and self.generator else args
        result = func(*args, **kwargs)
        return tree_map(lambda value: self.off(func, before, kwargs, _double(value)), result)

    def off(self, func: Any, args: tuple, kwargs: dict, value: Any) -> Any:
        if self.generator is None or not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        size = error_of(func, args, kwargs, value, self.stored)
        if size is None:
            return value
        signs = 2 * torch.randint(2, value.shape, generator=self.generator) - 1
        return value.add_(signs * size) if func._schema.is_mutable else value + signs * size


def _double(value: Any) -> Any:
    """Of an argument or a result: fp64 for the smaller floats, and numbers as fp32 has them."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype in FLOATS else value
    if isinstance(value, torch.dtype):
        return torch.float64 if value in FLOATS else value
    return float(np.float32(value)) if isinstance(value, float) else value


def _clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _single(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype is torch.float64 else value
