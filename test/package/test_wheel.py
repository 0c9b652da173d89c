# SPDX-License-Identifier: Apache-2.0
"""`./dev wheel`: the wheel and the source distribution run in an empty environment."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

import pumice

ROOT = Path(__file__).parents[2]
DRIVER = {
    "PUMICE_VULKAN_LOADER": str(ROOT / "build/prefix/drv/libvulkan.so.1"),
    "VK_DRIVER_FILES": str(ROOT / "build/prefix/drv/lvp_icd.json"),
}
CLEAN = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **DRIVER}
ANSWER = """
import pumice, pumice.runtime.selftest
print(pumice.__file__)
print(pumice.runtime.selftest.self_test("llvmpipe"))
try:
    pumice.export
except pumice.Error as error:
    print(error)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with both. Compiled as the release preset does, so that ccache has the objects."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, ROOT / "dev", "wheel", "--out", folder], check=True, timeout=1400)
    return folder


def _environment(folder: Path) -> Path:
    """A virtual environment that has what the wheel names as needed, and nothing else; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    waiting, seen = ["numpy", "click", "rich", "flatbuffers", "xxhash"], set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            found = importlib.metadata.distribution(name)
            for top in {str(path).split("/")[0] for path in found.files if not str(path).startswith("..")}:
                (site / top).symlink_to(Path(found.locate_file(top)))
            needed = [each for each in found.requires or [] if ";" not in each]
            waiting += [re.match(r"[\w.-]+", each)[0] for each in needed]
    return folder / "bin/python"


@pytest.mark.timeout(1500)
def test_the_wheel_in_an_empty_environment(made: Path, tmp_path: Path) -> None:
    (wheel,) = made.glob("pumice-*.whl")
    assert re.search(r"-manylinux_2_\d+_x86_64\.whl$|-manylinux_2_\d+_aarch64\.whl$", wheel.name)
    assert wheel.stat().st_size < 16e6
    python = _environment(tmp_path / "empty")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    site = next((tmp_path / "empty").glob("lib/python3*/site-packages"))
    assert {"py.typed", "_pumice.pyi"} <= {path.name for path in (site / "pumice").iterdir()}
    facts = next(site.glob("pumice-*.dist-info/METADATA")).read_text(encoding="utf-8")
    for line in ("Description-Content-Type: text/markdown", "License-File: LICENSE", "Provides-Extra: export"):
        assert f"\n{line}\n" in facts
    assert "\nClassifier: Programming Language :: Python :: 3.11\n" in facts and "\n# Pumice\n" in facts
    assert "xxHash" in next(site.glob("pumice-*.dist-info/licenses/third-party/README.md")).read_text()

    done = subprocess.run([python, "-c", ANSWER], env=CLEAN, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place, test, error = done.stdout.splitlines()
    assert place.startswith(str(site)) and "is right" in test
    assert "pip install 'pumice[export]'" in error
    for tool in ("pumice", "pumice-rt"):
        shown = subprocess.run(
            [python.parent / tool, "--version"], env=CLEAN, capture_output=True, text=True, check=True
        )
        assert pumice.__version__ in shown.stdout
    linked = subprocess.run(["ldd", python.parent / "pumice-rt"], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in linked and "libvulkan" not in linked
    code = (
        f"import sys; sys.path[:0] = [{str(site)!r}]; sys.path.append({sysconfig.get_paths()['purelib']!r})\n"
        f"sys.path = [p for p in sys.path if p != {str(ROOT / 'python')!r}]\n"
        "import pumice.executorch, executorch.runtime as et\n"
        f"assert pumice.__file__.startswith({str(site)!r}), pumice.__file__\n"
        "print('PumiceBackend' in et.Runtime.get().backend_registry.registered_backend_names)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "True" in done.stdout, done.stderr


@pytest.mark.timeout(3000)
def test_the_source_distribution_installs_and_runs(made: Path, tmp_path: Path, monkeypatch) -> None:
    """By pip alone, where neither headers nor shader compilers are to be found. Its sources are those of the wheel, so
    ccache has their objects."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    from setup.building import launchers
    from setup.paths import environment
    from setup.wheel import of_release

    (source,) = made.glob("pumice-*.tar.gz")
    with tarfile.open(source) as file:
        assert not [name for name in file.getnames() if "/build/" in name or "/.venv/" in name]
    python = _environment(tmp_path / "empty")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", tmp_path, source]
    (tmp_path / "t").mkdir()
    kept = {name: value for name, value in environment().items() if name.startswith(("CCACHE_", "LANG", "LC_"))}
    more = {
        "PATH": f"{Path(sys.executable).parent}:{CLEAN['PATH']}",
        "CMAKE_ARGS": " ".join([*of_release(), *launchers()]),
        "CCACHE_BASEDIR": str(tmp_path),
        "TMPDIR": str(tmp_path / "t"),
    }
    subprocess.run(build, check=True, env=CLEAN | kept | more, timeout=2400)
    install = [*pip, "--python", python, "install", "--no-deps", "--no-index", next(tmp_path.glob("pumice-*.whl"))]
    subprocess.run(install, check=True)
    code = "import pumice.runtime.selftest as s; print(s.self_test('llvmpipe'))"
    done = subprocess.run([python, "-c", code], env=CLEAN, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "is right" in done.stdout
