# SPDX-License-Identifier: Apache-2.0
"""The pictures of `pumice report`, as SVG that stands in the page: memory over time, dispatches over time, roofline."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.cli import roofline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pumice import ProfileRow

_ENOUGH = 1500  # boxes of a picture: the smallest of more are left out, and the picture says so


def lives(method: dict[str, Any]) -> list[tuple[int, int, int, int, str]]:
    """(first call, last call, offset, bytes, name) of every value of the arena, of a method that inspect describes."""
    values = method["plan"]["values"]
    root = [value.get("storage_of", index) for index, value in enumerate(values)]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for call, op in enumerate(method["ops"]):
        for index in (*op["reads"], *op["writes"]):
            first.setdefault(root[index], call)
            last[root[index]] = call
    end = len(method["ops"]) - 1
    found = []
    for index, value in enumerate(values):
        if root[index] == index and "offset" in value and index in first:
            begin = 0 if value["kind"] == "input" else first[index]
            stop = end if value["kind"] == "output" else last[index]
            found.append((begin, stop, value["offset"], value["bytes"], value["name"] or f"#{index}"))
    return found


def memory(method: dict[str, Any]) -> str:
    """The arena: each value a box from the call that makes it to the last that reads it, at its place in memory."""
    boxes = sorted(lives(method), key=lambda box: -box[3])

    def draw(axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        for number, (begin, stop, offset, size, name) in enumerate(boxes[:_ENOUGH]):
            color = f"C{number % 10}"
            box = Rectangle(
                (begin, offset / 1e3), stop - begin + 1, size / 1e3, facecolor=color, alpha=0.6, linewidth=0
            )
            box.set_gid(f"value {name}: calls {begin} to {stop}, {size} bytes")
            axes.add_patch(box)
        axes.set_xlim(0, max(len(method["ops"]), 1))
        axes.set_ylim(0, max(method["plan"]["arena_bytes"] / 1e3, 1e-3))
        axes.set_xlabel("operator call" + _left_out(boxes))
        axes.set_ylabel("arena, kB")

    return _svg(draw, 3.2)


def timeline(rows: list[ProfileRow]) -> str:
    """Dispatches and copies of one run over time, one colour an operator; where nothing is, the device waits."""
    names = list(dict.fromkeys(row.operator for row in rows))
    largest = sorted(rows, key=lambda row: -row.microseconds)

    def draw(axes: Axes) -> None:
        for number, name in enumerate(names):
            spans = [(row.start_us, row.microseconds) for row in largest[:_ENOUGH] if row.operator == name]
            axes.broken_barh(spans, (number - 0.4, 0.8), facecolors=f"C{number % 10}")
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("microseconds since the first dispatch began" + _left_out(largest))

    return _svg(draw, 1.0 + 0.22 * len(names))


def points(rows: list[ProfileRow], ceilings: list[dict[str, Any]], device: dict[str, str]) -> str:
    """The roofline with a point for each kernel of the run, named."""
    groups: dict[str, list[ProfileRow]] = {}
    for row in rows:
        if row.call >= 0 and row.flops and row.bytes and row.microseconds:
            groups.setdefault(f"{row.operator}: {row.kernel}", []).append(row)
    facts = [
        {
            "status": "ok",
            "kernel": name,
            "flops": sum(row.flops for row in group),
            "bytes": sum(row.bytes for row in group),
            "median_us": sum(row.microseconds for row in group),
        }
        for name, group in groups.items()
    ]
    text = io.StringIO()
    roofline.draw({"rows": facts, "ceilings": ceilings, "device": device}, text)
    return _inline(text.getvalue())


def _left_out(items: list[Any]) -> str:
    return f" (the {_ENOUGH} largest of {len(items)})" if len(items) > _ENOUGH else ""


def _svg(draw: Callable[[Axes], None], height: float) -> str:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, height), constrained_layout=True)
    draw(axes)
    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # texts stay texts: to be searched, and small
        figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return _inline(text.getvalue())


def _inline(svg: str) -> str:
    """Without the XML head and the type of document, which HTML has not."""
    return svg[svg.index("<svg") :]
