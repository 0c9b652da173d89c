# SPDX-License-Identifier: Apache-2.0
"""Pumice as the flows of executorch.backends.test.suite; `cases`: what became of the running test's programs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from executorch.backends.test.harness import Tester
from executorch.backends.test.harness.stages import StageType, ToEdgeTransformAndLower
from executorch.backends.test.suite import flow, runner
from executorch.backends.test.suite.reporting import TestCaseSummary, TestResult
from torch.export import ExportedProgram

from pumice.executorch import PumicePartitioner
from support.executorch_suite import quantized
from support.executorch_suite.derived import NotExplained, check
from support.executorch_suite.excuse import excused
from support.executorch_suite.share import DELEGATED, FAILED, FELL_BACK, PARTLY, SKIPPED, WRONG

LETTERS = {TestResult.SUCCESS: DELEGATED, TestResult.SKIPPED: SKIPPED, TestResult.OUTPUT_MISMATCH_FAIL: WRONG}
NO_KERNEL = "an operator that Pumice does not run has no kernel in ExecuTorch"


@dataclass
class Case:
    """worst: the largest error by what roundings explain, of a program with a delegate; None: it was not compared."""

    letter: str
    why: str = ""
    on_cpu: list[str] = field(default_factory=list)
    worst: float | None = None


cases: list[Case] = []


def has_delegate(module: Any) -> bool:
    return any("executorch_call_delegate" in str(node.target) for node in module.graph.nodes)


def given_away(program: ExportedProgram) -> ExportedProgram:
    """For ExecuTorch, which takes delegated constants out of it: the first one still runs, for comparison."""
    given = copy.copy(program)
    given._constants = dict(program.constants)
    return given


class Lower(ToEdgeTransformAndLower):
    delegated = quantized = False  # whether the last program has a delegate, or something quantized

    def __init__(self, partitioners: Any = None, edge_compile_config: Any = None) -> None:
        super().__init__(PumicePartitioner, partitioners, edge_compile_config)

    def run(self, artifact: Any, inputs: Any = None, generate_etrecord: bool = False) -> None:
        Lower.delegated, Lower.quantized = False, quantized.quantizes(artifact.graph)
        super().run(given_away(artifact), inputs, generate_etrecord)
        Lower.delegated = has_delegate(self.graph_module)


class PumiceTester(Tester):
    worst: float | None = None  # of the last program
    network = open = False  # of the running test: whether it is a whole network; named in derived.OPEN

    def __init__(self, module: Any, inputs: Any, dynamic_shapes: Any = None, **more: Any) -> None:
        stages = Tester.default_stage_classes() | {StageType.TO_EDGE_TRANSFORM_AND_LOWER: Lower}
        super().__init__(module, inputs, stages, dynamic_shapes, **more)
        PumiceTester.worst = None

    def run_method_and_compare_outputs(self, stage: Any = None, inputs: Any = None, **more: Any) -> Any:
        """As the suite compares, and within what roundings explain: on inputs that nobody writes into before."""
        inputs = inputs or next(self.generate_random_inputs())
        run, outputs = self.stages[self.cur].run_artifact, []
        self.stages[self.cur].run_artifact = lambda given: outputs.append(run(given)) or outputs[-1]
        program: ExportedProgram = self.get_artifact(StageType.EXPORT)
        before = copy.deepcopy(inputs)
        super().run_method_and_compare_outputs(stage, inputs, **more)
        if Lower.delegated and not self.open:
            PumiceTester.worst = check(program, before, outputs[0], self.network)
        return self


class OnlyExecutorch(Tester):
    """Nothing is delegated."""


def all_flows() -> dict[str, flow.TestFlow]:
    """is_delegated=False: programs without a delegate are run and compared, too, not only counted."""
    floats = flow.TestFlow("pumice", backend="pumice", tester_factory=PumiceTester, is_delegated=False)
    return quantized.flows(floats)


_run_test = runner.run_test


def run_test(model: Any, inputs: Any, ours: flow.TestFlow, *args: Any, **kwargs: Any) -> TestCaseSummary:
    """The suite skips programs that it knows ExecuTorch's kernels not to run; others that do not end, or fell back
    whole and are wrong, are tried without a backend: what fails in the same way then is no failure of ours."""
    Lower.delegated = False  # what fails before it is lowered has no delegate
    summary = _run_test(model, inputs, ours, *args, **kwargs)
    letter = LETTERS.get(summary.result, FAILED)
    why = str(summary.error or NO_KERNEL)
    on_cpu = sorted(summary.undelegated_op_counts or ())
    if letter == DELEGATED and not Lower.delegated:
        letter = FELL_BACK
    elif letter == DELEGATED and on_cpu:
        letter = PARTLY
    elif letter == FAILED or (letter == WRONG and not Lower.delegated):
        alone = _run_test(model, inputs, replace(ours, tester_factory=OnlyExecutorch), *args, **kwargs)
        if excused(summary, alone, Lower.delegated):
            letter, why = SKIPPED, f"ExecuTorch alone fails: {alone.error}"
            summary.result = TestResult.SUCCESS_UNDELEGATED  # the test goes on with its next case
    if ours.quantize and letter not in (WRONG, FAILED, SKIPPED) and not Lower.quantized:
        return summary  # nothing to quantize: it is a case of the flow for floats
    worst = PumiceTester.worst if Lower.delegated else None
    if isinstance(summary.error, NotExplained):
        worst = summary.error.worst
    cases.append(Case(letter, why if letter in (SKIPPED, WRONG, FAILED) else "", on_cpu, worst))
    return summary


flow.all_flows, runner.run_test = all_flows, run_test  # before the suite's conftest asks for them
