# SPDX-License-Identifier: Apache-2.0
"""`pip install .`: the wheel holds the package, the tool, the stubs and the backend, and runs without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(1500)
def test_wheel(tmp_path: Path) -> None:
    # Compiled as the release preset does, so that ccache has the objects.
    private = ROOT / "build/prefix/ccache/usr/bin/ccache"
    ccache = shutil.which("ccache") or (str(private) if private.exists() else "")
    defines = {"PUMICE_WERROR": "ON"}
    for language, compiler in ("C", os.environ.get("CC", "cc")), ("CXX", os.environ.get("CXX", "c++")):
        defines |= {f"CMAKE_{language}_COMPILER": compiler, f"CMAKE_{language}_COMPILER_LAUNCHER": ccache}
    settings = [f"--config-settings=cmake.define.{key}={value}" for key, value in defines.items() if value]
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [sys.executable, "-m", "pip", "-q"]
    build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", str(tmp_path), *settings, str(ROOT)]
    subprocess.run(build, check=True, env=environment, timeout=1400)
    (wheel,) = tmp_path.glob("pumice-*.whl")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)], check=True)
    assert {"py.typed", "_pumice.pyi"} <= {path.name for path in (site / "pumice").iterdir()}
    assert (site / "pumice/format/_schema.py").exists()
    facts = next(site.glob("pumice-*.dist-info/METADATA")).read_text(encoding="utf-8")
    for line in ("Description-Content-Type: text/markdown", "License-File: LICENSE", "Provides-Extra: export"):
        assert f"\n{line}\n" in facts
    assert "\nClassifier: Programming Language :: Python :: 3.11\n" in facts and "\n# Pumice\n" in facts
    assert next(site.glob("pumice-*.dist-info/licenses/third-party/README.md")).read_text() and "xxHash" in "".join(
        path.read_text() for path in site.glob("pumice-*.dist-info/licenses/third-party/*")
    )
    tool = next(path for path in site.rglob("pumice-rt") if path.is_file())
    assert subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    linked = subprocess.run(["ldd", tool], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in linked and "libvulkan" not in linked
    packages = sysconfig.get_paths()["purelib"]
    code = (
        f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT / 'python')!r}]\n"
        f"sys.path[:0] = [{str(site)!r}]; sys.path.append({packages!r})\n"
        "import pumice, pumice.runtime.selftest\n"
        f"assert pumice.__file__.startswith({str(site)!r}), pumice.__file__\n"
        "print(pumice.runtime.selftest.self_test('llvmpipe'))\n"
        "import pumice.executorch, executorch.runtime as et\n"
        "print('PumiceBackend' in et.Runtime.get().backend_registry.registered_backend_names)\n"
    )
    drivers = {
        "PUMICE_VULKAN_LOADER": str(ROOT / "build/prefix/drv/libvulkan.so.1"),
        "VK_DRIVER_FILES": str(ROOT / "build/prefix/drv/lvp_icd.json"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **drivers}, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0 and "is right" in done.stdout and "True" in done.stdout, done.stderr
