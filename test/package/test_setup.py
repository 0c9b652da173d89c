# SPDX-License-Identifier: Apache-2.0
"""./dev setup where pip's sources lack PyTorch's CPU build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL = """
import sys
from pathlib import Path
sys.path.insert(0, "tools")
from setup import install
from setup.progress import Progress, StepFailed
install.PYTHON, install._drop_half_installed = Path(sys.executable), lambda: None
install.STAMP = Path(sys.argv[1]).with_name("stamp")
try:
    install._install_packages(Progress("setup"), Path(sys.argv[1]))
except StepFailed as error:
    sys.exit(f"dev: {error}")
"""


@pytest.mark.parametrize("source", ["no index", "an index without it"])
def test_without_pytorch_it_says_what_to_set(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "site"))  # as if nothing were installed
    if source == "no index":
        monkeypatch.setenv("PIP_NO_INDEX", "1")
    else:  # it has a wheel of the name, but the default build, which needs CUDA
        simple = tmp_path / "simple/torch"
        simple.mkdir(parents=True)
        wheel = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"
        (simple / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>')
        monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    done = subprocess.run(
        [sys.executable, "-c", INSTALL, tmp_path / "log"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.startswith("dev: PyTorch's CPU build, torch==2"), done.stderr
    assert ", was not found" in done.stderr
    assert "PIP_EXTRA_INDEX_URL=" in done.stderr and "PIP_FIND_LINKS=" in done.stderr
    assert not (tmp_path / "site").exists()


def test_an_interpreter_by_another_name_is_the_same(tmp_path: Path) -> None:
    """Else `./dev`, called by the system's name for it and by the environment's, would set up and build all anew."""
    other = tmp_path / "python3"
    other.symlink_to(Path(sys._base_executable).resolve())
    ask = 'import sys; sys.path.insert(0, "tools"); from setup import install; print(install._recipe())'
    recipes = {
        subprocess.run([python, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for python in (sys.executable, other)
    }
    assert len(recipes) == 1
