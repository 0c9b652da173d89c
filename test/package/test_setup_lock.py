# SPDX-License-Identifier: Apache-2.0
"""./dev setup takes the files that third-party/ names by their hashes: Debian packages from an archive made here, with
the real apt, and Python packages from a folder, with the real pip."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    from setup import apt, install, pip_hashes, prefix
    from setup.debian_lock import DebianLock
    from setup.progress import StepFailed
    from setup.recipes import ARCH, Part, Recipe
finally:
    sys.path.pop(0)

CONTROL = "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a test\nDescription: a test\n"


class Said:
    """Stands for a Progress."""

    def __init__(self) -> None:
        self.text = ""

    def say(self, text: str) -> None:
        self.text += f"{text}\n"

    def step(self, *_: object) -> Said:
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Archive:
    """A Debian archive of one suite, unsigned, and prefixes made from it."""

    def __init__(self, folder: Path):
        self.folder, self.lists, self.sources, self.count = folder, "", "", 0

    def offer(self, *packages: str, depends: str = "", valid: str = "") -> None:
        """Make the suite hold exactly these: NAME=VERSION. `depends` is the last one's."""
        self.lists, names = "", {}
        for number, (name, version) in enumerate(package.split("=") for package in packages):
            names["needs"] = depends if number == len(packages) - 1 else ""
            control = CONTROL.format(name=name, version=version)
            control += f"Depends: {names['needs']}\n" if names["needs"] else ""
            tree = self.folder / f"tree-{name}-{version}"
            for path, text in (("DEBIAN/control", control), (f"usr/{name}", version)):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_text(text)
            deb = self.folder / f"{name}_{version}.deb"
            if not deb.exists():  # a second one would have other dates, and another hash
                subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, deb], check=True, capture_output=True)
            sha256 = hashlib.sha256(deb.read_bytes()).hexdigest()
            self.lists += f"{control}Filename: {deb.name}\nSize: {deb.stat().st_size}\nSHA256: {sha256}\n\n"
        rows = self._index(f"main/binary-{ARCH}/Packages", self.lists) + self._index(
            "main/source/Sources", self.sources
        )
        head = f"Codename: moving\nSuite: moving\nArchitectures: {ARCH}\nComponents: main\n"
        dates = "Date: Mon, 05 Jan 2026 00:00:00 UTC\n" + (f"Valid-Until: {valid}\n" if valid else "")
        (self.folder / "dists/moving/Release").write_text(f"{head}{dates}SHA256:\n{rows}")

    def offer_source(self, name: str, version: str, text: str) -> None:
        """The next offer() also has this source package, whose archive holds `text`."""
        archive = self.folder / f"{name}_{version}.orig.tar.gz"
        archive.write_text(text)
        entries = ""
        for field, digest in (("Files", hashlib.md5), ("Checksums-Sha256", hashlib.sha256)):
            entries += f"{field}:\n {digest(text.encode()).hexdigest()} {len(text)} {archive.name}\n"
        self.sources = CONTROL.format(name=name, version=f"{version}-1") + f"Directory: .\n{entries}\n"

    def _index(self, name: str, text: str) -> str:
        """Write a list of packages; returns its row of the Release file."""
        path = self.folder / "dists/moving" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f" {hashlib.sha256(text.encode()).hexdigest()} {len(text)} {name}\n"

    def prefix(self, strict: bool = False) -> tuple[prefix.Prefix, Said]:
        """A new prefix in a folder of its own, and what it will have said."""
        said, self.count = Said(), self.count + 1
        made = prefix.Prefix(self.folder / f"prefix-{self.count}", said, self.folder, strict=strict)
        return made, said

    def update(self) -> None:
        made, _ = self.prefix()
        made.update()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    if not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        pytest.skip("this machine has no apt")
    monkeypatch.setenv("PUMICE_DEBIAN_MIRROR", f"file:{tmp_path}")
    (tmp_path / "none").mkdir()  # apt's settings: none of this machine's own
    (tmp_path / "machine.conf").write_text(f'Dir::Etc::parts "{tmp_path}/none";\nDir::Etc::main "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "machine.conf"))
    monkeypatch.setattr(apt, "TRUST", "trusted=yes")
    monkeypatch.setattr(apt, "KEYRING", tmp_path)
    monkeypatch.setattr(prefix, "RECIPES", {"some": Recipe((Part(("moving",), ("stone", "sand")),))})
    lock = tmp_path / "debian.lock"
    monkeypatch.setattr(prefix, "DebianLock", lambda: DebianLock(lock))
    result = Archive(tmp_path)
    result.offer("stone=1.0", "sand=1:2.0~x")
    result.update()
    return result


def contents(made: prefix.Prefix) -> list[str]:
    return [(made.place("some") / "usr" / name).read_text() for name in ("stone", "sand")]


def test_what_the_lock_names_is_taken(archive: Archive) -> None:
    rows = [line.split()[:4] for line in (archive.folder / "debian.lock").read_text().splitlines() if line[0] != "#"]
    assert rows == [["some-0", ARCH, "sand", "1:2.0~x"], ["some-0", ARCH, "stone", "1.0"]]
    archive.offer("stone=1.0", "stone=1.1", "sand=1:2.0~x")  # beside a newer one, apt is asked for it
    made, said = archive.prefix(strict=True)
    made.install("some")
    made.tidy()
    assert contents(made) == ["1.0", "1:2.0~x"] and made.ready("some")
    assert said.text == ""


def test_a_newer_package_is_named_and_taken_unless_locked(archive: Archive) -> None:
    archive.offer("stone=1.1", "sand=1:2.0~x")
    sentence = "stone: debian.lock names 1.0, the archive offers 1.1"
    made, said = archive.prefix()
    made.install("some")
    made.tidy()
    assert contents(made) == ["1.1", "1:2.0~x"]
    assert said.text.splitlines()[0] == f"{sentence} and is taken"
    assert "./dev setup --update" in said.text and "sand" not in said.text
    assert made.ready("some")
    made.strict = True
    assert not made.ready("some")

    locked, _ = archive.prefix(strict=True)
    with pytest.raises(StepFailed, match=sentence):
        locked.install("some")
    assert not locked.place("some").exists()

    archive.update()
    locked, said = archive.prefix(strict=True)
    locked.install("some")
    assert contents(locked) == ["1.1", "1:2.0~x"] and said.text == ""
    assert not prefix.Prefix(made.root, said, archive.folder).ready("some"), "the lock changed: make the set again"


def test_newer_packages_that_need_more_than_the_lock_names(archive: Archive) -> None:
    archive.offer("stone=1.0", "stone=1.1", "sand=1:3.0", depends="stone (>= 1.1)")
    made, said = archive.prefix()
    made.install("some")
    assert contents(made) == ["1.1", "1:3.0"]
    assert "sand: debian.lock names 1:2.0~x, the archive offers 1:3.0" in said.text


def test_a_package_of_another_hash_is_refused(archive: Archive) -> None:
    lock = archive.folder / "debian.lock"
    good = DebianLock(lock).parts["some-0", ARCH]["stone"].sha256
    lock.write_text(lock.read_text().replace(good, "0" * 64))
    made, _ = archive.prefix()
    with pytest.raises(StepFailed, match=rf"stone 1\.0 is not the package that debian\.lock names.* {good}.* 0000"):
        made.install("some")
    assert not made.place("some").exists()
    assert not list((archive.folder / "prefix-2").rglob("*.deb"))


def test_the_archive_of_a_source_is_taken_by_its_hash(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setitem(prefix.FINISHES, "read", lambda work: found.append(next(work.downloads.glob("*.orig.tar.gz"))))
    parts = Part(("moving",), ("rock",), source=True), Part(("moving",), ("sand",))
    monkeypatch.setattr(prefix, "RECIPES", {"some": Recipe(parts, "read")})
    archive.offer_source("rock", "3.0", "layers")
    archive.offer("sand=1:2.0~x")
    archive.update()
    rows = [line.split()[:4] for line in (archive.folder / "debian.lock").read_text().splitlines() if line[0] != "#"]
    assert ["some-0", "source", "rock", "3.0"] in rows
    made, said = archive.prefix(strict=True)
    made.install("some")
    assert made.ready("some") and said.text == "" and [path.name for path in found] == ["rock_3.0.orig.tar.gz"]
    archive.offer_source("rock", "3.0", "others")
    archive.offer("sand=1:2.0~x")
    with pytest.raises(StepFailed, match=r"rock 3\.0 is not the package that debian\.lock names"):
        archive.prefix()[0].install("some")


def test_lists_past_their_date_give_only_what_the_lock_names(archive: Archive) -> None:
    archive.offer("stone=1.0", "sand=1:2.0~x", valid="Mon, 12 Jan 2026 00:00:00 UTC")
    made, _ = archive.prefix()
    made.install("some")
    assert contents(made) == ["1.0", "1:2.0~x"]
    archive.offer("stone=1.1", "sand=1:2.0~x", valid="Mon, 12 Jan 2026 00:00:00 UTC")
    made, _ = archive.prefix()
    with pytest.raises(StepFailed, match=r"stone: .*\n.*moving are past the date"):
        made.install("some")
    with pytest.raises(StepFailed, match="moving are past the date"):
        archive.update()
    with (archive.folder / "machine.conf").open("a") as file:
        file.write('Acquire::Check-Valid-Until "false";\n')
    made, _ = archive.prefix()
    made.install("some")
    assert contents(made) == ["1.1", "1:2.0~x"]


def test_a_line_of_the_lock_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "debian.lock").write_text("# head\nsome-0 amd64 stone 1.0\n")
    with pytest.raises(StepFailed, match=r"debian\.lock:2: five words"):
        DebianLock(tmp_path / "debian.lock")


# -- pip ---------------------------------------------------------------------------------------------------------------


def wheel(folder: Path, version: str, tags: str) -> str:
    """Write a wheel of the package `pebble`; returns its SHA-256."""
    path = folder / f"pebble-{version}-{tags}.whl"
    info = f"pebble-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("pebble.py", f"TAGS = {tags!r}\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: pebble\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tags}\n")
        file.writestr(f"{info}/RECORD", f"pebble.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only source."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, value in (("CONFIG_FILE", "/dev/null"), ("NO_INDEX", "1"), ("FIND_LINKS", str(folder))):
        monkeypatch.setenv(f"PIP_{name}", value)
    for module in (install, pip_hashes):
        monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    return folder


def test_a_wheel_of_another_hash_is_refused(wheels: Path, tmp_path: Path) -> None:
    good, requirements = wheel(wheels, "1.0", "py3-none-any"), tmp_path / "list.txt"
    for text, message in (
        (f"pebble==1.0 --hash=sha256:{'0' * 64}\n", rf"pebble==1\.0 .*list\.txt names: its SHA-256 is {good}"),
        ("pebble==1.0\n", "Hashes are required"),
    ):
        requirements.write_text(text)
        with pytest.raises(StepFailed, match=message):
            install.pip_install(requirements, tmp_path / "log", "--target", tmp_path / "site")
        assert not (tmp_path / "site/pebble.py").exists()
    requirements.write_text(f"pebble==1.0 --hash=sha256:{good}\n")
    install.pip_install(requirements, tmp_path / "log", "--target", tmp_path / "site")
    assert (tmp_path / "site/pebble.py").exists()


def test_the_hashes_are_rewritten(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip_hashes, "PYTHONS", ("3.11", "3.12"))
    monkeypatch.setattr(pip_hashes.platform, "machine", lambda: "x86_64")
    one, two, new = (
        wheel(wheels, version, f"cp3{minor}-cp3{minor}-manylinux_2_28_x86_64")
        for version, minor in (("1.0", 11), ("1.0", 12), ("2.0", 11))
    )
    requirements, said = tmp_path / "list.txt", []

    def refreshed(text: str) -> str:
        said.clear()
        requirements.write_text(text)
        pip_hashes.refresh(requirements, said.append, tmp_path / "log")
        return requirements.read_text()

    head = '# a list\npebble==9; platform_machine == "aarch64"\n'
    both = "".join(f" \\\n    --hash=sha256:{each}" for each in sorted((one, two)))
    assert refreshed(f"{head}pebble==1.0\n# end\n") == f"{head}pebble==1.0{both}\n# end\n"
    assert not said
    assert refreshed(f"{head}pebble==2.0{both}\n") == f"{head}pebble==2.0 \\\n    --hash=sha256:{new}\n"
    assert said == ["pip's indexes have no pebble==2.0 for Python 3.12 on x86_64"]
    (wheels / "pebble-1.0-cp312-cp312-manylinux_2_28_x86_64.whl").unlink()  # elsewhere it may be had
    assert refreshed(f"pebble==1.0{both}\n") == f"pebble==1.0{both}\n"
    assert pip_hashes.one("pebble", requirements.read_text()) == f"pebble==1.0{both}"
