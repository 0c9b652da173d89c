# SPDX-License-Identifier: Apache-2.0
"""docs/fleet.md, from the summaries of what `./dev fleet` found."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from setup.fleet import EMULATION, PIPELINE_SECONDS
from setup.fleet_slow import FEW, LONG_MS, slower
from setup.fleet_summary import SLOW_MS, Counts, Family, Summary
from setup.paths import ROOT

PAGE = ROOT / "docs/fleet.md"
HEAVY = 2000, 200  # instructions, or ms: families with a pipeline above either have rows of their own

HEAD = f"""# The kernels in the compilers of other GPUs

Written by `./dev fleet`, on a machine that has none of these GPUs. Mesa's drivers hold their whole shader compilers,
and Mesa's shims stand in for the kernel's side: features, limits, memory, pipelines and what the compilers say of them
are real. Submits return at once and compute nothing.

**What this shows:** which kernels compile, which a device cannot run and for lack of what, where registers spill, how
large the code is, how long a compiler takes. **What it does not show:** whether a result is right, how fast a kernel
is, and what other drivers than Mesa's do (Qualcomm's, AMD's for Windows, NVIDIA's, Apple's Metal under MoltenVK).
Answers and times come from a GPU: `./dev test-gpu`, `./dev bench-gpu`.

Pipelines are those of every operator with each kernel that can run there, also those that are chosen for no shape of
this device; those that models make when they are loaded and run (`test/bench/fleet.toml`: MiniLM, a Llama of two
layers, ResNet-50); and one of each variant that neither made, with the shader's own constants, or where it multiplies
cooperative matrices with those of another variant. Times are processor time of one x86-64 core. The feature `fragments`
is found out by a dispatch that runs, so that its kernels are never among them.

Debian builds Mali's driver for 64-bit Arm alone: there `pumice-rt` is a program for Arm, and an emulator runs it with
the driver. Its times are the emulator's divided by {EMULATION}: Adreno's driver, which Debian builds for both, takes
so many times longer there. What does not compile in {PIPELINE_SECONDS} s is in the table of what failed.

Kernels that need `cpu` are for CPU drivers and never chosen here: those that read by address, and `decoder_layers`
without fragments, which on an H200 is slower than the kernels of single products. A GPU that is missing: PowerVR, whose
driver Debian builds for 64-bit Arm alone, too.

A GPU's columns are of the commit in its row here: `./dev fleet --gpu NAME` writes those of one and keeps the others.
"""

MODELS = """
## What models make

Of the pipelines that selection chooses for these models, at several sizes each: how many there are, how many spill, and
the slowest to compile.
"""

PICKED = """
## What is picked for operators

Of the pipelines that selection chooses for the cases of operators (`pumice-rt kernel list`), which have odd sizes, too.
"""

SLOWER = f"""
## What is still slower than it should be

