# SPDX-License-Identifier: Apache-2.0
"""`pumice report`, `inspect --graph`: the page is whole and asks for nothing; what it shows is what the file has."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
import torch
from support.command_line import BIN, run
from torch import nn

import pumice
from pumice.cli.report_page import exported, layer_tree
from pumice.cli.report_pictures import lives

VOID = {"meta", "br"}


class Net(nn.Module):
    """Two layers within a block, a norm outside of it, and a table whose name needs escaping."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.norm = nn.LayerNorm(16)
        self.register_buffer("a<b>&c", torch.arange(16.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.block(x)) * getattr(self, "a<b>&c")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    rows = torch.export.Dim("rows", min=1, max=8)
    program = pumice.export(Net().eval(), (torch.randn(4, 16),), dynamic_shapes={"x": {0: rows}})
    program.save(folder / "net.pumice")
    (folder / "export.json").write_text(program.report.to_json())
    return folder / "net.pumice"


class Page(HTMLParser):
    """Checks that every element is closed in its turn; collects texts outside of pictures, and what is asked for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.words, self.asked, self.pictures = list[str](), list[str](), list[str](), 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_startendtag(self, tag, attrs) -> None:
        self.asked += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value[:1] != "#"]

    def handle_starttag(self, tag, attrs) -> None:
        self.handle_startendtag(tag, attrs)
        assert tag not in ("script", "link", "img", "iframe", "b>")
        self.pictures += tag == "svg"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if "svg" not in self.open:
            self.words.append(data.strip())


def test_a_page_without_a_device(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.html"
    run(BIN / "pumice", "report", model, "-o", out, "--export-report", model.with_name("export.json"))
    text = out.read_text(encoding="utf-8")
    page = Page(text)
    assert page.asked == [] and not re.search(r"url\((?!#)|@import", text) and page.pictures == 1
    assert {"block", "0", "2", "norm", "a<b>&c", "block.0.weight", "rows in 1..8, at export 4"} <= set(page.words)
    assert {"precision", "split"} <= set(page.words)
    assert "Nothing was refused." in page.words and "aten.linear.default" in page.words


def test_a_page_of_a_run(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.html"
    run(BIN / "pumice", "report", model, "-o", out, "--profile", "-r", "1", "--device", "llvmpipe", "--size", "rows=3")
    page = Page(out.read_text(encoding="utf-8"))
    assert page.asked == [] and page.pictures == 3
    assert any(word.startswith("linear_") for word in page.words)
    assert "Roofline" in page.words and any("llvmpipe" in word and "dispatches" in word for word in page.words)
    assert any("precision split, 0 of them products by split operands" in word for word in page.words)


def test_values_that_live_together_do_not_share_memory(model: Path) -> None:
    method = pumice.inspect(model)["methods"][0]
    boxes = lives(method)
    assert len(boxes) >= 4
    for a, b in combinations(boxes, 2):
        together = a[0] <= b[1] and b[0] <= a[1]
        assert not together or a[2] + a[3] <= b[2] or b[2] + b[3] <= a[2], (a, b)
    assert max(box[2] + box[3] for box in boxes) <= method["plan"]["arena_bytes"]


def test_the_layers_have_all_calls_weights_and_times(model: Path) -> None:
    method = pumice.inspect(model)["methods"][0]
    with pumice.load(model, device="llvmpipe") as session:
        rows = session.profile(torch.randn(2, 16))
    tree = layer_tree(method, rows)
    assert set(tree.parts) == {"block", "norm"} and "2" in tree.parts["block"].parts
    weights = sum(value["bytes"] for value in method["plan"]["values"] if value["kind"] == "constant")
    assert tree.total("bytes") == weights and tree.parts["block"].total("bytes") >= 4 * (16 * 32 * 2)
    assert tree.total("us") == pytest.approx(sum(row.microseconds for row in rows if row.call >= 0))


def test_a_refusal_says_what_to_do() -> None:
    class Bad(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nonzero(x)

    with pytest.raises(pumice.UnsupportedError) as error:
        pumice.export(Bad(), (torch.ones(3),))
    refusals = [
        {
            "source": {"file": "m.py", "line": 3, "code": "nonzero(<x>)"},
            "target": reason.target,
            "reason": reason.reason,
        }
        for reason in error.value.reasons
    ]
    text = exported({"counts": {"refused": 1}, "notes": [], "refusals": refusals, "nodes": []})
    assert "return the mask or the scores" in text and "m.py:3" in text and "nonzero(&lt;x&gt;)" in text


def test_a_file_that_is_no_report(model: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[1]")
    done = run(BIN / "pumice", "report", model, "--export-report", tmp_path / "other.json", code=2)
    assert "pumice export --report" in done.stderr


def test_a_graph_for_model_explorer(model: Path, tmp_path: Path) -> None:
    run(BIN / "pumice", "inspect", model, "--graph", tmp_path / "g.json")
    facts = json.loads((tmp_path / "g.json").read_text())
    (graph,) = facts["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert facts["label"] == "net.pumice" and len(nodes) == len(graph["nodes"])
    calls = pumice.inspect(model)["methods"][0]["ops"]
    assert [node["label"] for name, node in nodes.items() if name.startswith("call")] == [op["name"] for op in calls]
    assert {node["namespace"] for node in nodes.values()} >= {"", "block/2", "norm"}
    edges = [edge for node in nodes.values() for edge in node.get("incomingEdges", [])]
    for edge in edges:
        source = nodes[edge["sourceNodeId"]]
        assert int(edge["sourceNodeOutputId"]) < len(source.get("outputsMetadata", [0]))
    assert sum(edge["sourceNodeId"].startswith("input") for edge in edges) == 2  # the linear and the sum read x
    (output,) = (node for name, node in nodes.items() if name.startswith("output"))
    assert len(output["incomingEdges"]) == 1
