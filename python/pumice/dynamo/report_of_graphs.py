# SPDX-License-Identifier: Apache-2.0
"""What became of the graphs of a compiled model: what ran on the device, what in eager, and why."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pumice.format.text import counted


@dataclass
class GraphReport:
    """One graph of TorchDynamo. A model has several where it cannot be captured as a whole.

    where: the line of the model where it begins, or its first layer or operator. programs: for each form in which it
    was built (dynamic sizes, sizes that these do not cover, changed weights) the report of its nodes. calls: how often
    it ran. in_eager: how often all of it ran in eager, by reason. builds: how often it was built; more than `programs`
    has where weights have changed.
    """

    number: int
    where: str
    programs: list[Any] = field(default_factory=list)
    calls: int = 0
    in_eager: Counter[str] = field(default_factory=Counter)
    builds: int = 0

    def __str__(self) -> str:
        eager = sum(self.in_eager.values())
        lines = [f"graph {self.number} ({self.where}): {counted(self.calls, 'call')}, {eager} of them all in eager"]
        lines += [f"  all in eager, {counted(count, 'time')}: {reason}" for reason, count in self.in_eager.items()]
        if self.builds > len(self.programs):
            lines.append(f"  built {self.builds} times, as weights or sizes have changed")
        for program in self.programs:
            lines += [f"  {line}" for line in program.head()]
            eager = Counter(f"{r.target}: {r.reason}" for r in program.reasons)
            lines += [f"    in eager, {counted(count, 'node')} of {reason}" for reason, count in eager.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON; programs as Report.to_json has them, with their partitions."""
        return {
            "number": self.number,
            "where": self.where,
            "calls": self.calls,
            "in_eager": dict(self.in_eager),
            "builds": self.builds,
            "programs": [
                json.loads(program.to_json()) | {"partitions": program.partitions} for program in self.programs
            ],
        }


@dataclass(frozen=True)
class CompileReport:
    """`graphs`: a GraphReport for each graph, in the order in which they were compiled. `without`: how many calls ran
    none of them, as TorchDynamo left all to eager. str() is for people."""

    graphs: tuple[GraphReport, ...]
    without: int = 0

    @property
    def all_on_device(self) -> bool:
        """Whether every graph has run, and nothing of any ran in eager, sizes and views of results left aside."""
        return (
            bool(self.graphs)
            and not self.without
            and all(
                g.calls and not g.in_eager and not any(program.reasons for program in g.programs) for g in self.graphs
            )
        )

    def to_json(self, indent: int | None = None) -> str:
        """All graphs as JSON."""
        return json.dumps(
            {"schema": 1, "graphs": [graph.to_dict() for graph in self.graphs], "without": self.without},
            indent=indent,
        )

    def __str__(self) -> str:
        lines = list(map(str, self.graphs))
        if self.without:
            calls = counted(self.without, "call")
            lines.append(f"{calls} ran no graph: TorchDynamo left it all to eager (TORCH_LOGS=recompiles)")
        return "\n".join(lines) or "no graph was compiled yet: call the model first"
