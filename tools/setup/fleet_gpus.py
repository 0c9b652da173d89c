# SPDX-License-Identifier: Apache-2.0
"""The GPUs of `./dev fleet`, and what a process needs to see one of them."""

from __future__ import annotations

from dataclasses import dataclass

from setup.finish import EMULATED_CPU
from setup.paths import PREFIX
from setup.progress import StepFailed
from setup.recipes import ARCH

SETS = ("gpus", "intel-shim")  # of the prefix
ARM_SETS = ("cross", "drv-arm64")  # for drivers that Debian builds for 64-bit Arm alone


@dataclass(frozen=True)
class Gpu:
    """A GPU of Mesa's: `name` on the page, the shim, the driver's manifest and the variable that chooses the chip.
    `matrices`: the hardware has units for them. `arm`: Debian builds its driver for 64-bit Arm alone."""

    name: str
    title: str
    shim: str
    driver: str
    variable: tuple[str, str] | None = None
    matrices: bool = False
    arm: bool = False

    @property
    def emulated(self) -> bool:
        return self.arm and ARCH != "arm64"


GPUS = (
    Gpu("polaris10", "AMD Polaris (GCN 4)", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "polaris10")),
    Gpu("vega10", "AMD Vega (GCN 5)", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "vega10")),
    Gpu("navi10", "AMD RDNA 1", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "navi10")),
    Gpu("navi21", "AMD RDNA 2", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "navi21")),
    Gpu("navi31", "AMD RDNA 3", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "navi31"), matrices=True),
    Gpu("gfx1201", "AMD RDNA 4", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "gfx1201"), matrices=True),
    Gpu("adreno630", "Qualcomm Adreno 630", "freedreno", "freedreno", ("FD_GPU_ID", "630")),
    Gpu("adreno660", "Qualcomm Adreno 660", "freedreno", "freedreno", ("FD_GPU_ID", "660")),
    Gpu("adreno730", "Qualcomm Adreno 730", "freedreno", "freedreno", ("FD_GPU_ID", "730")),
    Gpu("adreno740", "Qualcomm Adreno 740", "freedreno", "freedreno", ("FD_GPU_ID", "740")),
    Gpu("adreno750", "Qualcomm Adreno 750", "freedreno", "freedreno", ("FD_GPU_ID", "750")),
    Gpu("adreno830", "Qualcomm Adreno 830", "freedreno", "freedreno", ("FD_GPU_ID", "830")),
    Gpu("skl", "Intel Skylake (Gen9)", "intel", "intel", ("INTEL_STUB_GPU_PLATFORM", "skl")),
    Gpu("tgl", "Intel Tiger Lake (Xe-LP)", "intel", "intel", ("INTEL_STUB_GPU_PLATFORM", "tgl")),
    Gpu("dg2", "Intel Arc A (Xe-HPG)", "intel", "intel", ("INTEL_STUB_GPU_PLATFORM", "dg2"), matrices=True),
    Gpu("mtl", "Intel Meteor Lake (Xe-LPG)", "intel", "intel", ("INTEL_STUB_GPU_PLATFORM", "mtl")),
    Gpu("bmg", "Intel Battlemage (Xe2)", "intel", "intel", ("INTEL_STUB_GPU_PLATFORM", "bmg"), matrices=True),
    Gpu("m1", "Apple M1 (Honeykrisp)", "asahi", "asahi"),
    Gpu("pascal", "NVIDIA Pascal (NVK)", "nouveau", "nouveau", ("NOUVEAU_CHIPSET", "134")),
    Gpu("turing", "NVIDIA Turing (NVK)", "nouveau", "nouveau", ("NOUVEAU_CHIPSET", "162"), matrices=True),
    Gpu("ampere", "NVIDIA Ampere (NVK)", "nouveau", "nouveau", ("NOUVEAU_CHIPSET", "172"), matrices=True),
    Gpu("g610", "Arm Mali-G610 (Valhall)", "panfrost", "panfrost", ("PAN_GPU_ID", "a867"), arm=True),
)


def sets(gpus: list[Gpu]) -> list[str]:
    """Those of the prefix that these need."""
    native = SETS if any(not gpu.emulated for gpu in gpus) else ()
    return [*native, *(ARM_SETS if any(gpu.emulated for gpu in gpus) else ())]


def launcher(gpu: Gpu) -> list[str]:
    """What a program for the GPU's driver is started with: nothing, or the emulator, which hands its variables on."""
    if not gpu.emulated:
        return []
    qemu = str(PREFIX / "cross/usr/bin/qemu-aarch64-static")
    return [qemu, "-cpu", EMULATED_CPU, "-L", str(PREFIX / "drv-arm64")]


def variables(gpu: Gpu) -> dict[str, str]:
    """What a process must have to see the GPU, and nothing else."""
    place = PREFIX / ("drv-arm64" if gpu.emulated else "gpus")
    own = next((place / "usr/lib").glob("*-linux-gnu"))
    libraries = PREFIX / "intel-shim" if gpu.shim == "intel" else own
    chosen = dict([gpu.variable]) if gpu.variable else {}
    return chosen | {
        "LD_PRELOAD": str(libraries / f"lib{gpu.shim}_noop_drm_shim.so"),
        "VK_DRIVER_FILES": str(place / f"{gpu.driver}.json"),
        "LD_LIBRARY_PATH": str(own if gpu.emulated else place),
        "MESA_SHADER_CACHE_DISABLE": "true",
        "PUMICE_CACHE_DIR": "off",
        "PUMICE_DEVICE": "0",
        "PUMICE_FEATURES": "",
    }


def chosen(names: list[str]) -> list[Gpu]:
    if unknown := set(names) - {gpu.name for gpu in GPUS}:
        raise StepFailed(f"no GPU {', '.join(sorted(unknown))}; there are {', '.join(gpu.name for gpu in GPUS)}")
    return [gpu for gpu in GPUS if not names or gpu.name in names]
