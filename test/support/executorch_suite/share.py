# SPDX-License-Identifier: Apache-2.0
"""The share of ExecuTorch's own backend tests that Pumice runs, share.json: it may only grow.

A letter for each case of a test: d delegated and right, f fell back and right, s skipped.

    python test/delegate/share.py    prints the table in docs/executorch.md
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

DELEGATED, FELL_BACK, SKIPPED, ABSENT, WRONG, FAILED = "dfs-!x"
WORDS = {
    DELEGATED: "delegated and right",
    FELL_BACK: "fell back and right",
    SKIPPED: "skipped",
    ABSENT: "not installed",
    WRONG: "WRONG",
    FAILED: "FAILED",
}
GROUPS = {"operators": "its suite: operators", "models": "its suite: models", "vulkan": "its Vulkan delegate"}
PATH = Path(__file__).with_name("share.json")


def short(nodeid: str) -> str:
    """test/suite/operators/test_abs.py::test_abs_shapes[pumice] -> operators/test_abs::test_abs_shapes."""
    path, _, test = nodeid.partition("::")
    folders = Path(path).parts
    group = next((folder for folder in reversed(folders) if folder in GROUPS), "")
    return f"{group}/{Path(path).stem}::{test.rpartition('::')[2].replace('[pumice-', '[').removesuffix('[pumice]')}"


def load() -> dict[str, str]:
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def record(cases: Mapping[str, str]) -> None:
    """What ran replaces what was recorded for it, unless it is wrong or failed; what did not run stays."""
    right = {name: letters for name, letters in cases.items() if not set(letters) & {ABSENT, WRONG, FAILED}}
    PATH.write_text(json.dumps(load() | right, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def lost(cases: Mapping[str, str], recorded: Mapping[str, str]) -> list[str]:
    """Tests that ran and of which a case was delegated and is no longer."""
    return [name for name in cases if any(was == DELEGATED != now for was, now in _pairs(name, cases, recorded))]


def gained(cases: Mapping[str, str], recorded: Mapping[str, str]) -> int:
    return sum(was != DELEGATED == now for name in cases for was, now in _pairs(name, cases, recorded))


def _pairs(name: str, cases: Mapping[str, str], recorded: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    was, now = recorded.get(name, ""), cases[name]
    length = max(len(was), len(now))
    return zip(was.ljust(length), now.ljust(length), strict=True)


def grouped(cases: Mapping[str, str]) -> dict[str, Counter[str]]:
    counts = {group: Counter[str]() for group in GROUPS}
    for name, letters in cases.items():
        counts[name.partition("/")[0]].update(letters)
    return counts


def table(counts: Mapping[str, Counter[str]]) -> str:
    """Markdown; a column for what is not installed, WRONG or FAILED only where there is one."""
    letters = [x for x in WORDS if x in (DELEGATED, FELL_BACK, SKIPPED) or any(c[x] for c in counts.values())]
    rows = [["tests of ExecuTorch", *(WORDS[letter] for letter in letters)]]
    rows += [[GROUPS[group], *(str(count[letter]) for letter in letters)] for group, count in counts.items()]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


if __name__ == "__main__":
    print(table(grouped(load())))
