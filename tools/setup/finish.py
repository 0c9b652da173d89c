# SPDX-License-Identifier: Apache-2.0
"""What is done to a set's unpacked packages so that they work where they are."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from setup import mesa_intel, oldlibc
from setup.apt import Unsuited
from setup.progress import StepFailed, run
from setup.recipes import TRIPLETS

# It signs no return addresses, which takes qemu's other processors five times as long as all else.
EMULATED_CPU = "cortex-a76"


@dataclass
class Work:
    """A set about to be finished: its fresh folder, and the place where that will be."""

    fresh: Path
    place: Path
    arch: str
    patchelf: Callable[[], str]
    log: Path
    downloads: Path  # the packages, and the archives of sources

    @property
    def triplet(self) -> str:
        return TRIPLETS[self.arch]

    @property
    def lib(self) -> str:
        return f"usr/lib/{self.triplet}"

    @property
    def libraries(self) -> Path:
        return self.fresh / self.lib


def _executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _own_loader(work: Work) -> str:
    loader = "ld-linux-aarch64.so.1" if work.arch == "arm64" else "ld-linux-x86-64.so.2"
    return f"'{work.place}/{work.lib}/{loader}' --library-path '{work.place}/{work.lib}'"


def tools(work: Work) -> None:
    """Wrappers that start each tool under the C library it was built for."""
    for tool in ("glslang", "spirv-val", "spirv-dis", "spirv-as", "spirv-opt"):
        if not (work.fresh / "usr/bin" / tool).exists():
            raise Unsuited(f"the packages hold no {tool}")
        text = f"#!/bin/sh\nexec {_own_loader(work)} '{work.place}/usr/bin/{tool}' \"$@\"\n"
        _executable(work.fresh / "wrap" / tool, text)
    (work.fresh / "bin").unlink()
    (work.fresh / "wrap").rename(work.fresh / "bin")


def _localise(work: Work) -> None:
    """Make the libraries of a folder load on this system, and find each other in their own folder."""
    libraries = [p for p in work.libraries.iterdir() if ".so" in p.name and p.is_file() and not p.is_symlink()]
    for library in libraries:
        library.chmod(library.stat().st_mode | stat.S_IWUSR)
        try:
            oldlibc.relax(library)
        except oldlibc.Refused as error:
            raise Unsuited(str(error)) from error
    run([work.patchelf(), "--set-rpath", "$ORIGIN", *libraries], log=work.log)


def _manifest(source: Path, target: Path, library: Path) -> None:
    """Copy a driver's or layer's JSON manifest with an absolute library path."""
    data = json.loads(source.read_text())
    data["ICD" if "ICD" in data else "layer"]["library_path"] = str(library)
    target.write_text(json.dumps(data, indent=2) + "\n")


def _driver_only(work: Work, *others: str) -> None:
    """Keep lavapipe of Mesa's drivers, and `others`; put its manifest at lvp_icd.json."""
    library = work.libraries / "libvulkan_lvp.so"
    if not library.exists():
        raise Unsuited("Mesa's package holds no lavapipe")
    for other in work.libraries.glob("libvulkan_*.so"):
        if other != library and other.name not in others:
            other.unlink()
    for other in work.libraries.glob("libVkLayer_*"):
        other.unlink()
    manifest = next((work.fresh / "usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
    _manifest(manifest, work.fresh / "lvp_icd.json", work.place / work.lib / library.name)
    shutil.rmtree(work.fresh / "usr/share", ignore_errors=True)
    (work.fresh / "libvulkan.so.1").symlink_to(f"{work.lib}/libvulkan.so.1")


def driver(work: Work) -> None:
    _driver_only(work)
    _localise(work)
    # Try it in a process of this system before it is called done.
    trial = work.fresh / "trial.json"
    _manifest(work.fresh / "lvp_icd.json", trial, work.libraries / "libvulkan_lvp.so")
    environment = {**os.environ, "VK_DRIVER_FILES": str(trial), "VK_ICD_FILENAMES": str(trial)}
    try:
        probe = [sys.executable, Path(__file__).with_name("probe.py"), work.fresh / "libvulkan.so.1"]
        text = run(probe, log=work.log, env=environment)
    except StepFailed as error:
        raise Unsuited(str(error)) from error
    trial.unlink()
    (work.fresh / "devices.txt").write_text(text)


def gpus(work: Work) -> None:
    """Every driver of Mesa's package with its manifest, and the shims that stand in for kernel drivers."""
    for manifest in (work.fresh / "usr/share/vulkan/icd.d").glob("*.json"):
        library = Path(json.loads(manifest.read_text())["ICD"]["library_path"]).name
        _manifest(manifest, work.fresh / f"{manifest.name.split('_icd')[0]}.json", work.place / work.lib / library)
    for other in work.libraries.glob("libVkLayer_*"):
        other.unlink()
    _localise(work)
    (work.fresh / "libvulkan.so.1").symlink_to(f"{work.lib}/libvulkan.so.1")


def intel_shim(work: Work) -> None:
    """The library that stands in for Intel's kernel drivers, compiled from Mesa's sources, and nothing else."""
    source = work.fresh / "source"
    source.mkdir()
    (archive,) = work.downloads.glob("mesa_*.tar.*")
    folders = [f"*/{folder}" for folder in mesa_intel.FOLDERS]
    run(["tar", "-xf", archive, "-C", source, "--strip-components=1", "--wildcards", *folders], log=work.log)
    made = mesa_intel.build(source, work.fresh / "usr", work.log)
    shim = made.rename(work.fresh / made.name)
    for left in (each for each in work.fresh.iterdir() if each != shim):
        left.unlink() if left.is_symlink() else shutil.rmtree(left)


def own(work: Work) -> None:
    """Nothing is edited: programs must run under this set's C library, which `run` does."""
    _driver_only(work)
    extra = f"{sys.base_prefix}/lib:/{work.lib}"
    text = f'#!/bin/sh\nexec {_own_loader(work)[:-1]}:{extra}\' "$@"\n'
    _executable(work.fresh / "run", text)


def layer(work: Work) -> None:
    _localise(work)
    folder = work.fresh / "usr/share/vulkan/explicit_layer.d"
    for manifest in folder.glob("*.json"):
        library = json.loads(manifest.read_text())["layer"]["library_path"]
        _manifest(manifest, manifest, work.place / work.lib / Path(library).name)
    (work.fresh / "layers").symlink_to("usr/share/vulkan/explicit_layer.d")


def swiftshader(work: Work) -> None:
    library = next(work.fresh.rglob("libvk_swiftshader.so"), None)
    manifest = next(work.fresh.rglob("vk_swiftshader_icd.json"), None)
    if not library or not manifest:
        raise StepFailed("chromium-common holds no SwiftShader")
    saved = work.fresh / "vk_swiftshader.tmp"
    library.rename(saved)
    _manifest(manifest, work.fresh / "vk_swiftshader_icd.json", work.place / "libvk_swiftshader.so")
    for name in ("usr", "etc", "opt", "var"):
        shutil.rmtree(work.fresh / name, ignore_errors=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (work.fresh / name).unlink()
    saved.rename(work.fresh / "libvk_swiftshader.so")


def ccache(work: Work) -> None:
    run([work.patchelf(), "--set-rpath", f"$ORIGIN/../lib/{work.triplet}", work.fresh / "usr/bin/ccache"], log=work.log)
    run([work.fresh / "usr/bin/ccache", "--version"], log=work.log)


def clang(work: Work) -> None:
    libraries = f"{work.place}/{work.lib}:{work.place}/usr/lib/llvm-14/lib"
    for tool in ("clang", "clang++", "llvm-cov", "llvm-profdata"):
        text = (
            f"#!/bin/sh\nLD_LIBRARY_PATH='{libraries}'${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} "
            f"exec '{work.place}/usr/lib/llvm-14/bin/{tool}' \"$@\"\n"
        )
        _executable(work.fresh / "wrap" / tool, text)


def cross(work: Work) -> None:
    """Wrappers that start the cross compiler with its libraries; its C library is in the same folder."""
    script = work.fresh / "usr/aarch64-linux-gnu/lib/libc.so"  # for the linker; names its files by absolute path
    script.write_text(script.read_text().replace("/usr/aarch64-linux-gnu/lib/", ""))
    for emulator in (work.fresh / "usr/bin").glob("qemu-*"):
        if emulator.name != "qemu-aarch64-static":
            emulator.unlink()
    for tool in ("gcc", "g++"):
        text = (
            f"LD_LIBRARY_PATH='{work.place}/{work.lib}' exec '{work.place}/usr/bin/aarch64-linux-gnu-{tool}' \"$@\"\n"
        )
        _executable(work.fresh / "wrap" / f"aarch64-linux-gnu-{tool}", "#!/bin/sh\n" + text)


def emulated(work: Work) -> None:
    """Drivers, and a C library for them, of another machine: `run` starts a program under qemu with its lavapipe. Of
    the drivers of GPUs those stay that Debian has for that machine only, with the shims that stand in for kernels."""
    for manifest in (work.fresh / "usr/share/vulkan/icd.d").glob("panfrost_icd*.json"):
        _manifest(manifest, work.fresh / "panfrost.json", work.place / work.lib / "libvulkan_panfrost.so")
    _driver_only(work, "libvulkan_panfrost.so")
    qemu = work.place.with_name("cross") / "usr/bin/qemu-aarch64-static"
    text = (
        f"#!/bin/sh\nVK_DRIVER_FILES='{work.place}/lvp_icd.json' "
        f"exec '{qemu}' -cpu {EMULATED_CPU} -L '{work.place}' -E LD_LIBRARY_PATH='{work.place}/{work.lib}' \"$@\"\n"
    )
    _executable(work.fresh / "run", text)


def peers(work: Work) -> None:
    """bin/llama-bench starts llama.cpp under the C library of its packages, in the folder where it looks for backends.
    By paths from its own place: the folder may be copied to a GPU's machine."""
    loader = _own_loader(work).replace(str(work.place), "$here").replace("'", '"')[:-1] + f':$here/{work.lib}/llama"'
    text = (
        '#!/bin/sh\nhere=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)\n'
        f'cd "$here/{work.lib}/ggml/backends0" || exit\nexec {loader} "$here/usr/bin/llama-bench" "$@"\n'
    )
    if not (work.fresh / "usr/bin/llama-bench").exists():
        raise Unsuited("the packages hold no llama-bench")
    _executable(work.fresh / "wrap" / "llama-bench", text)
    (work.fresh / "bin").unlink()
    (work.fresh / "wrap").rename(work.fresh / "bin")


def browser(work: Work) -> None:
    """A wrapper that starts Chromium with the libraries and the fonts of its packages."""
    libraries = f"{work.place}/{work.lib}:{work.place}/{work.lib}/pulseaudio"
    fonts = work.fresh / "etc/fonts/fonts.conf"
    folders = f"<dir>{work.place}/usr/share/fonts</dir><cachedir>{work.place}/cache</cachedir>"
    fonts.write_text(f"<fontconfig>{folders}</fontconfig>\n")
    text = (
        f"#!/bin/sh\nexport LD_LIBRARY_PATH='{libraries}'\n"
        f"export FONTCONFIG_FILE='{work.place}/etc/fonts/fonts.conf'\n"
        f"exec '{work.place}/usr/lib/chromium/chromium-headless-shell' \"$@\"\n"
    )
    _executable(work.fresh / "wrap/chromium", text)


FINISHES = {
    each.__name__: each
    for each in (
        tools,
        driver,
        gpus,
        intel_shim,
        own,
        layer,
        swiftshader,
        ccache,
        clang,
        cross,
        emulated,
        peers,
        browser,
    )
}
