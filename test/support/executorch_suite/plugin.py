# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: Pumice in place of the backends of ExecuTorch's own tests, and what became of each case.

__main__.py starts it. A test has a case for each program that it lowers; a case is delegated and right, whole or in
part, fell back and right, skipped, WRONG (another result) or FAILED (no result).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree

from support import quick_export
from support.executorch_suite import flow, quantized, share, vulkan
from support.executorch_suite.absent import Absent, AbsentTest, missing
from support.executorch_suite.derived import OPEN
from support.executorch_suite.share import ABSENT, DELEGATED, FAILED, PARTLY, SKIPPED, WORDS, WRONG

BAD = (WRONG, FAILED)
LARGEST = 20  # errors in the list at the end
quick_export.install()  # as in all tests: half of the time of a program with one operator
for kind in torch.return_types.all_return_types:  # ExecuTorch writes a result's type by the name that it has in pytree
    name = f"torch.return_types.{kind.__name__}"
    pytree.SUPPORTED_SERIALIZED_TYPES[kind] = pytree._SerializeNodeDef(kind, name, None, None)
_total = [0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write what ran to share.json, if nothing is lost")


# -- what runs a test --------------------------------------------------------------------------------------------------


def pytest_pycollect_makemodule(module_path: Any, parent: Any) -> Any:
    package = missing(module_path)
    return Absent.from_parent(parent, path=module_path, package=package) if package else None


def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> None:
    if name == "TestVulkanBackend":
        vulkan.take_over(collector.obj, obj)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Flows that quantize have the tests with something to quantize."""
    kept = [item for item in items if _belongs(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _belongs(item)])
    items[:] = kept


def _belongs(item: pytest.Item) -> bool:
    ours = getattr(item, "callspec", None) and item.callspec.params.get("test_runner")
    return not ours or quantized.belongs(ours.name, item.path.stem, item.name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    flow.cases.clear()
    flow.PumiceTester.network = "models" in item.path.parts
    flow.PumiceTester.open = getattr(item, "originalname", "") in OPEN
    torch.manual_seed(0)
    random.seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    cases = flow.cases
    if report.failed and not (cases and cases[-1].letter in BAD):
        cases.append(flow.Case(FAILED, str(call.excinfo.value) if call.excinfo else ""))
    elif report.skipped and not (cases and cases[-1].letter == SKIPPED):
        letter = ABSENT if isinstance(item, AbsentTest) else SKIPPED
        cases.append(flow.Case(letter, report.longrepr[2].removeprefix("Skipped: ")))
    if report.when == "call" or not report.passed:
        report.user_properties.append(("cases", [[*vars(case).values()] for case in cases]))
    return report


# -- what the user sees ------------------------------------------------------------------------------------------------


def pytest_collection_finish(session: pytest.Session) -> None:
    _total[0] = len(session.items) or _total[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    _total[0] = len(ids)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    return (report.outcome, "", "") if report.when == "call" or report.skipped else None


class Lines:
    """A line for each test as soon as it has ended, and the tables at the end; in the process that the user started."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.running: dict[str, list[Any]] = {}
        self.ended: dict[str, share.Outcome] = {}
        self.bad: list[str] = []
        self.reasons: Counter[str] = Counter()
        self.on_cpu: Counter[str] = Counter()
        self.lost: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        lost = [[FAILED, "", [], 0.0]] if report.failed else []  # the process that ran it is gone
        cases = dict(report.user_properties).get("cases", lost)
        if cases:
            self.running[report.nodeid] = cases
        if report.when in ("teardown", "???"):
            self.end(share.short(report.nodeid), self.running.pop(report.nodeid, []))

    def end(self, name: str, cases: list[Any]) -> None:
        letters = "".join(case[0] for case in cases)
        delegated = {DELEGATED, PARTLY} & set(letters)
        worst = max((case[3] for case in cases if case[3] is not None), default=None if delegated else 0.0)
        self.ended[name] = letters, worst
        for number, (letter, why, on_cpu, _) in enumerate(cases):
            self.bad += [f"{name}, case {number}: {WORDS[letter]}: {why}"] if letter in BAD else []
            self.reasons.update([why.partition("\n")[0]] if letter in (SKIPPED, ABSENT) else [])
            self.on_cpu.update(on_cpu)
        writer = self.config.pluginmanager.get_plugin("terminalreporter")
        writer.write_line(
            f"[{len(self.ended):4}/{_total[0]}] {name}: {said(letters)}{error(worst) if delegated else ''}"
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.lost = share.lost(self.ended, share.load())
        if self.lost and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.config.getoption("record") and not self.lost:
            share.record(self.ended)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        ranking(write, "skipped cases by their reason", self.reasons)
        ranking(write, "operators that stayed on the CPU, by the number of cases", self.on_cpu)
        errors = {name: worst for name, (_, worst) in self.ended.items() if worst is not None}
        write("\nlargest errors by what roundings explain:")
        for name in sorted(errors, key=errors.__getitem__, reverse=True)[:LARGEST]:
            write(f"{errors[name]:8.2g} {name}")
        write("\n" + share.table(self.ended) + "\n")
        for line in self.bad:
            write(line)
        recorded = share.load()
        for name in self.lost:
            write(f"LOST {name}: was {said(recorded[name][0])}; now {said(self.ended[name][0])}")
        if gained := share.gained(self.ended, recorded):
            write(f"{gained} more cases are delegated than share.json says: record them with -- --record")
        write(said("".join(letters for letters, _ in self.ended.values()), zero=True))


def said(letters: str, zero: bool = False) -> str:
    return ", ".join(f"{letters.count(x)} {word}" for x, word in WORDS.items() if zero or x in letters)


def error(worst: float | None) -> str:
    return "" if worst is None else f"; error {worst:.2g} of what roundings explain"


def ranking(write: Any, title: str, counts: Counter[str]) -> None:
    if counts:
        write(f"\n{title}:")
    for key, count in counts.most_common(40):
        write(f"{count:5} {key}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Lines(config))
