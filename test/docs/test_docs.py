# SPDX-License-Identifier: Apache-2.0
"""Every command in README.md and docs/ is run: `bash` blocks here, page by page; ./dev demo and ./dev test by CI.

Those of README.md start anew; `pumice` of other pages may be forked from a process with torch: support.fork_server."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support import command_line, fork_server

from pumice import ops  # noqa: F401 (fills the table of lowerings)
from pumice._pumice import op_table
from pumice.error_codes import CODES
from pumice.errors import from_native
from pumice.lowering import registry

pytestmark = pytest.mark.every  # each page

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BY_CI = {"./dev demo", "./dev test"}  # .ci/run calls both; running them from a test would never end


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    joined = "".join(blocks).replace("\\\n", " ")
    lines = [re.sub(r"\s+#.*$", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def quick_pumice(folder: Path) -> None:
    """A program `pumice` in `folder` that need not import torch."""
    call = [sys.executable, "-IS", fork_server.__file__, "call", command_line.server(), command_line.BIN / "pumice"]
    script = folder / "pumice"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, call))} "$@"\n')
    script.chmod(0o755)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
@pytest.mark.timeout(900)
def test_commands(page: Path, tmp_path: Path) -> None:
    environment = dict(os.environ)
    environment["PATH"] = f"{command_line.BIN}:{environment['PATH']}"
    if page.name != "README.md":
        quick_pumice(tmp_path)
        environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    environment.setdefault("PUMICE_DEVICE", "llvmpipe")
    environment["TMPDIR"] = str(tmp_path)
    script = "\n".join(["set -e", *(line for line in commands(page) if line not in BY_CI)])
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=880
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def test_ci_runs_the_two_readme_commands() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert all(command in script for command in BY_CI)


def test_every_python_block_runs(tmp_path: Path) -> None:
    blocks = []
    for page in PAGES:
        if any("```python" in line and page.name in line for line in commands(page)):  # runs as a program of the page
            continue
        found = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        blocks += [[page.name, block] for block in found]
    assert blocks
    command, environment = [sys.executable, Path(__file__).with_name("run_blocks.py")], dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), environment.get("PYTHONPATH", "")])
    said = json.dumps(blocks)
    done = subprocess.run(command, cwd=tmp_path, env=environment, input=said, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-6000:]}"


def test_the_operator_page_has_every_operator_and_every_lowering() -> None:
    page = (ROOT / "docs/ops.md").read_text(encoding="utf-8")  # ./dev build writes it
    accepted, runs = page.split("## What the runtime runs")
    names = {name for line in accepted.splitlines() for name in re.findall(r"`([^`]+)`", line) if line.startswith("|")}
    assert {str(target) for target in registry.targets()} <= names
    rows = {line.split("`")[1]: line for line in runs.splitlines() if line.startswith("| `")}
    assert sorted(rows) == sorted(name for name, *_ in op_table())
    for name, _, parameters, accepts in op_table():
        assert f"`{parameters}`" in rows[name] and all(
            value in rows[name] for what in ("tensors", "results", "scheme") for value in accepts.get(what, ())
        )


def test_the_operator_page_is_not_in_git() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    command = ["git", "ls-files", "--", "docs/ops.md"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""


def test_pages_that_are_written_from_the_code(tmp_path) -> None:
    names = ("devices.md", "errors.md", "limits.md", "python_api.md")
    for name in names:
        (tmp_path / name).write_bytes((ROOT / "docs" / name).read_bytes())
    subprocess.run([sys.executable, str(ROOT / "docs/generate_pages.py"), str(tmp_path)], check=True, timeout=120)
    for name in names:
        assert (tmp_path / name).read_text() == (ROOT / "docs" / name).read_text(), "run python docs/generate_pages.py"


def test_every_code_of_the_runtime_has_a_meaning_and_an_advice() -> None:
    text = (ROOT / "base/error.h").read_text(encoding="utf-8")
    numbers = dict(
        re.findall(r"^  (\w+) = (\d+),$", text[text.index("enum class Code") :].split("};")[0], re.MULTILINE)
    )
    assert {name: int(number) for name, number in numbers.items() if name != "Ok"} == {
        name: code.number for name, code in CODES.items() if code.number is not None
    }
    for name, code in CODES.items():
        assert code.means and code.do and not code.do.endswith("."), name
        group = code.number or 0
        error = type(from_native(group, name, "", "", "")).__name__
        assert code.error in (error, "UnsupportedError"), name


def test_the_page_of_environment_variables_has_all_of_them() -> None:
    read = re.compile(
        r"""(?:getenv|or_environment|append_line|environ(?:\.get)?|kVariable =)[^"'\n;]*?["'](PUMICE_\w+)"""
    )
    second = re.compile(r"""or_environment\([^;]*?"(PUMICE_\w+)""")
    found = set()
    for folder in (
        "base",
        "glsl",
        "vulkan",
        "graph",
        "ops",
        "runtime",
        "serialization",
        "tools",
        "python/pumice",
        "test",
    ):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".h", ".py"):
                text = path.read_text(encoding="utf-8")
                found |= set(read.findall(text)) | set(second.findall(text))
    page = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
    assert found == set(re.findall(r"^\| `(PUMICE_\w+)`", page, re.MULTILINE))


def test_links_of_the_pages_lead_to_files() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert re.match(r"[a-z]+://", target) or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_share_of_executorchs_tests_is_the_recorded_one() -> None:
    command = [sys.executable, "-m", "support.executorch_suite.share"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "test")}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    text = (ROOT / "docs/executorch.md").read_text(encoding="utf-8")
    assert printed in text, "put into docs/executorch.md what python -m support.executorch_suite.share prints"
