# SPDX-License-Identifier: Apache-2.0
"""docs/fleet.md, from what `./dev fleet` found."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from setup.fleet import GPUS, Pipeline, Result
from setup.paths import ROOT

PAGE = ROOT / "docs/fleet.md"
SLOW_MS = 1000
HEAVY = 2000, 200  # instructions, or ms: families with a pipeline above either have rows of their own

HEAD = """# The kernels in the compilers of other GPUs

Written by `./dev fleet`, on a machine that has none of these GPUs. Mesa's drivers hold their whole shader compilers,
and Mesa's shims stand in for the kernel's side: features, limits, memory, pipelines and what the compilers say of them
are real. Submits return at once and compute nothing.

**What this shows:** which kernels compile, which a device cannot run and for lack of what, where registers spill, how
large the code is, how long a compiler takes. **What it does not show:** whether a result is right, how fast a kernel
is, and what other drivers than Mesa's do (Qualcomm's, AMD's for Windows, NVIDIA's, Apple's Metal under MoltenVK).
Answers and times come from a GPU: `./dev test-gpu`, `./dev bench-gpu`.

Pipelines are those of every operator with each kernel that can run there, also those that are chosen for no shape of
this device; those that models make when they are loaded and run (`test/bench/fleet.toml`: MiniLM, a Llama of two
layers, ResNet-50); and with their default constants the variants that neither made. Times are processor time of one
x86-64 core. The feature `fragments` is found out by a dispatch that runs, so that its kernels are never among them.
"""

MODELS = """
## What models make

Of the pipelines that selection chooses for these models, at several sizes each: how many there are, how many spill, and
the slowest to compile.
"""

FAMILIES = """
## By kernel family

