# SPDX-License-Identifier: Apache-2.0
"""backend="pumice" is found by its name: by an installed package's entry point, and after an import in a checkout."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, torch
{before}
assert "pumice" in torch._dynamo.list_backends()
compiled = torch.compile(lambda x: x * 2 + 1, backend="pumice")
assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
import pumice.dynamo
assert pumice.dynamo.report().all_on_device, str(pumice.dynamo.report())
"""


def installed(folder: Path) -> Path:
    """A folder with what an installed package says of its entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"pumice-{project['version']}.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: pumice\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    text = "".join(f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in names.items()) for group, names in groups)
    info.joinpath("entry_points.txt").write_text(text)
    return folder


IMPORTS = ("import pumice.dynamo", "import pumice; pumice.compile")


@pytest.mark.parametrize(
    ("before", "by_entry_point"), [("", True), *((line, known) for line in IMPORTS for known in (True, False))]
)
def test_the_backend_has_its_name(tmp_path, before, by_entry_point) -> None:
    path = f"import sys; sys.path.append({str(installed(tmp_path))!r})\n" if by_entry_point else ""
    code = path + PROGRAM.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_names_of_the_module() -> None:
    code = "import pumice.dynamo as d; assert all(hasattr(d, n) for n in d.__all__) and set(d.__all__) <= set(dir(d))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
