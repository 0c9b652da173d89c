# SPDX-License-Identifier: Apache-2.0
"""`pumice kernel list`, `test` and `bench`: tools/kernel_bench, with tables, progress and a picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pumice import _pumice
from pumice.cli import tables
from pumice.cli.options import Commands, device_options, json_option

CASE_HELP = """A case of most operators is a call: 'x=T[3,37] dim=-1|0 -> T[3,37]', arguments by name, T=f32|f16,
storage=texture3d for the first tensor in a texture; docs/kernels.md has the rest, `kernel list --op softmax` shows
one. Of products and convolutions it is key=value joined by commas, '|' between alternatives. Keys: op; m, n, k (x is
[m, k], the weight [n, k]); g (columns with one scale, 0: whole rows); dtype and scale (f32, f16); storage (buffer,
texture3d: x and the output, texture2d: the weight, textures: both); bias (0, 1); zero (none, zero, random); act (none,
relu, gelu, gelu_tanh, silu, relu6, hardswish, hardsigmoid); values (random, low, high, equal, huge, alternate,
special, one, group); in and out (i8, u8: x and the output, of those that have 8-bit integers). Of convolutions: b, c,
h, w (x is [b, c, h, w]), o (output channels), k (the window, k x k), s, p, d (stride, padding, dilation) and g (groups)
instead of m, n, k and g."""


@click.group(cls=Commands)
def kernel() -> None:
    """List, test and time single kernels.

    \b
    pumice kernel list --op linear_q4gsw
    pumice kernel test --op linear_q4gsw --kernel gemv1 --case "m=1|17,n=4097,k=384,g=32,dtype=f16"
    pumice kernel bench --op linear_q4gsw --case "m=1|512,n=14336,k=4096,dtype=f16" --plot roofline.svg
    """


def common(command: Any) -> Any:
    """--op, --case, --storage, --dtype, --json and the device."""
    for option in (
        json_option,
        device_options,
        click.option("--storage", default="", help="buffer, texture3d (activations), texture2d (weights) or textures."),
        click.option("--dtype", default="", help="Only f32 or only f16."),
        click.option("--case", "cases", multiple=True, help="m=17,n=4097,k=384,g=32; repeatable."),
        click.option("--op", "ops", multiple=True, help="Only this operator; repeatable."),
    ):
        command = option(command)
    return command


grid_option = click.option(
    "--grid",
    default="",
    help="The cases of linear layers: fitted (by which the tables were set) or unseen (by no table).",
)


def choosing(command: Any) -> Any:
    """What decides on cases and kernels."""
    for option in (
        click.option("--seed", default=1, show_default=True, help="Of the data and of the sample."),
        click.option("--full", is_flag=True, help="The long list of cases instead of the short one."),
        click.option("--kernel", "kernels", multiple=True, help="Only this kernel, or 'pick'; repeatable."),
    ):
        command = option(command)
    return command


@kernel.command("list")
@common
@click.option("--profile", default="", help="A device that is not here: a file of `devices --profile`, or its name.")
@click.option("--compile", is_flag=True, help="Milliseconds that the driver takes for each kernel's slowest pipeline.")
def list_(as_json: bool, **options: Any) -> None:
    """Operators, the kernels that can be forced (at a --case), and what shaders need of the device."""
    facts = json.loads(_pumice.kernel_list(**given_options(options)))
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    tables.line(f"{facts['device']['name']}: {', '.join(facts['device']['features'])}")
    numbers = facts["selection"]
    units, kernels = f"{numbers['compute_units']} ({numbers['compute_units_from']})", numbers["kernels_from"]
    tables.line(f"compute units: {units}; kernels by: {kernels}")
    for row in facts["operators"]:
        tables.line(f"\n{row['op']}({row['parameters']})")
        tables.line(f"  {row['case']}")
        for each in row["dispatches"]:
            groups = " x ".join(map(str, each["workgroups"]))
            tables.line(f"    {each['shader']}, {groups} workgroups of {each['invocations']}")
        times = ["compile, ms"] if options["compile"] else []
        table = tables.new("kernel", *times, "here", left=["kernel", "here"])
        for each in row["kernels"]:
            is_other = each["is"] != each["kernel"]
            here = f"is {each['is']}" if is_other else "runs"
            if each["unsupported_reason"]:
                here = f"it {each['unsupported_reason']}"
            if here == "runs" and each["not_recommended_reason"]:
                here = f"runs when forced: it {each['not_recommended_reason']}"
            if "compile_error" in each:
                here = f"the driver refuses it: {each['compile_error']}"
            took = [f"{each['compile_ms']:.0f}" if "compile_ms" in each else ""] if times else []
            tables.add(table, each["kernel"], *took, here)
        if len(row["kernels"]) > 1:
            tables.show(table)
        else:
            tables.line(f"  {len(row['cases'])} cases, compared: {row['compared']}; {row['cases'][0]}")
    if not options["ops"]:
        _print_shaders(facts["shaders"])


def _print_shaders(shaders: list[dict]) -> None:
    variants = [variant for shader in shaders for variant in shader["variants"]]
    needy = [variant for variant in variants if variant["needs"]]
    table = tables.new("variant", "needs", "here", left=["variant", "needs", "here"])
    for variant in needy:
        tables.add(table, variant["variant"], ", ".join(variant["needs"]), "runs" if variant["runs"] else "no")
    title = f"{len(shaders)} shaders, {len(variants)} variants; {len(needy)} need something optional"
    tables.show(table, title)


@kernel.command(epilog=CASE_HELP)
@common
@choosing
@click.option(
    "--replays",
    type=click.IntRange(1),
    help="Runs of each case that must give equal bits; default 100, fewer for large cases on a CPU driver.",
)
@click.option(
    "--plant",
    default="",
    help="Plants a mistake, which must be found: value, unwritten, guard, replay, column, group, scale, zero, bias, "
    "act, rounding or input:NAME.",
)
def test(as_json: bool, replays: int | None, **options: Any) -> None:
    """Each case with each kernel, compared with the fp64 reference of its operator.

    Within the operator's own error bound; in memory that held other bytes before, between guard bands, replayed bit for
    bit, and once more through a session. Exit code 1: something failed, 4: nothing asked for runs on this device.
    """
    given = given_options(options) | ({"replays": replays} if replays else {})
    counts = {"ok": 0, "skipped": 0, "failed": 0}
    worst = 0.0

    def show(fact: dict) -> None:
        nonlocal worst
        if fact["event"] != "row":
            return
        counts[fact["status"]] += 1
        worst = max(worst, fact.get("worst", 0.0))
        if not as_json and fact.get("compared") == "guards only":
            tables.line(f"guards only  {fact['title']}: no reference to compare with")
        if as_json or fact["status"] == "ok" or (fact["status"] == "skipped" and not options["kernels"]):
            return
        tables.line(f"{fact['status']} {fact['kernel']}  {fact['title']}", style="bold red")
        tables.line(f"  {fact['why']}")
        if "repro" in fact:
            tables.line(f"  again: {fact['repro']}")

    facts = run_kernels(_pumice.kernel_test, given, show)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        tables.line(
            f"{counts['ok'] + counts['failed']} run, {counts['skipped']} skipped, {counts['failed']} failed; "
            f"the largest error is {worst:.2f} of what is allowed (seed {options['seed']})"
        )
    _leave(counts)


@kernel.command(epilog=CASE_HELP)
@common
@choosing
@click.option(
    "--seconds", default=0.5, show_default=True, help="Seconds of warm-up for a row, and the most for its timing."
)
@click.option(
    "--rotate", type=click.IntRange(1), metavar="MB", help="Size of all copies of the weights; default 256, on CPUs 64."
)
@click.option("--no-barrier", is_flag=True, help="Replays may overlap: throughput instead of latency.")
@click.option("--no-ceilings", is_flag=True, help="Do not measure the device first.")
@click.option(
    "--regret",
    is_flag=True,
    help="Time every kernel that can run at a grid of shapes; compare the picked one with the best.",
)
@grid_option
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A roofline picture, .svg, .png or .pdf (needs the extra 'plot': matplotlib).",
)
def bench(
    as_json: bool, rotate: int | None, no_barrier: bool, no_ceilings: bool, plot: Path | None, **options: Any
) -> None:
    """Each case with each kernel, timed after its result was checked.

    Weights rotate past the cache, clocks are warmed, the device's own clock stands around many replays. The device is
    measured first; '% roof' is the time those ceilings allow by the time taken (on CPU drivers: processor time).
    """
    given = given_options(options) | {"barrier": not no_barrier, "ceilings": not no_ceilings}
    if rotate:
        given["rotate_bytes"] = rotate << 20
    if plot:
        if no_ceilings:
            raise click.UsageError("--plot draws the ceilings, --no-ceilings leaves them out")
        from pumice.cli.roofline import draw, require_plot

        require_plot(plot)
    rows: dict[str, Rows] = {}

    def show(fact: dict) -> None:
        if not as_json and fact["event"] == "ceiling":
            tables.line(_ceiling(fact))
        if fact["event"] == "row":
            rows.setdefault(fact["case"], Rows(fact)).add(fact)

    facts = run_kernels(_pumice.kernel_bench, given, show)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        for each in rows.values():
            each.show()
        if "regret" in facts:
            for text in _regret(facts["regret"]):
                tables.line(text)
    if plot:
        draw(facts, plot)
        tables.line(f"{plot}: written")
    statuses = [row["status"] for row in facts["rows"]]
    _leave({status: statuses.count(status) for status in ("ok", "skipped", "failed")})


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of the command line as the extension takes them: nothing for what was not said."""
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    return {name: value for name, value in given.items() if value not in (None, [], "")}


