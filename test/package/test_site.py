# SPDX-License-Identifier: Apache-2.0
"""`./dev site`: every page is in it, it asks nothing of the network, and a link that leads nowhere is an error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.command_line import ROOT


@pytest.fixture(scope="module")
def site() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup import site

        yield site
    finally:
        sys.path.pop(0)


def test_every_page_is_there_and_asks_nothing_of_the_network(site, tmp_path) -> None:
    assert site.make(tmp_path / "site") == tmp_path / "site/index.html"
    pages = [path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]]
    for page in pages:
        html = page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")
        text = (tmp_path / "site" / html).read_text()
        assert text.count("</h1>") == 1
        assert not re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(?:https?:)?//', text), html
    assert (tmp_path / "site/docs/report.png").stat().st_size > 10_000
    assert "Vulkan" in (tmp_path / "site/search/search_index.json").read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gone](docs/gone.md)", "links to docs/gone.md, which is no file"),
        ("[out](../../etc/passwd)", "no file of the checkout"),
        ("[tour](docs/tour.md#no-such-part)", "no-such-part"),
    ],
)
def test_a_link_that_leads_nowhere_is_an_error(site, tmp_path, monkeypatch, text: str, told: str) -> None:
    from setup.progress import StepFailed

    collect = site.collect

    def with_a_dead_link(place: Path = site.PAGES) -> None:
        collect(place)
        page = place / "CHANGELOG.md"
        page.write_text(f"{page.read_text()}\n{text}\n")

    if "#" in text:
        monkeypatch.setattr(site, "collect", with_a_dead_link)
        with pytest.raises(StepFailed, match=told):
            site.make(tmp_path / "site")
        return
    (tmp_path / "docs").mkdir()
    (tmp_path / "third-party").mkdir()
    (tmp_path / "third-party/README.md").write_text("# Third party\n")
    (tmp_path / "README.md").write_text(text)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    with pytest.raises(StepFailed, match=told):
        site.collect(tmp_path / "pages")
