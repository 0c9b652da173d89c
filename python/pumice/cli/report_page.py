# SPDX-License-Identifier: Apache-2.0
"""The page of `pumice report`: one HTML file that asks for nothing from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from pumice.format.text import size_text
from pumice.runtime.profile import layer_of

if TYPE_CHECKING:
    from pumice import ProfileRow

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; color: #222; }
h2 { margin-top: 2em; border-bottom: 1px solid #ccc; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; } td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } code, .mono { font-family: monospace; }
details { margin-left: 1.1em; } details > table { margin: .2em 0 .4em 1.1em; } summary { cursor: pointer; }
.bar { display: inline-block; height: .7em; background: #4878cf; vertical-align: baseline; margin-right: .4em; }
.quiet { color: #666; } .refused { color: #a40000; }
"""


Rows = dict[int, list["ProfileRow"]]  # of a profile, by their calls


@dataclass
class Layer:
    """A submodule of the user's model: its own calls and weights, and its submodules."""

    calls: list[int] = field(default_factory=list)
    bytes: int = 0
    us: float = 0.0
    parts: dict[str, Layer] = field(default_factory=dict)

    def total(self, what: str) -> float:
        """Of the layer and all that is in it; what: bytes or us."""
        return getattr(self, what) + sum(part.total(what) for part in self.parts.values())


def layer_tree(method: dict[str, Any], rows: Iterable[ProfileRow] = ()) -> Layer:
    """The layers of a method that inspect describes; a weight belongs to the layer of the first call that reads it."""
    root, weighed = Layer(), set()
    values = method["plan"]["values"]
    times = Counter[int]()
    for row in rows:
        times[row.call] += row.microseconds
    for number, op in enumerate(method["ops"]):
        layer = root
        for part in filter(None, layer_of(op["source"]).split(".")):
            layer = layer.parts.setdefault(part, Layer())
        layer.calls.append(number)
        layer.us += times[number]
        for index in op["reads"]:
            if values[index]["kind"] == "constant" and index not in weighed:
                weighed.add(index)
                layer.bytes += values[index]["bytes"]
    return root


def page(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """The document; each section is a heading and HTML."""
    body = "\n".join(f"<h2>{escape(heading)}</h2>\n{text}" for heading, text in sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def table(head: list[str], rows: Iterable[Iterable[str]], right: Iterable[str] = ()) -> str:
    """A table of texts; columns named in `right` hold numbers."""
    marks = [' class="n"' if name in set(right) else "" for name in head]

    def line(cells: Iterable[str], tag: str) -> str:
        return "".join(f"<{tag}{mark}>{escape(cell)}</{tag}>" for cell, mark in zip(cells, marks, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>\n" for row in rows)
    return f"<table><tr>{line(head, 'th')}</tr>\n{body}</table>"


def layers(method: dict[str, Any], rows: list[ProfileRow]) -> str:
    """The tree, to be opened layer by layer; the bar is the share of the time, without a profile of the weights."""
    tree = layer_tree(method, rows)
    of_call: Rows = {}
    for row in rows:
        of_call.setdefault(row.call, []).append(row)
    what = "us" if rows else "bytes"
    return _layer("model", tree, method, of_call, what, tree.total(what) or 1.0, True)


def _layer(name: str, layer: Layer, method: dict, rows: Rows, what: str, whole: float, opened: bool) -> str:
    share = layer.total(what) / whole
    facts = [size_text(int(layer.total("bytes")))] + (
        [f"{layer.total('us'):.1f} us, {100 * share:.1f} %"] if rows else []
    )
    bar = f'<span class="bar" style="width:{12 * share:.2f}em"></span>'
    head = f"<summary>{bar}<b>{escape(name)}</b> <span class=quiet>{escape(', '.join(facts))}</span></summary>"
    calls = [_call(number, method, rows) for number in layer.calls]
    columns = ["call", "operator", "makes", "from", *(["kernel", "us"] if rows else [])]
    own = table(columns, calls, right=("call", "us")) if calls else ""
    inner = "".join(_layer(part, each, method, rows, what, whole, False) for part, each in layer.parts.items())
    return f"<details{' open' if opened else ''}>{head}{own}{inner}</details>\n"


def _call(number: int, method: dict[str, Any], rows: Rows) -> list[str]:
    op = method["ops"][number]
    makes = " ".join(f"{out['dtype']}{out['dims']}" for out in op["outputs"])
    cells = [str(number), op["name"], makes, op["source"]]
    if rows:
        own = rows.get(number, [])
        cells += [" ".join(dict.fromkeys(row.kernel for row in own)) or "(no dispatch)"]
        cells += [f"{sum(row.microseconds for row in own):.1f}"]
    return cells


def weights(method: dict[str, Any]) -> str:
    """Every constant, the largest first, with the calls that read it."""
    values = method["plan"]["values"]
    readers: dict[int, list[int]] = {}
    for number, op in enumerate(method["ops"]):
        for index in op["reads"]:
            readers.setdefault(index, []).append(number)
    found = [index for index, value in enumerate(values) if value["kind"] == "constant"]
    rows = []
    for index in sorted(found, key=lambda index: -values[index]["bytes"]):
        value, calls = values[index], readers.get(index, [])
        operators = " ".join(dict.fromkeys(method["ops"][call]["name"] for call in calls))
        where = (
            f"{operators} (call {', '.join(map(str, calls[:4]))}{', ...' if len(calls) > 4 else ''})" if calls else ""
        )
        rows.append([value["name"], f"{value['dtype']}{value['dims']}", f"{value['bytes']:,}", where])
    return table(["constant", "type", "bytes", "read by"], rows, right=("bytes",))


def exported(report: dict[str, Any]) -> str:
    """What became of the nodes of the exported graph: of the JSON that `pumice export --report` writes."""
    counts = ", ".join(f"{count} {status}" for status, count in report["counts"].items())
    notes = "".join(f"<li>{escape(note)}</li>" for note in report["notes"])
    refused = "".join(
        f"<li class=refused>{escape(_place(each['source']))}<code>{escape(each['target'])}</code>: "
        f"{escape(each['reason'])}<br><code>{escape(each['source'].get('code', ''))}</code></li>"
        for each in report["refusals"]
    )
    rest = [
        [row["node"], row["target"], row["status"], row["detail"]] for row in report["nodes"] if row["status"] != "runs"
    ]
    text = f"<p>{sum(report['counts'].values())} nodes: {escape(counts)}.</p>"
    text += f"<p>Refused, and what to do:</p><ul>{refused}</ul>" if refused else "<p>Nothing was refused.</p>"
    text += f"<p>Converted:</p><ul>{notes}</ul>" if notes else ""
    shown = table(["node", "target", "became", "how"], rest)
    return text + f"<details><summary>nodes that are no operator of their own ({len(rest)})</summary>{shown}</details>"


def _place(source: dict[str, Any]) -> str:
    return f"{source['file']}:{source['line']}: " if source.get("file") else ""
