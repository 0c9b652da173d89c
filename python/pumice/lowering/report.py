# SPDX-License-Identifier: Apache-2.0
"""What became of every node of the exported graph, and where in the user's model it comes from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from pumice.errors import UnsupportedError
from pumice.format.text import counted
from pumice.lowering.source import Source

# runs: lowered to the operators in `detail`        fused: computed inside of the node in `detail`
# folded: computed at export                        removed: changes nothing (a clone, a dropout, an assertion)
# size: shape arithmetic, done on the host          unused: no result needs it
# refused: `detail` is the reason
STATUSES = ("runs", "fused", "folded", "removed", "size", "unused", "refused")


_MAX_SHOWN = 8  # refusals in the text of an UnsupportedError; all are in .reasons


@dataclass
class Row:
    """One node of the exported graph and what became of it (STATUSES)."""

    node: str
    target: str
    status: str
    detail: str = ""
    operators: list[str] = field(default_factory=list)
    dtype: str = ""
    shape: str = ""
    storage: str = ""  # of its first result, where that is not a buffer
    source: Source = field(default_factory=Source)


@dataclass(frozen=True)
class Reason:
    """One refusal: what was refused, why, and the line of the user's model."""

    node: str
    target: str
    reason: str
    source: Source

    def __str__(self) -> str:
        place = f"{self.source}: " if str(self.source) else ""
        code = f"\n    {self.source.code}" if self.source.code else ""
        return f"{place}{self.target}: {self.reason}{code}"


class Report:
    """Rows in graph order, and notes on what was converted. str() is a table, to_json() the same for machines."""

    def __init__(self, rows: Iterable[Row], notes: Iterable[str] = ()) -> None:
        self.rows = list(rows)
        self.notes = list(notes)

    @property
    def reasons(self) -> list[Reason]:
        """One item for each refused node, in the order of the graph."""
        return [Reason(row.node, row.target, row.detail, row.source) for row in self.rows if row.status == "refused"]

    @property
    def operators(self) -> dict[str, int]:
        """How often each Pumice operator is called, most often first."""
        return dict(Counter(name for row in self.rows for name in row.operators).most_common())

    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON: operators, counts, refusals, notes, nodes."""
        return json.dumps(
            {
                "operators": self.operators,
                "counts": dict(Counter(row.status for row in self.rows)),
                "refusals": [asdict(reason) for reason in self.reasons],
                "notes": self.notes,
                "nodes": [asdict(row) for row in self.rows],
            },
            indent=indent,
        )

    def summary(self) -> str:
        """How many nodes became what, refusals, notes, and operators: str() without the table of nodes."""
        counts = Counter(row.status for row in self.rows)
        lines = [f"{counted(len(self.rows), 'node')}: " + ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])]
        if self.reasons:
            lines += ["", f"Refused ({len(self.reasons)}):", *(f"  {reason}" for reason in self.reasons)]
        if self.notes:
            lines += ["", "Notes:", *(f"  {note}" for note in self.notes)]
        if self.operators:
            lines += ["", "Operators:", *_table([[name, str(count)] for name, count in self.operators.items()])]
        return "\n".join(lines)

    def __str__(self) -> str:
        header = ["node", "target", "status", "runs as / fused into / reason", "shape", "source"]
        rows = [
            [r.node, r.target, r.status, r.detail, f"{r.dtype}{r.shape} {r.storage}".rstrip(), str(r.source)]
            for r in self.rows
        ]
        return "\n".join([self.summary(), "", *_table([header, *rows])])


def unsupported(report: Report) -> UnsupportedError:
    """The error for a report with refusals: the first few in its text, all in `reasons`."""
    reasons = report.reasons
    shown = "\n".join(f"  {reason}" for reason in reasons[:_MAX_SHOWN])
    more = f"\n  and {len(reasons) - _MAX_SHOWN} more (.reasons has all)" if len(reasons) > _MAX_SHOWN else ""
    error = UnsupportedError(f"{counted(len(reasons), 'node')} of the model cannot run:\n{shown}{more}", reasons)
    error.report = report
    return error


def _table(rows: list[list[str]]) -> list[str]:
    widths = [min(60, max(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
