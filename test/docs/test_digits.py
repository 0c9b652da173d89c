# SPDX-License-Identifier: Apache-2.0
"""`./dev demo vision` and the notebook beside it: both are run, and what they write is looked at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import digits
import pytest

import pumice

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_the_demo_reads_digits_and_draws_them(tmp_path) -> None:
    head, *rows = digits.run(tmp_path)
    assert all(len(row) == len(head) for row in rows)
    reads = [int(row[2].split(" of ")[0]) for row in rows if " of " in row[2]]
    assert len(reads) == 4 and reads[1] == reads[2] > 0.9 * 599 and reads[3] == 599
    operators = [op["name"] for op in pumice.inspect(tmp_path / "digits.pumice")["methods"][0]["ops"]]
    assert operators.count("quantize") == operators.count("dequantize") == 1 and "q8ta_conv2d" in operators
    page = (tmp_path / "digits.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]{0,40})', page)
    assert len(sources) == 2 and all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert all(cell in page for row in rows for cell in row)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook) -> None:
    """Its cells, one after another, as a notebook without magics; the pictures go nowhere."""
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells and not any(cell["outputs"] or cell["execution_count"] for cell in cells), "clear its outputs"
    end = "assert len(pyplot.get_fignums()) == 2 and all(pyplot.figure(n).axes for n in pyplot.get_fignums())"
    code = "\n\n".join(["".join(cell["source"]) for cell in cells] + [end])
    environment = os.environ | {"MPLBACKEND": "agg"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=notebook.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
