# SPDX-License-Identifier: Apache-2.0
"""The share of ExecuTorch's own backend tests that Pumice runs, share.json: it may only grow.

Of each test: a letter for each case (d delegated whole and right, p in part, f fell back and right, s skipped), and the
largest error by what roundings explain; null: PyTorch leaves the result open, which the suite alone compares.

    python -m support.executorch_suite.share    prints the table in docs/executorch.md
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

DELEGATED, PARTLY, FELL_BACK, SKIPPED, ABSENT, WRONG, FAILED = "dpfs-!x"
WORDS = {
    DELEGATED: "delegated whole and right",
    PARTLY: "in part and right",
    FELL_BACK: "fell back and right",
    SKIPPED: "skipped",
    ABSENT: "not installed",
    WRONG: "WRONG",
    FAILED: "FAILED",
}
GROUPS = {
    "operators": "its suite: operators",
    "quantized": "its suite: quantized operators and models",
    "models": "its suite: models",
    "vulkan": "its Vulkan delegate",
}
PATH = Path(__file__).with_name("share.json")

Outcome = tuple[str, float | None]  # the letters of a test's cases, and its worst error


def short(nodeid: str) -> str:
    """test/suite/operators/test_abs.py::test_abs_shapes[pumice] -> operators/test_abs::test_abs_shapes."""
    path, _, test = nodeid.partition("::")
    folders = Path(path).parts
    group = next((folder for folder in reversed(folders) if folder in GROUPS), "")
    return f"{group}/{Path(path).stem}::{test.rpartition('::')[2].replace('[pumice-', '[').removesuffix('[pumice]')}"


def load() -> dict[str, Outcome]:
    """Sorted by name."""
    rows = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    return {name: (letters, worst) for name, (letters, worst) in rows.items()}


def record(cases: Mapping[str, Outcome]) -> None:
    """What ran replaces what was recorded for it, unless it is wrong or failed; what did not run stays."""
    right = {name: outcome for name, outcome in cases.items() if not set(outcome[0]) & {ABSENT, WRONG, FAILED}}
    rows = [
        f"{json.dumps(name)}: [{json.dumps(letters)}, {'null' if worst is None else f'{worst:.2g}'}]"
        for name, (letters, worst) in sorted((load() | right).items())
    ]
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def lost(cases: Mapping[str, Outcome], recorded: Mapping[str, Outcome]) -> list[str]:
    """Tests that ran and of which a case was delegated, whole or in part, and is less so."""
    return [name for name in cases if any(_less(now, was) for was, now in _pairs(name, cases, recorded))]


def gained(cases: Mapping[str, Outcome], recorded: Mapping[str, Outcome]) -> int:
    return sum(_less(was, now) for name in cases for was, now in _pairs(name, cases, recorded))


def _less(a: str, b: str) -> bool:
    rank = {DELEGATED: 2, PARTLY: 1}
    return rank.get(a, 0) < rank.get(b, 0)


def _pairs(name: str, cases: Mapping[str, Outcome], recorded: Mapping[str, Outcome]) -> Iterator[tuple[str, str]]:
    was, now = recorded.get(name, ("", 0.0))[0], cases[name][0]
    length = max(len(was), len(now))
    return zip(was.ljust(length), now.ljust(length), strict=True)


def _group(name: str) -> str:
    return "quantized" if "[pumice_" in name else name.partition("/")[0]


def grouped(cases: Mapping[str, Outcome]) -> dict[str, Counter[str]]:
    counts = {group: Counter[str]() for group in GROUPS}
    for name, (letters, _) in cases.items():
        counts[_group(name)].update(letters)
    return counts


def errors(cases: Mapping[str, Outcome], group: str) -> tuple[int, float]:
    """How many delegated cases of a group were compared with what roundings explain, and the largest error by that."""
    compared = [(letters, worst) for name, (letters, worst) in cases.items() if _group(name) == group]
    compared = [
        (letters.count(DELEGATED) + letters.count(PARTLY), worst) for letters, worst in compared if worst is not None
    ]
    return sum(count for count, _ in compared), max((worst for _, worst in compared), default=0.0)


def table(cases: Mapping[str, Outcome]) -> str:
    """Markdown; a column for what is not installed, WRONG or FAILED only where there is one."""
    counts = grouped(cases)
    always = (DELEGATED, PARTLY, FELL_BACK, SKIPPED)
    letters = [x for x in WORDS if x in always or any(c[x] for c in counts.values())]
    rows = [
        ["tests of ExecuTorch", "cases", *(WORDS[x] for x in letters), "within what roundings explain", "worst error"]
    ]
    for group, count in counts.items():
        compared, worst = errors(cases, group)
        numbers = [count.total(), *(count[x] for x in letters), compared]
        rows.append([GROUPS[group], *map(str, numbers), f"{worst:.2g}"])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


if __name__ == "__main__":
    print(table(load()))
