# SPDX-License-Identifier: Apache-2.0
"""`./dev test-executorch`: a few of the tests in ExecuTorch's wheel, and the record of what is delegated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from executorch.backends.test.harness import Tester as SuiteTester
from executorch.backends.test.suite.reporting import TestCaseSummary
from executorch.backends.test.suite.reporting import TestResult as Result
from support.executorch_suite import quantized, share
from support.executorch_suite.derived import OPEN, NotExplained, check
from support.executorch_suite.excuse import excused
from support.operator_roundings import explained

# Operators, a model whose package is not installed, the Vulkan delegate, and quantized linear layers.
FEW = (
    "(test_add_f32 and not pumice_) or test_glu_dtype or (test_alexnet and not pumice_) or cat_width_dynamic "
    "or grid_priors or (test_linear_unbatched and (pumice_static8 or pumice_8da4w))"
)


def test_a_few_of_executorchs_tests(tmp_path: Path) -> None:
    """Those of FEW, in the process that the command starts."""
    command = [sys.executable, "-W", "ignore", "-m", "support.executorch_suite", "-n0", "-k", FEW]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    said = dict(re.findall(r"^\[ *\d+/\d+\] (\S+): (.+)$", done.stdout, re.MULTILINE))
    right = re.compile(r"1 delegated whole and right; error [0-9.e-]+ of what roundings explain")
    for name in (
        "operators/test_add::test_add_f32_alpha",
        "operators/test_linear::test_linear_unbatched[pumice_8da4w]",
        "operators/test_linear::test_linear_unbatched[pumice_static8]",
    ):
        assert right.fullmatch(said[name]), f"{name}: {said[name]}"
    assert said["models/test_torchvision::test_alexnet"] == "1 not installed"
    moved = "vulkan/test_vulkan_delegate::test_vulkan_backend_cat_width_dynamic_shapes"
    assert said[moved] == "1 delegated whole and right; error 0 of what roundings explain"
    assert said["vulkan/test_vulkan_delegate::test_vulkan_backend_grid_priors"] == "1 skipped"
    assert re.search(
        r"^[1-9]\d* delegated whole and right, .* 1 not installed, 0 WRONG, 0 FAILED$", done.stdout, re.MULTILINE
    )


class Moved(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.relu(), x[1:]])


PROGRAMS = {
    "linear": lambda: torch.nn.Linear(64, 32),
    "convolution": lambda: torch.nn.Sequential(torch.nn.Unflatten(1, (4, 16)), torch.nn.Conv1d(4, 8, 3)),
    "normalized": lambda: torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.GELU()),
    "moved": Moved,
}
PLANTED = {
    "a tenth less": lambda y: y * 0.9,
    "nothing": torch.zeros_like,
    "one element": lambda y: y + 1e-4 * (torch.arange(y.numel()).view(y.shape) == 7),
    "a column": lambda y: torch.where(torch.arange(y.shape[-1]) == 3, 0, y),
}


def accepted(got: torch.Tensor, want: torch.Tensor) -> bool:
    """By the suite itself."""
    try:
        SuiteTester._compare_outputs(want, got, atol=1e-1, rtol=4e-2)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_suite_accepts_is_found_by_roundings(name: str) -> None:
    """Inputs so small that its tolerance of 0.1 accepts everything; PyTorch's own answer in fp32 is right."""
    torch.manual_seed(0)
    module, x = PROGRAMS[name]().eval(), 0.1 * torch.rand(6, 64)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.02)
    program = torch.export.export(module, (x,))
    right = module(x).detach()
    assert check(program, (x,), (right,), network=True) <= 1
    answer = explained(program, (x,))
    assert answer.worst((right,), (right,)) <= 1
    for planted, plant in PLANTED.items():
        wrong = plant(right)
        assert accepted(wrong, right), f"the suite would find '{planted}' itself"
        assert answer.worst((wrong,), (right,)) > 1, planted
    with pytest.raises(NotExplained):
        check(program, (x,), (0.9 * right,))


@torch.no_grad()
def test_numbers_far_below_one_are_compared_too() -> None:
    """As the random weights of some networks make them: a bound with an absolute part would take zeros."""
    torch.manual_seed(0)
    module, x = torch.nn.Sequential(torch.nn.BatchNorm1d(64), torch.nn.Hardswish()).eval(), 1e-9 * torch.randn(6, 64)
    program = torch.export.export(module, (x,))
    right = module(x)
    assert check(program, (x,), (right,), network=True) <= 1
    for wrong in (torch.zeros_like(right), right * 1.001):
        assert accepted(wrong, right)
        with pytest.raises(NotExplained):
            check(program, (x,), (wrong,), network=True)


