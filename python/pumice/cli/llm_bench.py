# SPDX-License-Identifier: Apache-2.0
"""`pumice llm bench`: the tests and columns of llama-bench."""

from __future__ import annotations

import csv
import io
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from pumice.cli.options import device_options, model_argument

if TYPE_CHECKING:
    from pumice.llm import LanguageModel, Sampling


class Numbers(click.ParamType):
    """0,4096"""

    name = "N,N.."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """The numbers, none of them negative."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in value.split(",")]
        except ValueError:
            numbers = [-1]
        if min(numbers) < 0:
            self.fail(f"'{value}' is no list of whole numbers, as in 0,4096", param, ctx)
        return numbers


@click.command()
@model_argument
@click.option("-p", "--n-prompt", type=Numbers(), default="512", show_default=True, help="Tokens of prompts; 0: none.")
@click.option("-n", "--n-gen", type=Numbers(), default="128", show_default=True, help="Tokens to generate; 0: none.")
@click.option("-d", "--n-depth", type=Numbers(), default="0", show_default=True, help="Tokens in the caches before.")
@click.option("-b", "--batch", type=Numbers(), help="Sequences at a time; the file must have that batch.")
@click.option("-r", "--repetitions", type=click.IntRange(1), default=5, show_default=True, help="Of every test.")
@click.option("--temperature", default=0.0, show_default=True, help="Of the generated tokens; 0: the most probable.")
@click.option("-o", "--output", type=click.Choice(["md", "csv", "json"]), default="md", show_default=True)
@device_options
def bench(
    model: Path, n_prompt: list[int], n_gen: list[int], n_depth: list[int], batch: list[int] | None, repetitions: int,
    temperature: float, output: str, device, features, cache_dir,
) -> None:  # fmt: skip
    """Tokens per second of prompts (pp) and of generating (tg), as llama-bench measures them: random tokens, one
    untimed run first, mean and standard deviation of the repetitions.

    \b
    pumice llm bench llama.pumice -p 512,2048 -n 128 -d 0,4096 -r 5
    """
    import pumice.llm
    from pumice.llm import Sampling

    lm = pumice.llm.load(model, device=device, features=features, cache_dir=cache_dir)
    if batch and set(batch) != {lm.batch}:
        asked = ", ".join(map(str, batch))
        raise click.UsageError(f"the file has a batch of {lm.batch}, not of {asked}: export with --batch")
    longest = max(n_depth) + max(*n_prompt, *n_gen)
    if longest > lm.max_seq:
        raise click.UsageError(f"{longest} tokens do not fit, the file has {lm.max_seq}: export with --max-seq")
    how = Sampling(temperature)
    if not lm.draws:
        raise click.UsageError("the file has no method for that: export it again")
    rows = []
    for depth in n_depth:
        for kind, counts in (("pp", n_prompt), ("tg", n_gen)):
            for count in filter(None, counts):
                rate = measure(lm, kind, count, depth, repetitions, how)
                rows.append(_row(lm, model, f"{kind}{count}", depth, rate))
    click.echo(_FORMS[output](rows), nl=False)


def measure(lm: LanguageModel, kind: str, count: int, depth: int, repetitions: int, how: Sampling) -> list[float]:
    """Tokens per second of each repetition, of all sequences together; `how` the generated tokens are drawn."""
    tokens = np.random.default_rng(0).integers(0, lm.facts["vocabulary"], depth + count).tolist()
    rates = []
    for repetition in range(repetitions + 1):
        lm.reset()
        if depth:
            lm.read(tokens[:depth])
        begin = time.perf_counter()
        if kind == "pp":
            lm.read(tokens)
        else:
            lm.generate_steps(tokens[: depth + 1], count, how)
        if repetition:
            rates.append(lm.batch * count / (time.perf_counter() - begin))
    return rates


def _row(lm: LanguageModel, model: Path, test: str, depth: int, rates: list[float]) -> dict[str, Any]:
    spread = statistics.stdev(rates) if len(rates) > 1 else 0.0
    return {
        "model": f"{lm.facts['architecture']} {lm.facts['quantize']}",
        "size": f"{model.stat().st_size / 2**20:.2f} MiB",
        "backend": "Pumice",
        "device": lm.session.device.name,
        "n_batch": lm.batch,
        "test": test + (f" @ d{depth}" if depth else ""),
        "n_depth": depth,
        "avg_ts": statistics.fmean(rates),
        "stddev_ts": spread,
        "samples_ts": rates,
        "t/s": f"{statistics.fmean(rates):.2f} ± {spread:.2f}",
    }


def _markdown(rows: list[dict[str, Any]]) -> str:
    names = {"model": "---", "size": "---:", "backend": "---", "device": "---", "n_batch": "---:"}
    names |= {"test": "---:", "t/s": "---:"}
    lines = ["| " + " | ".join(names) + " |", "| " + " | ".join(names.values()) + " |"]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    names = [name for name in rows[0] if name not in ("samples_ts", "t/s")] if rows else []
    writer = csv.DictWriter(text, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(rows: list[dict[str, Any]]) -> str:
    return json.dumps([{name: value for name, value in row.items() if name != "t/s"} for row in rows], indent=1) + "\n"


_FORMS: dict[str, Callable[[list[dict[str, Any]]], str]] = {"md": _markdown, "csv": _csv, "json": _json}
