# SPDX-License-Identifier: Apache-2.0
"""What is still slower on a GPU than it should be, by what its compiler says: a line of docs/fleet.md."""

from __future__ import annotations

from setup.fleet_gpus import GPUS
from setup.fleet_summary import Family, Summary

LONG_MS = 500
FEW = 8  # waves: so many times fewer than the family that has the most


def _spills(summary: Summary) -> str:
    spilling = {name: of for name, of in summary.of_models.items() if of.spilling}
    if not spilling:
        return ""
    return f"{summary.models.spilling} spill: " + ", ".join(f"{name} ({of.spills})" for name, of in spilling.items())


def _low(summary: Summary) -> str:
    most = max((of.waves for of in summary.families.values()), default=0)
    low = [f"{name} {of.waves}" for name, of in summary.of_models.items() if 0 < of.waves * FEW <= most]
    return f"few waves, where others have {most}: " + ", ".join(low) if low else ""


def _long(summary: Summary) -> str:
    def seconds(of: Family) -> str:
        return f"{of.ms / 1000:.1f} s"

    late = [f"{name} {seconds(of)}" for name, of in summary.of_models.items() if of.ms > LONG_MS]
    return "long to compile: " + ", ".join(late) if late else ""


def _units(summary: Summary) -> str:
    """What multiplies in the hardware and is not used. A feature is lacking where a variant needs nothing else."""
    lacking = {name for key in summary.gated for name in key.split(", ")}
    gpu = next(gpu for gpu in GPUS if gpu.name == summary.gpu)
    found = []
    if gpu.matrices and "coopmat" in lacking:
        found.append("matrix units that the driver does not offer")
    elif gpu.matrices and "fragments" in lacking:
        found.append("no kernels that know where elements of matrices lie")
    if "int_dot" in lacking:
        found.append("no packed dot products")
    return "; ".join(found)


def slower(summary: Summary) -> str:
    """Of the pipelines that models make, but for what the driver lacks."""
    found = [part for part in (_spills(summary), _low(summary), _long(summary), _units(summary)) if part]
    return ". ".join(found) or "Nothing"
