# SPDX-License-Identifier: Apache-2.0
"""apt as the client of a Debian archive, without root: lists, plans and packages in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from setup.progress import Progress, StepFailed, folder_bytes, megabytes, reap, run, spawn
from setup.recipes import Part

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


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
    """apt's private files while sets are being made."""

    def __init__(self, folder: Path, progress: Progress, log: Path):
        self.folder, self.progress, self.log = folder, progress, log
        self.listed: set[tuple[str, str]] = set()
        self._address = ""

    def tidy(self) -> None:
        """Drop everything: a later set fetches the lists anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.listed.clear()

    def packages(self, label: str, part: Part, arch: str, debs: Path) -> list[str]:
        """Download the packages of a part into `debs`: NAME:ARCH=VERSION of each."""
        environment = self._environment(label, part, part.suites, arch)
        plan = self._plan(part, environment)
        run(["apt-get", "-q", "download", *plan], log=self.log, env=environment, cwd=debs)
        return plan

    def _environment(self, label: str, part: Part | None, suites: tuple[str, ...], arch: str) -> dict[str, str]:
        """Write the private apt configuration of one part and return the environment that selects it."""
        folder = self.folder / label
        for sub in ("etc/none", "state", "cache/archives/partial", "log"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
        (self.folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        if not self._address:
            self._address = archive_address()
        # A mirror's copy of a moving suite may be weeks old, hence valid-until; the signature counts all the same.
        options = f"[arch={arch} signed-by={KEYRING} check-valid-until=no]"
        lines = [f"deb {options} {self._address} {suite} main\n" for suite in suites]
        (folder / "etc/sources.list").write_text("".join(lines))
        pins, status = [], []
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
        # Proxies and the like are the machine's business: keep them.
        machine_settings = re.compile(r"Acquire::(https?|ForceIPv[46])\b")
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
            run(["apt-get", "-q", "update", "--error-on=any"], log=self.log, env=environment)
        self.listed |= {(suite, arch) for suite in wanted}

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


def unpack(deb: Path, folder: Path) -> None:
    source = spawn(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    # --keep-directory-symlink: files for /lib go through the lib -> usr/lib link made above.
    command = ["tar", "-x", "-C", folder, "--keep-directory-symlink", "--no-same-owner", "--no-same-permissions"]
    target = spawn(command, stdin=source.stdout)
    source.stdout.close()
    if reap(target) or reap(source):
        raise StepFailed(f"{deb.name} does not unpack; run the set-up again")
