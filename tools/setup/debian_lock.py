# SPDX-License-Identifier: Apache-2.0
"""third-party/debian.lock: version and SHA-256 of every Debian package that set-up unpacks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from setup.progress import StepFailed

FILE = Path(__file__).resolve().parents[2] / "third-party/debian.lock"
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by `./dev setup --update`: a set's part (tools/setup/recipes.py), the machine, package, version, SHA-256.
"""


class Package(NamedTuple):
    """One Debian package as an archive's signed lists describe it, or as the lock does."""

    name: str
    version: str
    sha256: str


class DebianLock:
    """The file's content: {(part, machine): its packages}. A part is SET-NUMBER, a machine Debian's name of one."""

    def __init__(self, path: Path = FILE):
        self.path = path
        self.parts: dict[tuple[str, str], dict[str, Package]] = {}
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            if not line.startswith("#"):
                try:
                    part, machine, *package = line.split()
                    self.parts.setdefault((part, machine), {})[package[0]] = Package(*package)
                except (ValueError, TypeError, IndexError) as error:
                    raise StepFailed(f"{path.name}:{number}: five words are needed, this has {line!r}") from error

    def pins(self, part: str, machine: str) -> list[str]:
        """apt preferences that prefer the locked versions to every suite's: they count only where apt finds them."""
        packages = self.parts.get((part, machine), {}).values()
        return [f"Package: {each.name}\nPin: version {each.version}\nPin-Priority: 1001\n" for each in packages]

    def differences(self, part: str, machine: str, offered: Iterable[Package]) -> list[str]:
        """A sentence for each package of another version than the lock's. Raises StepFailed where the version is the
        same and the hash is not."""
        sentences, packages = [], self.parts.get((part, machine), {})
        for each in offered:
            known = packages.get(each.name)
            if known is None:
                sentences.append(
                    f"{each.name}: {self.path.name} names none for {part}, the archive offers {each.version}"
                )
            elif known.version != each.version:
                sentences.append(
                    f"{each.name}: {self.path.name} names {known.version}, the archive offers {each.version}"
                )
            elif known.sha256 != each.sha256:
                raise StepFailed(
                    f"{each.name} {each.version} is not the package that {self.path.name} names: its SHA-256 is"
                    f" {each.sha256}, the lock's is {known.sha256}; it was not downloaded"
                )
        return sentences

    def digest(self, parts: Iterable[str], machine: str) -> str:
        """Changes when the lock of one of the parts does, for this machine or of its sources."""
        text = [
            sorted(package for of in (machine, "source") for package in self.parts.get((part, of), {}).values())
            for part in parts
        ]
        return hashlib.sha256(repr(text).encode()).hexdigest()

    def replace(self, part: str, machine: str, packages: Iterable[Package]) -> list[str]:
        """Put these packages in the place of the part's; returns a sentence for each that changed."""
        old, new = self.parts.get((part, machine), {}), {each.name: each for each in packages}
        self.parts[part, machine] = new
        changed = [(old[name], new[name]) for name in new if name in old and old[name] != new[name]]
        return [f"{part}: {was.name} {was.version} becomes {now.version}, {now.sha256}" for was, now in changed]

    def write(self) -> None:
        rows = [(*key, *each) for key, packages in self.parts.items() for each in packages.values()]
        self.path.write_text(HEAD + "".join(" ".join(row) + "\n" for row in sorted(rows)))
