# SPDX-License-Identifier: Apache-2.0
"""`./dev site`: the pages of the checkout as HTML, by MkDocs (docs/mkdocs.yml)."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from setup import suite
from setup.paths import BUILD, LOGS, PYTHON, ROOT, environment
from setup.progress import StepFailed, run, show

PAGES = BUILD / "site-pages"
SITE = BUILD / "site"
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


def collect(place: Path = PAGES) -> None:
    """Copies every page and every file that a page links to into `place`, where the checkout has it: relative links
    stay as they are. Raises StepFailed where a link leads to no file."""
    shutil.rmtree(place, ignore_errors=True)
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "third-party/README.md"]
    for page in pages:
        _copy(page, place)
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            linked = Path(os.path.normpath(page.parent / target))
            if not linked.is_file() or not linked.is_relative_to(ROOT):
                raise StepFailed(f"{page.relative_to(ROOT)} links to {target}, which is no file of the checkout")
            _copy(linked, place)


def _copy(file: Path, place: Path) -> None:
    target = place / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def make(out: Path = SITE) -> Path:
    """Writes the site into the folder `out`; returns its first page. Raises StepFailed with MkDocs' own words where a
    link leads nowhere or a page is not in `nav`."""
    packages = suite.site()
    collect()
    # Not --quiet: what is not said is no warning to --strict.
    command = [PYTHON, "-m", "mkdocs", "build", "--strict", "-f", ROOT / "docs/mkdocs.yml", "-d", out]
    run(command, log=LOGS / "site.log", env=environment(PYTHONPATH=str(packages), NO_MKDOCS_2_WARNING="1"))
    return out / "index.html"


def serve(out: Path, port: int) -> int:
    """Shows the site at 127.0.0.1 until Ctrl-C: browsers let no page of a file search."""
    return show([PYTHON, "-m", "http.server", "--bind", "127.0.0.1", "-d", out, port], check=False)