Of the pipelines that models make: those that spill, with the most spills of one; families of which one has {FEW}
times fewer waves than the family that has the most (Intel's driver does not say); those that take longer than
{LONG_MS} ms to compile; and what multiplies in the hardware and is not used.
"""
FAMILIES = """
## By kernel family

A family is a file of `glsl/`. For each GPU the largest number over all of its pipelines, by the driver's own count;
blank: none of it runs there. Left out are {count} families of which no pipeline has more than {instructions}
instructions, takes more than {ms} ms or spills anywhere.
"""
REGISTERS = (
    "VGPRs on AMD; full registers of 4 on Adreno; of 16 bits on Apple; on Intel those of 32 bytes in use at a "
    "time, of 128; on Mali of 32 bits, of 64."
)
OCCUPANCY = (
    "The fewest waves at a time: of a SIMD on AMD, a core on Adreno, an SM on NVIDIA; threads on Apple; on Mali 2, or "
    "1 with more than 32 registers."
)
SPILLING = (
    "Those that spill: how many, and the most spills and fills of one (on AMD bytes of scratch memory with them)."
)


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> list[str]:
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * lines[0].count(" | ") + "---|", *lines[1:]]


def row_of(summary: Summary) -> tuple[object, ...]:
    gated, counts = sum(map(len, summary.gated.values())), summary.all
    row = (summary.variants - gated, gated, len(summary.failed), *_counts(counts), f"{counts.ms / 1000:.0f} s")
    return (f"{summary.gpu}: {summary.title}", summary.device, *row, summary.commit)


def _counts(counts: Counts) -> tuple[int, int, int, str]:
    slowest = f"{counts.worst_ms / 1000:.2f} s {counts.slowest}" if counts.pipelines else "-"
    return counts.pipelines, counts.spilling, counts.slow, slowest


def line_of(summary: Summary) -> str:
    """For who waits at the terminal."""
    models = _counts(summary.models)
    return f"| {' | '.join(map(str, row_of(summary)))} | of models: {' | '.join(map(str, models))} |"


def _gated(summaries: list[Summary]) -> list[str]:
    rows = []
    for lacking in sorted({key for each in summaries for key in each.gated}):
        variants = [each.gated.get(lacking, []) for each in summaries]
        families = sorted({name.partition("[")[0] for of in variants for name in of})
        rows.append((lacking, *(len(of) or "" for of in variants), ", ".join(families)))
    return [
        "",
        "## What does not run, and for lack of which feature",
        "",
        "Variants of shaders.",
        "",
        *table(("lacking", *(each.gpu for each in summaries), "families"), rows),
    ]


def _table(summaries: list[Summary], rows: dict[str, list[object]]) -> list[str]:
    return table(("family", *(each.gpu for each in summaries)), ((name, *cells) for name, cells in rows.items()))


def _by_family(families: list[dict[str, Family]], cell: Callable[[Family], object]) -> dict[str, list[object]]:
    """A row for each family: what `cell` makes of it on each GPU."""
    names = sorted({name for of in families for name in of})
    return {name: [cell(of[name]) if name in of else "" for of in families] for name in names}


def _spilling(of: Family) -> str:
    return f"{of.spilling} ({of.spills})" if of.spilling else ""


def _slow(of: Family) -> str:
    return f"{of.ms / 1000:.1f}" if of.ms > SLOW_MS else ""


def _marked(summaries: list[Summary], families: list[dict[str, Family]], cell: Callable[[Family], object]) -> list[str]:
    rows = {name: cells for name, cells in _by_family(families, cell).items() if any(cells)}
    return ["", *_table(summaries, rows)] if rows else ["", "None."]


def _chosen(of: Iterable[tuple[str, Counts]]) -> list[str]:
    return table(("GPU", "pipelines", "spill", "above 1 s", "slowest"), ((gpu, *_counts(counts)) for gpu, counts in of))


NUMBERS = (
    ("Instructions", "", lambda of: of.instructions),
    ("Registers", REGISTERS, lambda of: of.registers or ""),
    ("Occupancy", OCCUPANCY, lambda of: of.waves or ""),
    ("Compile time", "Milliseconds.", lambda of: of.ms),
)


def _families(summaries: list[Summary]) -> list[str]:
    families = [each.families for each in summaries]
    heavy = {
        name
        for of_gpu in families
        for name, of in of_gpu.items()
        if of.instructions > HEAVY[0] or of.ms > HEAVY[1] or of.spilling
    }
    light = {name for of_gpu in families for name in of_gpu} - heavy
    lines = [FAMILIES.format(count=len(light), instructions=HEAVY[0], ms=HEAVY[1]).rstrip("\n")]
    for name, text, number in NUMBERS:
        rows = {family: cells for family, cells in _by_family(families, number).items() if family in heavy}
        lines += ["", f"### {name}", *(["", text] if text else []), "", *_table(summaries, rows)]
    return lines


def page(summaries: list[Summary]) -> str:
    head = (
        "GPU",
        "device",
        "variants that run",
        "gated",
        "failed",
        "pipelines",
        "spill",
        "above 1 s",
        "slowest",
        "all",
        "commit",
    )
    lines = [HEAD, *table(head, map(row_of, summaries)), "", "## What failed", ""]
    bad = [(each.gpu, *what) for each in summaries for what in each.failed.items()]
    lines += table(("GPU", "of", "why"), bad) if bad else ["Nothing."]
    models = [each.of_models for each in summaries]
    lines += [MODELS, *_chosen((each.gpu, each.models) for each in summaries)]
    lines += ["", SPILLING]
    lines += _marked(summaries, models, _spilling)
    lines += ["", "Those above a second, in seconds."]
    lines += _marked(summaries, models, _slow)
    lines += [PICKED, *_chosen((each.gpu, each.picked) for each in summaries), "", "Those that spill, as above."]
    lines += _marked(summaries, [each.of_picked for each in summaries], _spilling)
    lines += [
        SLOWER,
        *table(("GPU", "by its compiler's own numbers"), ((each.gpu, slower(each)) for each in summaries)),
    ]
    lines += _gated(summaries)
    lines += _families(summaries)
    lines += ["", "### Spills", "", "Of all pipelines, as above."]
    lines += _marked(summaries, [each.families for each in summaries], _spilling)
    return "\n".join(lines) + "\n"


def write(summaries: list[Summary]) -> None:
    PAGE.write_text(page(summaries))
