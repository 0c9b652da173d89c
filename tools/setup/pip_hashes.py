# SPDX-License-Identifier: Apache-2.0
"""The --hash lines of requirements files, from pip's own report of which file it would install."""

from __future__ import annotations

import json
import platform
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from setup.paths import PYTHON
from setup.progress import StepFailed, run

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64",)
NEWEST_GLIBC, OLDEST_GLIBC = 36, 5  # manylinux_2_N: what Debian 12 runs; newer systems run it, too
REQUIREMENT = re.compile(
    r"^(?P<pin>(?P<name>[A-Za-z0-9][\w.-]*)==[^\s;\\]+)"
    r"(?P<marker>; platform_machine (?P<sign>[!=]=) \"(?P<machine>\w+)\")?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})*)$",
    re.MULTILINE,
)


def one(name: str, text: str) -> str:
    """The requirement of one package, with its hashes, from a requirements file's text."""
    return next(match[0] for match in REQUIREMENT.finditer(text) if match["name"] == name)


def refresh(path: Path, say: Callable[[str], None], log: Path) -> None:
    """Rewrite the hashes of a requirements file: the file that pip takes for each Python and machine.

    Where the indexes of this machine lack a build, `say` is told, and the requirement keeps its old hashes too if pip
    still finds one of their files: then the version is the old one.
    """
    text = path.read_text()
    requirements = list(REQUIREMENT.finditer(text))
    found: dict[str, set[str]] = {match["pin"]: set() for match in requirements}
    lacking: set[str] = set()
    everywhere: set[str] = set()  # files for any Python and machine: one look is enough
    machines = dict.fromkeys((*MACHINES, platform.machine()))
    for machine, python in ((machine, python) for machine in machines for python in PYTHONS):
        pins = [match["pin"] for match in requirements if _holds(match, machine) and match["pin"] not in everywhere]
        report, missing = _report(pins, python, machine, log)
        for pin, (address, sha256) in report.items():
            found[pin].add(sha256)
            if address.endswith(("-none-any.whl", ".tar.gz", ".zip")):
                everywhere.add(pin)
        for pin in missing:
            say(f"pip's indexes have no {pin} for Python {python} on {machine}")
            lacking.add(pin)

    def rewritten(match: re.Match) -> str:
        old = set(re.findall("[0-9a-f]{64}", match["hashes"]))
        new = found[match["pin"]]
        if not new or (match["pin"] in lacking and old & new):
            new |= old
        hashes = "".join(f" \\\n    --hash=sha256:{each}" for each in sorted(new))
        return match["pin"] + (match["marker"] or "") + hashes

    path.write_text(REQUIREMENT.sub(rewritten, text))


def _holds(match: re.Match, machine: str) -> bool:
    return not match["marker"] or (machine == match["machine"]) == (match["sign"] == "==")


def _report(pins: list[str], python: str, machine: str, log: Path) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """{pin: (address, SHA-256) of the file that pip takes}, and the pins for which it finds none."""
    pins, missing = list(pins), []
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)]
    tags += [f"manylinux2014_{machine}", f"linux_{machine}"]
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "report.json"
        command = [PYTHON, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--report", result]
        command += ["--progress-bar", "off", "--target", scratch, "--python-version", python]
        command += [word for tag in tags for word in ("--platform", tag)]
        while pins:
            try:
                run([*command, *pins], log=log)
                break
            except StepFailed as error:
                absent = re.search(r"No matching distribution found for (\S+)", str(error))
                if not absent or absent[1] not in pins:
                    raise
                pins.remove(absent[1])
                missing.append(absent[1])
        installs = json.loads(result.read_text())["install"] if pins else []
    by_name = {_normal(each["metadata"]["name"]): each["download_info"] for each in installs}
    files = {pin: by_name[_normal(pin.split("==")[0])] for pin in pins}
    return {pin: (info["url"], _sha256(info["archive_info"])) for pin, info in files.items()}, missing


def _sha256(archive: dict) -> str:
    """From pip's report: pip before 23.1, which Debian 12 has, knows no "hashes"."""
    return archive["hashes"]["sha256"] if "hashes" in archive else archive["hash"].removeprefix("sha256=")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
