# SPDX-License-Identifier: Apache-2.0
"""apt as the client of a Debian archive, without root: lists, plans and packages in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from setup.debian_lock import DebianLock, Package
from setup.progress import Progress, StepFailed, folder_bytes, megabytes, reap, run, spawn
from setup.recipes import Part

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TRUST = f"signed-by={KEYRING}"
STALE = """\
The mirror's lists of {suites} are past the date until which Debian calls them valid, so only what the lock names is
taken. PUMICE_DEBIAN_MIRROR names another mirror; where yours stands still on purpose, say so to apt: set
Acquire::Check-Valid-Until "false" in its configuration."""


class Unsuited(StepFailed):
    """A set that this system or today's archive cannot have, however often it is tried."""


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


class Apt:
    """apt's private files while sets are being made. With `strict`, only packages that the lock names are taken."""

    def __init__(self, folder: Path, progress: Progress, log: Path, lock: DebianLock, strict: bool = False):
        self.folder, self.progress, self.log, self.lock, self.strict = folder, progress, log, lock, strict
        self.differing = 0  # packages taken that the lock does not name
        self.expired: set[str] = set()  # suites whose lists are older than their Release file allows
        self.listed: set[tuple[str, str]] = set()
        self._address = ""

    def tidy(self) -> None:
        """Drop everything: a later set fetches the lists anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.listed.clear()

    def packages(self, label: str, part: Part, arch: str, debs: Path) -> list[str]:
        """Download the packages of a part into `debs`: NAME=VERSION of each. What the lock names is preferred; another
        version is taken, and said, unless `strict` or a suite's age forbids it."""
        environment = self._environment(label, part, part.suites, arch, self.lock.pins(label, arch))
        try:
            plan = self._plan(part, environment)
        except Unsuited:  # a suite has moved, and its new packages ask for more than a version that the lock names
            environment = self._environment(label, part, part.suites, arch)
            plan = self._plan(part, environment)
        differences = self.lock.differences(label, arch, self._described(part, plan, environment))
        old = sorted(self.expired.intersection(part.suites))
        if differences and self.strict:
            raise StepFailed("\n".join([*differences, "--locked was given: only what the lock names is taken"]))
        if differences and old:
            raise StepFailed("\n".join([*differences, STALE.format(suites=", ".join(old))]))
        for sentence in differences:
            self.progress.say(f"{sentence} and is taken")
        self.differing += len(differences)
        run([*fetching(part), *plan], log=self.log, env=environment, cwd=debs)
        return plan

    def present(self, label: str, part: Part, arch: str) -> list[Package]:
        """What the archive would give today for a part, whatever the lock says; nothing is downloaded."""
        if old := sorted(self.expired.intersection(part.suites)):
            raise StepFailed(STALE.format(suites=", ".join(old)))
        environment = self._environment(label, part, part.suites, arch)
        return self._described(part, self._plan(part, environment), environment)

    def _described(self, part: Part, plan: list[str], environment: dict[str, str]) -> list[Package]:
        """The plan's packages with the hashes of the signed lists, which apt compares with what it downloads."""
        command = [*fetching(part), "--print-uris", "-o", "Acquire::ForceHash=sha256", *plan]
        text = run(command, log=self.log, env=environment)
        end = r"\.orig\.tar\.\w+" if part.source else r"_\S+"
        found = re.findall(rf"^'\S+' ([^_\s]+)_([^_\s]+){end} \d+ SHA256:([0-9a-f]{{64}})$", text, re.MULTILINE)
        packages = [Package(name, version.replace("%3a", ":"), sha256) for name, version, sha256 in found]
        named = {each.name if part.source else f"{each.name}={each.version}" for each in packages}
        if lacking := [each for each in plan if re.sub(r":\w+=", "=", each) not in named]:
            raise StepFailed(f"apt names no SHA-256 for {', '.join(lacking)}")
        return packages

    def _environment(
        self, label: str, part: Part | None, suites: tuple[str, ...], arch: str, locked: list[str] = ()
    ) -> dict[str, str]:
        """Write the private apt configuration of one part and return the environment that selects it."""
        folder = self.folder / label
        for sub in ("etc/none", "state", "cache/archives/partial", "log"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
        (self.folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        if not self._address:
            self._address = archive_address()
        kind = f"deb-src [{TRUST}]" if arch == "source" else f"deb [arch={arch} {TRUST}]"
        lines = [f"{kind} {self._address} {suite} main\n" for suite in suites]
        (folder / "etc/sources.list").write_text("".join(lines))
        pins, status = list(locked), []
        if part:
            for rank, suite in enumerate(suites):
                pins.append(f"Package: *\nPin: release n={suite}\nPin-Priority: {990 - 10 * rank}\n")
            for package in part.present:
                status.append(
                    f"Package: {package}\nStatus: install ok installed\nArchitecture: {arch}\nMulti-Arch: same\n"
                    "Version: 9999:1\nMaintainer: the system\nDescription: the system's own\n"
                )
        (folder / "etc/preferences").write_text("\n".join(pins))
        (folder / "state/status").write_text("\n".join(status))
        settings = {
            "APT::Architecture": arch,
            "APT::Architectures": arch,
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
            "Dir::State::lists": f"{self.folder}/lists",
            "Dir::Cache": f"{folder}/cache",
            "Dir::Log": f"{folder}/log",
        }
        dump = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False).stdout
        text = "".join(f'{key} "{value}";\n' for key, value in settings.items() if value)
        # Proxies and the like are the machine's business: keep them. So is whether its archive stands still: then
        # the lists' dates say nothing.
        machine_settings = re.compile(r"Acquire::(https?|ForceIPv[46]|Check-Valid-Until|Check-Date)\b")
        text += "".join(f"{line}\n" for line in dump.splitlines() if machine_settings.match(line))
        config = folder / "apt.conf"
        config.write_text(text)
        return {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}

    def lists(self, suites: set[str], arch: str) -> None:
        """Fetch the package lists of suites that this run has not fetched yet."""
        wanted = tuple(sorted(suite for suite in suites if (suite, arch) not in self.listed))
        if not wanted:
            return
        if not KEYRING.exists():
            raise StepFailed(f"{KEYRING} is missing: install Debian's debian-archive-keyring")
        folder = self.folder / "lists"

        def note() -> str:
            return megabytes(folder_bytes(folder) + folder_bytes(folder / "partial"))

        with self.progress.step("package lists", note):
            environment = self._environment("update", None, wanted, arch)
            # --error-on=any: by itself apt calls an unreachable archive a warning.
            command = ["apt-get", "-q", "update", "--error-on=any"]
            try:
                run(command, log=self.log, env=environment)
            except StepFailed as error:
                if " is expired" not in str(error):
                    raise
                # A mirror's copy of a moving suite may be weeks old. Who replays old lists could bring back a package
                # with a known hole, but not one that the lock names by its hash: only such are taken from here.
                run([*command, "-o", "Acquire::Check-Valid-Until=false"], log=self.log, env=environment)
                self.expired |= set(re.findall(r"/dists/(\S+?)/\S+ is expired", str(error)))
        self.listed |= {(suite, arch) for suite in wanted}

    def _plan(self, part: Part, environment: dict[str, str]) -> list[str]:
        """NAME=VERSION of each package to unpack; the NAME of sources."""
        if part.source:
            return list(part.packages)
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


def fetching(part: Part) -> list[str]:
    """apt's command that downloads packages, or the archives of their sources, into the folder where it runs."""
    return ["apt-get", "-q", *(("source", "--download-only", "--tar-only") if part.source else ("download",))]


def unpack(deb: Path, folder: Path) -> None:
    source = spawn(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    # --keep-directory-symlink: files for /lib go through the lib -> usr/lib link made above.
    command = ["tar", "-x", "-C", folder, "--keep-directory-symlink", "--no-same-owner", "--no-same-permissions"]
    target = spawn(command, stdin=source.stdout)
    source.stdout.close()
    if reap(target) or reap(source):
        raise StepFailed(f"{deb.name} does not unpack; run the set-up again")
