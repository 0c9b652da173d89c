# SPDX-License-Identifier: Apache-2.0
"""The roofline picture of `pumice kernel bench --plot`: what the device can do, and how near each row comes."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import click
import numpy as np


def require_matplotlib(what: str) -> None:
    """Said before anything is measured, not after."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise click.UsageError(f"{what} needs matplotlib: pip install 'pumice[plot]'") from None


def require_plot(path: Path) -> None:
    """As require_matplotlib, and that the name says a form that it writes."""
    require_matplotlib("--plot")
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise click.UsageError(f"--plot {path}: the name ends with .svg, .png or .pdf")


def draw(facts: dict[str, Any], path: Path | IO[str]) -> None:
    """Operations a second over operations a byte, both logarithmic; one mark a row, one colour a kernel."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in facts["rows"] if row["status"] == "ok"]
    ceilings = {fact["name"]: fact["per_second"] for fact in facts["ceilings"] if fact["per_second"]}
    cpu = any("cpu_us" in row for row in rows)
    figure, axes = pyplot.subplots(figsize=(9, 6), constrained_layout=True)
    intensities = [row["flops"] / row["bytes"] for row in rows] or [1.0]
    x = np.geomspace(min([*intensities, 0.5]) / 2, max([*intensities, 1000.0]) * 2, 256)
    for name, most in ceilings.items():
        if name in ("read", "copy"):
            continue
        axes.plot(x, np.minimum(most, x * ceilings["read"]) / 1e12, color="0.6", linewidth=1)
        axes.annotate(f"{name} {most / 1e12:.3g} T/s", (x[-1], most / 1e12), ha="right", va="bottom", fontsize=8)
    axes.annotate(
        f"read {ceilings['read'] / 1e9:.3g} GB/s",
        (x[0], x[0] * ceilings["read"] / 1e12),
        xytext=(10, 0),
        textcoords="offset points",
        fontsize=8,
        va="top",
    )
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    for name in names:
        marks = [row for row in rows if row["kernel"] == name]
        us = [row["cpu_us" if cpu else "median_us"] for row in marks]
        axes.plot(
            [row["flops"] / row["bytes"] for row in marks],
            [row["flops"] / time / 1e6 for row, time in zip(marks, us, strict=True)],
            "o",
            markersize=5,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte that must be moved")
    axes.set_ylabel("10¹² operations per " + ("processor second" if cpu else "second"))
    axes.set_title(f"{facts['device']['name']}, driver {facts['device']['driver']}", fontsize=10)
    axes.grid(visible=True, which="both", linewidth=0.3)
    if names:
        axes.legend(fontsize=8)
    figure.savefig(path, format=None if isinstance(path, Path) else "svg")
    pyplot.close(figure)
