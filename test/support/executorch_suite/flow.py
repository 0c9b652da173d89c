# SPDX-License-Identifier: Apache-2.0
"""Pumice as the one flow of executorch.backends.test.suite; `cases`: what became of the running test's programs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from executorch.backends.test.harness import Tester
from executorch.backends.test.harness.stages import StageType, ToEdgeTransformAndLower
from executorch.backends.test.suite import flow, runner
from executorch.backends.test.suite.flows.portable import PORTABLE_TEST_FLOW
from executorch.backends.test.suite.reporting import TestCaseSummary, TestResult

from pumice.executorch import PumicePartitioner
from support.executorch_suite.excuse import excused
from support.executorch_suite.share import DELEGATED, FAILED, FELL_BACK, SKIPPED, WRONG

LETTERS = {TestResult.SUCCESS: DELEGATED, TestResult.SKIPPED: SKIPPED, TestResult.OUTPUT_MISMATCH_FAIL: WRONG}
NO_KERNEL = "an operator that Pumice does not run has no kernel in ExecuTorch"


@dataclass
class Case:
    letter: str
    why: str = ""
    on_cpu: list[str] = field(default_factory=list)


cases: list[Case] = []


def has_delegate(module: Any) -> bool:
    return any("executorch_call_delegate" in str(node.target) for node in module.graph.nodes)


class Lower(ToEdgeTransformAndLower):
    delegated = False  # whether the last program has a delegate

    def __init__(self, partitioners: Any = None, edge_compile_config: Any = None) -> None:
        super().__init__(PumicePartitioner, partitioners, edge_compile_config)

    def run(self, artifact: Any, inputs: Any = None, generate_etrecord: bool = False) -> None:
        Lower.delegated = False
        given = copy.copy(artifact)  # ExecuTorch takes delegated constants out of it; the suite runs it for comparison
        given._constants = dict(artifact.constants)
        super().run(given, inputs, generate_etrecord)
        Lower.delegated = has_delegate(self.graph_module)


class PumiceTester(Tester):
    def __init__(self, module: Any, inputs: Any, dynamic_shapes: Any = None, **more: Any) -> None:
        stages = Tester.default_stage_classes() | {StageType.TO_EDGE_TRANSFORM_AND_LOWER: Lower}
        super().__init__(module, inputs, stages, dynamic_shapes, **more)


def only_pumice() -> dict[str, flow.TestFlow]:
    """is_delegated=False: programs without a delegate are run and compared, too, not only counted."""
    return {"pumice": flow.TestFlow("pumice", backend="pumice", tester_factory=PumiceTester, is_delegated=False)}


_run_test = runner.run_test


def run_test(model: Any, inputs: Any, ours: flow.TestFlow, *args: Any, **kwargs: Any) -> TestCaseSummary:
    """The suite skips programs that it knows ExecuTorch's kernels not to run; others that do not end, or fell back
    whole and are wrong, are tried without a backend: what fails in the same way then is no failure of ours."""
    Lower.delegated = False  # what fails before it is lowered has no delegate
    summary = _run_test(model, inputs, ours, *args, **kwargs)
    letter = LETTERS.get(summary.result, FAILED)
    why = str(summary.error or NO_KERNEL)
    if not Lower.delegated and letter == DELEGATED:
        letter = FELL_BACK
    elif letter == FAILED or (letter == WRONG and not Lower.delegated):
        alone = _run_test(model, inputs, PORTABLE_TEST_FLOW, *args, **kwargs)
        if excused(summary, alone, Lower.delegated):
            letter, why = SKIPPED, f"ExecuTorch alone fails: {alone.error}"
            summary.result = TestResult.SUCCESS_UNDELEGATED  # the test goes on with its next case
    cases.append(Case(letter, why if letter == SKIPPED else "", sorted(summary.undelegated_op_counts or ())))
    return summary


flow.all_flows, runner.run_test = only_pumice, run_test  # before the suite's conftest asks for them
