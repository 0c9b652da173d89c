# SPDX-License-Identifier: Apache-2.0
"""Report, trace, graph and site in a real browser: what they name is drawn, and nothing goes wrong."""

from __future__ import annotations

import json
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import ROOT
from support.watched_page import served


def test_the_report(opened, files: Path) -> None:
    seen = opened(f"file://{files}/report.html", 1000, 720)
    page = seen.page
    for heading in ("The file", "Layers", "Time", "Roofline", "Memory over time", "Weights"):
        assert page.get_by_role("heading", name=heading, exact=True).is_visible()
    boxes = [drawing.bounding_box() for drawing in page.locator("svg").all()]
    assert len(boxes) == 3 and all(box["width"] > 300 and box["height"] > 100 for box in boxes)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing is to be scrolled sideways
    outer, inner = (page.locator("summary", has_text=name).first for name in ("encoder", "self_attn"))
    assert outer.is_visible() and not inner.is_visible()
    names = ("encoder", "layers", "0")
    layers = [page.locator("summary", has=page.get_by_text(name, exact=True)).first for name in names]
    for layer in layers:
        layer.click()
    assert inner.is_visible()
    layers[0].click()
    for heading, name in {"Layers": "report.png", "Roofline": "roofline.png"}.items():
        page.get_by_role("heading", name=heading, exact=True).evaluate("each => scrollTo(0, each.offsetTop - 20)")
        seen.picture(name)
    assert seen.errors == [] and seen.asked == []


def test_the_trace_in_perfetto(opened, files: Path) -> None:
    events = json.loads((files / "trace.json").read_text())["traceEvents"]
    linears = [event for event in events if event["ph"] == "X" and "linear" in event["name"]]
    assert len(linears) > 5
    with served("viztracer.viewer", "--server_only", "--port", "{port}", files / "trace.json") as address:
        seen = opened(address, 1200, 700)
        page = seen.page
        for track in ("layers", "dispatches", "copies"):
            page.get_by_text(track).first.wait_for()
        search = page.get_by_placeholder("Search or type")
        search.fill("linear")
        search.press("Enter")
        page.get_by_text(f"1 / {len(linears)}", exact=True).wait_for()
        page.get_by_text("encoder.layers.0.self_attn", exact=True).first.wait_for()  # the layer, in the slice's details
        seen.picture("trace.png")


def test_the_graph_in_model_explorer(opened, files: Path) -> None:
    graph = json.loads((files / "graph.json").read_text())["graphs"][0]
    with served("model_explorer", "--no_open_in_browser", "--port", "{port}", files / "graph.json") as address:
        models = json.dumps({"models": [{"url": str(files / "graph.json")}]})
        seen = opened(f"{address}/?data={urllib.parse.quote(models)}", 1100, 700)
        page = seen.page
        page.get_by_text(f"{len(graph['nodes'])} nodes").first.wait_for()
        page.get_by_placeholder("Search nodes").fill("softmax")  # what it names and what leads to and from it
        page.get_by_text("3 results").wait_for()
        page.wait_for_timeout(1500)  # the view moves to what was found
        drawing = seen.picture("graph.png")
        shades = {colour for _, colour in drawing.convert("RGB").crop((250, 350, 500, 690)).getcolors()}
        assert (255, 255, 255) in shades and any(red > 230 and blue < 120 for red, _, blue in shades)  # yellow: found


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """Its address: pages of a file may not search."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup import site

        first = site.make(tmp_path_factory.mktemp("site"))
    finally:
        sys.path.pop(0)
    with served("http.server", "--bind", "127.0.0.1", "-d", first.parent, "{port}") as address:
        yield address


def test_the_site(opened, site: str) -> None:
    seen = opened(site, 1200, 900)
    page = seen.page
    assert page.locator("h1").inner_text().startswith("Pumice")
    drawn = page.evaluate("[...document.images].map(each => [each.src, each.complete && each.naturalWidth])")
    assert drawn and all(width > 100 for _, width in drawn), drawn
    seen.picture("site.png")
    page.keyboard.press("/")
    page.keyboard.type("cooperative")
    page.locator(".md-search-result__item").first.wait_for()
    assert seen.errors == [] and seen.asked == []
