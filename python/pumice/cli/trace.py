# SPDX-License-Identifier: Apache-2.0
"""A profiled run as a trace that Perfetto (ui.perfetto.dev) opens: layers, dispatches, copies and waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pumice import ProfileRow

_TRACKS = {1: "layers", 2: "dispatches", 3: "copies", 4: "waits"}


def trace(rows: list[ProfileRow], device: str) -> str:
    """The JSON of Chrome's trace events, times in microseconds."""
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": device}}]
    for number, name in _TRACKS.items():
        events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": name}})
        events.append({"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": number, "args": {"sort_index": number}})
    for row in rows:
        facts = row.to_dict()
        keys = ("kernel", "layer", "source", "operands", "shape", "bytes", "flops", "gb_per_s", "call")
        args = {key: facts[key] for key in keys if facts[key] not in ("", -1)}
        events.append(_slice(3 if row.call < 0 else 2, row.operator, row.start_us, row.microseconds, args))
    events += [*layers(rows), *waits(rows)]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})


def layers(rows: Iterable[ProfileRow]) -> Iterator[dict[str, Any]]:
    """A slice for every stretch of rows inside of a layer, those of its sublayers within it."""
    open_: list[tuple[str, float]] = []  # names from the outside to the inside, with when they began
    end = 0.0
    for row in rows:
        path = _path(row.layer)
        pairs = enumerate(zip(path, open_, strict=False))
        same = next((depth for depth, (name, other) in pairs if name != other[0]), min(len(path), len(open_)))
        yield from _closed(open_, same, end)
        open_ += [(name, row.start_us) for name in path[same:]]
        end = row.start_us + row.microseconds
    yield from _closed(open_, 0, end)


def waits(rows: Iterable[ProfileRow]) -> Iterator[dict[str, Any]]:
    """A slice for every time between two rows: the device waits for the one to end before the other begins."""
    end = None
    for row in sorted(rows, key=lambda row: row.start_us):
        if end is not None and row.start_us > end:
            yield _slice(4, "wait", end, row.start_us - end, {"for": row.operator})
        end = max(end or 0.0, row.start_us + row.microseconds)


def _path(layer: str) -> list[str]:
    """encoder.layer.0.{key,query} -> encoder, layer.0, {key,query}: a number stays with the name before it."""
    path: list[str] = []
    start, inner, brace = layer.partition("{")
    for part in filter(None, start.split(".")):
        if part.isdigit() and path:
            path[-1] += f".{part}"
        else:
            path.append(part)
    return [*path, brace and inner + brace] if inner else path


def _closed(open_: list[tuple[str, float]], depth: int, end: float) -> Iterator[dict[str, Any]]:
    while len(open_) > depth:
        name = ".".join(each for each, _ in open_)
        short, begin = open_.pop()
        yield _slice(1, short, begin, end - begin, {"layer": name})


def _slice(track: int, name: str, begin: float, duration: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": track, "name": name, "ts": begin, "dur": duration, "args": args}
