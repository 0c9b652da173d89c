# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that puts Pumice in place of the backends of ExecuTorch's own test suite, which its wheel carries.

    ./dev test-executorch [-- pytest's arguments]

It ends with a line for each test: delegated and right, fell back and right, skipped (the suite's own reasons), WRONG or
FAILED.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from executorch.backends.test.harness import Tester
from executorch.backends.test.harness.stages import StageType, ToEdgeTransformAndLower
from executorch.backends.test.suite import flow
from executorch.backends.test.suite.reporting import TestResult

from pumice.executorch import PumicePartitioner

WORDS = {
    TestResult.SUCCESS: "delegated and right",
    TestResult.SUCCESS_UNDELEGATED: "fell back and right",
    TestResult.SKIPPED: "skipped",
    TestResult.OUTPUT_MISMATCH_FAIL: "WRONG",
}
_lines: list[tuple[str, str]] = []


class Lower(ToEdgeTransformAndLower):
    def __init__(self, partitioners: Any = None, edge_compile_config: Any = None) -> None:
        super().__init__(PumicePartitioner, partitioners, edge_compile_config)


class PumiceTester(Tester):
    def __init__(self, module: Any, inputs: Any, dynamic_shapes: Any = None, **more: Any) -> None:
        stages = Tester.default_stage_classes() | {StageType.TO_EDGE_TRANSFORM_AND_LOWER: Lower}
        super().__init__(module, inputs, stages, dynamic_shapes, **more)


def only_pumice() -> dict[str, flow.TestFlow]:
    return {"pumice": flow.TestFlow("pumice", backend="pumice", tester_factory=PumiceTester)}


flow.all_flows = only_pumice  # before the suite's conftest asks


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    yield
    if call.when == "call":
        records = getattr(item.funcargs.get("test_runner"), "_results", [])
        _lines.extend((f"{item.path.name}::{item.name}", WORDS.get(record.result, "FAILED")) for record in records)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name, word in _lines:
        terminalreporter.write_line(f"{word:20} {name}")
    counts = Counter(word for _, word in _lines)
    terminalreporter.write_line(", ".join(f"{counts[word]} {word}" for word in (*WORDS.values(), "FAILED")))