def run_kernels(command: Callable[..., int], given: dict[str, Any], show: Callable[[dict], None]) -> dict[str, Any]:
    """All results of kernel_bench as one document; progress goes to stderr where that is a terminal."""
    all_: dict[str, Any] = {"schema": 1, "rows": [], "ceilings": [], "rates": []}
    terminal = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def report(text: str) -> None:
            fact = json.loads(text)
            match fact["event"]:
                case "device":
                    progress.update(task, total=fact["rows"])
                    all_.update(device=fact["device"], seed=fact["seed"])
                case "candidate":
                    progress.update(task, description=f"{fact['kernel']:12} {fact['title']}")
                case "regret":
                    all_["regret"] = fact
                case "row" | "ceiling" | "rate":
                    all_[fact["event"] + "s"].append(fact)
                    if fact["event"] == "row":
                        progress.update(task, advance=1, description=f"{fact['kernel']:12} {fact['title']}")
            show(fact)

        command(report, **given)
    return all_


class Rows:
    """The kernels of a case: times of those that ran in a table, and below it which did not run, and why."""

    def __init__(self, fact: dict) -> None:
        cpu = ["cpu us"] if "cpu_us" in fact else []
        columns = ("us", "p10", "p90", *cpu, "GB/s", "TFLOP/s", "% roof", "bound")
        self.title = fact["title"]
        self.table = tables.new("kernel", *columns, left=["kernel"])
        self.others: dict[tuple[str, str], list[str]] = {}

    def add(self, fact: dict) -> None:
        """A result of the bench."""
        name, stands_for = fact["kernel"], fact.get("is", fact["kernel"])
        name = name if stands_for == name else f"{name}: {stands_for}"
        if fact["status"] != "ok":
            self.others.setdefault((fact["status"], fact["why"]), []).append(name)
            return
        keys = ("median_us", "p10_us", "p90_us", "cpu_us", "gb_s", "tflop_s")
        numbers = [_short(fact[key]) for key in keys if key in fact]
        numbers += [f"{100 * fact['of_roof']:.1f}", fact["bound"]] if "of_roof" in fact else ["-", "-"]
        tables.add(self.table, name, *numbers)

    def show(self) -> None:
        """Prints them."""
        if self.table.row_count:
            tables.show(self.table, self.title)
        else:
            tables.line(self.title)
        for (status, why), names in self.others.items():
            tables.field(f"{status}:", f"{', '.join(names)}: {why}")


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 1000 else f"{number:.3g}" if number < 100 else f"{number:.1f}"


def _ceiling(fact: dict) -> str:
    if not fact["per_second"]:
        return f"ceiling {fact['name']}: {fact['why']}"
    if fact["name"] in ("read", "copy"):
        return f"ceiling {fact['name']}: {fact['per_second'] / 1e9:.1f} GB/s ({fact['how']})"
    unit = "TOP/s" if fact["name"] in ("dot", "s8 matrix") else "TFLOP/s"
    return f"ceiling {fact['name']}: {fact['per_second'] / 1e12:.3f} {unit} ({fact['how']})"


def _regret(fact: dict) -> list[str]:
    whose = {"the table": fact["table"], "what was tuned": fact} if "table" in fact else {"the pick": fact}
    return [
        f"regret of {name} over {fact['shapes']} shapes: median {of['median']:.3f}, worst {of['worst']:.3f} "
        f"({of['worst_case']}; {of['worst_best']} is best)"
        for name, of in whose.items()
    ]


def _leave(counts: dict[str, int]) -> None:
    """1 when something failed, 4 when nothing that was asked for runs here."""
    if counts["failed"]:
        raise click.exceptions.Exit(1)
    if counts["skipped"] and not counts["ok"]:
        raise click.exceptions.Exit(4)
