# SPDX-License-Identifier: Apache-2.0
"""Pumice's partitioner and backend in place of those of ExecuTorch's Vulkan delegate, in the tests of that delegate."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
from executorch.backends.test.suite.reporting import count_ops
from torch.export import ExportedProgram

from pumice.executorch import PumicePartitioner
from pumice.executorch.backend import PumiceBackend
from support.executorch_suite.derived import check as check_roundings
from support.executorch_suite.flow import Case, cases, given_away, has_delegate
from support.executorch_suite.share import DELEGATED, FELL_BACK, PARTLY, WRONG

NAMESPACE = "et_vk::"
_exported: list[Any] = [(), None]  # the inputs and the dynamic shapes of the last program
_programs: list[ExportedProgram] = []  # what torch.export made of it, the last one


def take_over(module: ModuleType, tests: Any) -> None:
    """Changes the imported test module: names, what asserts a delegate, and tests that are switched off for theirs."""
    module.VulkanPartitioner = lambda compile_options: PumicePartitioner()
    module.VulkanBackend = PumiceBackend
    module.export = remembered(module.export)
    for name in ("lower_module", "quantize_and_lower_module"):
        setattr(module, name, lowering(getattr(module, name)))
    tests.check_vk_delegation = lambda self, program: None  # `lowering` has told the two apart
    tests.run_delegated_model_and_check_output = compared(module, tests.run_delegated_model_and_check_output)
    for name, test in list(vars(tests).items()):
        if name.startswith("test_") and hasattr(test, "__wrapped__"):  # disable_test: their shaders or their device
            setattr(tests, name, switched_off(test.__wrapped__))


def remembered(export: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> ExportedProgram:
        _programs[:] = [export(*args, **kwargs)]
        return given_away(_programs[0])

    return run


def switched_off(test: Any) -> Any:
    """Nobody runs these there: one that fails before it has a program says nothing about a backend."""

    def run(self: Any) -> None:
        try:
            test(self)
        except Exception as error:
            if cases:
                raise
            pytest.skip(f"switched off there, and fails before it lowers anything: {error}")

    return run


def lowering(lower: Any) -> Any:
    def run(model: Any, inputs: Any, *args: Any, dynamic_shapes: Any = None) -> Any:
        _exported[:] = [inputs, dynamic_shapes]
        edge = lower(model, inputs, *args, dynamic_shapes=dynamic_shapes)
        on_cpu = sorted(count_ops(edge._edge_programs))
        theirs = [name for name in on_cpu if name.startswith(NAMESPACE)]
        if theirs:
            pytest.skip(f"{theirs[0]} is an operator of the Vulkan delegate alone")
        delegated = has_delegate(edge.exported_program().graph_module)
        cases.append(Case((PARTLY if on_cpu else DELEGATED) if delegated else FELL_BACK, on_cpu=on_cpu))
        return edge

    return run


def compared(module: ModuleType, check: Any) -> Any:
    """Some tests give shapes that their program was not exported for: an error, or the right answer after all."""

    def run(
        self: Any, program: Any, model: Any, inputs: Any, atol: float = 1e-3, rtol: float = 0.1, **more: Any
    ) -> None:
        given = more.pop("test_inputs", None) or []
        fit = [exported_for(module.tree_flatten(one)[0]) for one in given]
        try:
            fitting = list(itertools.compress(given, fit))
            check(self, program, model, inputs, atol, rtol, fitting, **more)
            if cases[-1].letter != FELL_BACK:
                loaded = module._load_for_executorch_from_buffer(program.buffer)
                for one in [inputs, *fitting]:
                    got = loaded.run_method("forward", tuple(module.tree_flatten(one)[0]))
                    cases[-1].worst = max(cases[-1].worst or 0.0, check_roundings(_programs[0], one, got))
            for other in itertools.compress(given, map(operator.not_, fit)):
                loaded = module._load_for_executorch_from_buffer(program.buffer)
                try:
                    got = loaded.run_method("forward", tuple(module.tree_flatten(other)[0]))
                except RuntimeError:
                    continue
                self.assert_outputs_equal(got, model(*other), atol, rtol, **more)
        except AssertionError as error:
            cases[-1].letter, cases[-1].why = WRONG, str(error)
            cases[-1].worst = getattr(error, "worst", torch.inf)
            raise

    return run


def exported_for(inputs: Sequence[torch.Tensor]) -> bool:
    samples, dynamic = _exported
    dims = list((dynamic or {}).values()) or [{}] * len(inputs)
    for tensor, sample, dim in zip(inputs, samples, dims, strict=True):
        for at, size in enumerate(tensor.shape):
            free = (dim or {}).get(at)
            if not (free.min <= size <= free.max if free else size == sample.shape[at]):
                return False
    return True