A family is a file of `glsl/`. For each GPU the largest number over all of its pipelines, by the driver's own count;
blank: none of it runs there. Left out are {count} families of which no pipeline has more than {instructions}
instructions, takes more than {ms} ms or spills anywhere.
"""
OCCUPANCY = "The fewest waves at a time: of a SIMD on AMD, a core on Adreno, an SM on NVIDIA; threads on Apple."
SPILLING = (
    "Those that spill: how many, and the most spills and fills of one (on AMD bytes of scratch memory with them)."
)


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> list[str]:
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * lines[0].count(" | ") + "---|", *lines[1:]]


def title(result: Result) -> str:
    return next(gpu.title for gpu in GPUS if gpu.name == result.gpu)


def _slowest(pipelines: list[Pipeline]) -> str:
    worst = max(pipelines, key=lambda each: each.ms, default=None)
    return f"{worst.ms / 1000:.2f} s {worst.shader}" if worst else "-"


def _counts(pipelines: list[Pipeline]) -> tuple[int, int, int, str]:
    spilling = sum(each.spills > 0 for each in pipelines)
    return len(pipelines), spilling, sum(each.ms > SLOW_MS for each in pipelines), _slowest(pipelines)


def row_of(result: Result) -> tuple[object, ...]:
    variants = result.variants - len(result.gated)
    seconds = sum(each.ms for each in result.pipelines) / 1000
    counts = (variants, len(result.gated), len(result.failed), *_counts(result.pipelines))
    return (f"{result.gpu}: {title(result)}", result.device, *counts, f"{seconds:.0f} s", result.commit)


def line_of(result: Result) -> str:
    """For who waits at the terminal."""
    models = _counts(_of_models(result))
    return f"| {' | '.join(map(str, row_of(result)))} | of models: {' | '.join(map(str, models))} |"


def _of_models(result: Result) -> list[Pipeline]:
    return [each for each in result.pipelines if each.models]


def _by_family(
    results: list[Result], pipelines: Callable[[Result], list[Pipeline]], cell: Callable[[list[Pipeline]], object]
) -> dict[str, list[object]]:
    """A row for each family: what `cell` makes of its pipelines on each GPU."""
    found: dict[str, dict[str, list[Pipeline]]] = {}
    for result in results:
        for each in pipelines(result):
            found.setdefault(each.family, {}).setdefault(result.gpu, []).append(each)
    return {
        family: [cell(of[result.gpu]) if result.gpu in of else "" for result in results]
        for family, of in sorted(found.items())
    }


def _gated(results: list[Result]) -> list[str]:
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    families: dict[tuple[str, ...], set[str]] = {}
    for result in results:
        for variant, lacking in result.gated.items():
            key = tuple(lacking)
            counts.setdefault(key, {}).setdefault(result.gpu, 0)
            counts[key][result.gpu] += 1
            families.setdefault(key, set()).add(variant.partition("[")[0])
    rows = [
        (", ".join(key), *(count.get(result.gpu, "") for result in results), ", ".join(sorted(families[key])))
        for key, count in sorted(counts.items())
    ]
    head = ("lacking", *(result.gpu for result in results), "families")
    return [
        "",
        "## What does not run, and for lack of which feature",
        "",
        "Variants of shaders.",
        "",
        *table(head, rows),
    ]


def _spilling(pipelines: list[Pipeline]) -> str:
    spilling = [each.spills for each in pipelines if each.spills]
    return f"{len(spilling)} ({max(spilling)})" if spilling else ""


def _slow(pipelines: list[Pipeline]) -> str:
    worst = max(each.ms for each in pipelines) / 1000
    return f"{worst:.1f}" if worst > SLOW_MS / 1000 else ""


def _marked(
    results: list[Result], pipelines: Callable[[Result], list[Pipeline]], cell: Callable[[list[Pipeline]], str]
) -> list[str]:
    rows = [(family, *cells) for family, cells in _by_family(results, pipelines, cell).items() if any(cells)]
    return ["", *table(("family", *(result.gpu for result in results)), rows)] if rows else ["", "None."]


def _families(results: list[Result]) -> list[str]:
    heavy = {
        each.family
        for result in results
        for each in result.pipelines
        if each.instructions > HEAVY[0] or each.ms > HEAVY[1] or each.spills
    }
    light = {each.family for result in results for each in result.pipelines} - heavy
    lines = [FAMILIES.format(count=len(light), instructions=HEAVY[0], ms=HEAVY[1]).rstrip("\n")]
    for name, text, largest in (
        ("Instructions", "", lambda of: max(each.instructions for each in of)),
        ("Registers", "VGPRs on AMD; full registers of 4 on Adreno; of 16 bits on Apple.", _registers),
        (
            "Occupancy",
            OCCUPANCY,
            _waves,
        ),
        ("Compile time", "Milliseconds.", lambda of: round(max(each.ms for each in of))),
    ):
        rows = [
            (family, *cells)
            for family, cells in _by_family(results, lambda result: result.pipelines, largest).items()
            if family in heavy
        ]
        lines += ["", f"### {name}", *(["", text] if text else []), ""]
        lines += table(("family", *(result.gpu for result in results)), rows)
    return lines


def _registers(pipelines: list[Pipeline]) -> object:
    return max(each.registers for each in pipelines) or ""


def _waves(pipelines: list[Pipeline]) -> object:
    return min(each.waves for each in pipelines) or ""


def page(results: list[Result]) -> str:
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
    lines = [HEAD, *table(head, map(row_of, results)), "", "## What failed", ""]
    bad = [(result.gpu, *each) for result in results for each in result.failed.items()]
    lines += table(("GPU", "of", "why"), bad) if bad else ["Nothing."]
    lines += [
        MODELS,
        *table(
            ("GPU", "pipelines", "spill", "above 1 s", "slowest"),
            ((result.gpu, *_counts(_of_models(result))) for result in results),
        ),
    ]
    lines += ["", SPILLING]
    lines += _marked(results, _of_models, _spilling)
    lines += ["", "Those above a second, in seconds."]
    lines += _marked(results, _of_models, _slow)
    lines += _gated(results)
    lines += _families(results)
    lines += ["", "### Spills", "", "Of all pipelines, as above."]
    lines += _marked(results, lambda result: result.pipelines, _spilling)
    return "\n".join(lines) + "\n"


def write(results: list[Result]) -> None:
    PAGE.write_text(page(results))