class Masked(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(x[:, None] - x != 0, -100.0)


@torch.no_grad()
def test_whole_numbers_as_floats_are_exact() -> None:
    """A mask is made of them in Swin: were their differences rounded, any of its elements could be another."""
    module, x = Masked(), torch.tensor([0.0, 1, 1, 2, 0, 3])
    program, right = torch.export.export(module, (x,)), module(x)
    assert check(program, (x,), (right,), network=True) == 0
    with pytest.raises(NotExplained):
        check(program, (x,), (torch.where(right == 0, -100, right),), network=True)


@torch.no_grad()
def test_one_step_of_an_integer_is_no_rounding() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 64)
    quantize = quantized.FLOWS["pumice_static8"].stage()
    quantize.run(torch.nn.Linear(64, 32).eval(), (x,))
    program = torch.export.export(quantize.artifact, (x,))
    assert quantized.quantizes(program.graph)
    right = quantize.artifact(x)
    assert check(program, (x,), (right,)) <= 1
    step = (right - right.flatten()[0])[right != right.flatten()[0]].abs().min()
    wrong = right.clone()
    wrong[2, 3] += step
    assert accepted(wrong, right), "the suite would find this one itself"
    with pytest.raises(NotExplained):
        check(program, (x,), (wrong,))


def test_an_integer_another_shape_and_nan_are_never_explained() -> None:
    x = torch.randn(4, 8)
    program = torch.export.export(Positions(), (x,))
    place, values = Positions()(x)
    assert check(program, (x,), (place, values)) == 0
    for wrong in ((place + 1, values), (place, values[:1]), (place, values.double()), (place, values * torch.nan)):
        with pytest.raises(NotExplained):
            check(program, (x,), wrong)


class Positions(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.argmax(dim=-1), x.amax(dim=-1)


def test_an_operator_without_a_budget_is_named() -> None:
    program = torch.export.export(Unbudgeted(), (torch.rand(4),))
    with pytest.raises(RuntimeError, match=r"no budget is known for aten\.rand\.default"):
        check(program, (torch.rand(4),), (torch.rand(4),))


class Unbudgeted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(4)


def test_the_share_may_only_grow() -> None:
    recorded = {"a": ("dpd", 0.5), "b": ("f", 0.0), "c": ("p", 0.0)}
    assert share.lost({"a": ("ddd", 0.9), "b": ("d", 0.1), "new": ("d", 0.1), "c": ("d", 0.1)}, recorded) == []
    assert share.lost({"a": ("ppd", 0.1)}, recorded) == ["a"]
    assert share.lost({"a": ("df", 0.1), "c": ("x", 0.0)}, recorded) == ["a", "c"]
    assert share.gained({"a": ("ddd", 0.1), "b": ("p", 0.1), "new": ("d", 0.1)}, recorded) == 3


def test_nothing_recorded_is_wrong() -> None:
    recorded = share.load()
    assert all(share.grouped(recorded).values())
    assert not [name for name, (letters, _) in recorded.items() if set(letters) - set("dpfs")]


def test_every_delegated_case_was_compared() -> None:
    recorded = share.load()
    assert all(0 <= (worst or 0) <= 1 for _, worst in recorded.values())
    not_compared = {name.partition("[")[0].partition("::")[2] for name, (_, worst) in recorded.items() if worst is None}
    assert not_compared == set(OPEN), "run ./dev test-executorch -- --record"


MISSING, OTHER = RuntimeError("Failed to execute method forward, error: 0x14"), RuntimeError("error: 0x20")
RUN, MISMATCH, LOWER = Result.PTE_RUN_FAIL, Result.OUTPUT_MISMATCH_FAIL, Result.LOWER_FAIL


def case(result: Result, error: Exception | None) -> TestCaseSummary:
    return TestCaseSummary("", "", "", "", 0, None, result, error, [])


@pytest.mark.parametrize(
    ("ours", "alone", "delegated", "expected"),
    [
        ((RUN, MISSING), (RUN, MISSING), True, True),
        ((RUN, OTHER), (RUN, MISSING), True, False),
        ((RUN, OTHER), (RUN, OTHER), True, False),
        ((MISMATCH, AssertionError("a")), (RUN, MISSING), True, False),
        ((MISMATCH, AssertionError("a")), (MISMATCH, AssertionError("b")), False, True),
        ((MISMATCH, AssertionError("a")), (Result.SUCCESS, None), False, False),
        ((LOWER, KeyError("ours")), (LOWER, OTHER), False, False),
        ((LOWER, OTHER), (LOWER, OTHER), False, True),
        ((LOWER, KeyError("ours")), (RUN, MISSING), False, False),
        ((Result.UNKNOWN_FAIL, OTHER), (RUN, MISSING), True, False),
    ],
)
def test_only_the_same_failure_is_excused(ours: tuple, alone: tuple, delegated: bool, expected: bool) -> None:
    assert excused(case(*ours), case(*alone), delegated) == expected
