# SPDX-License-Identifier: Apache-2.0
"""`pumice report`: one HTML page about a file and, with --profile, a run of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice import _pumice
from pumice.cli import report_page, report_pictures
from pumice.cli.bench import profile_runs, split_text
from pumice.cli.inputs import input_options
from pumice.cli.inputs import inputs as made_inputs
from pumice.cli.kernel import run_kernels
from pumice.cli.options import device_options, model_argument
from pumice.cli.roofline import require_matplotlib
from pumice.format.text import size_text

if TYPE_CHECKING:
    from pumice import ProfileRow

# The bench measures the device before the first case: a small one, since only the ceilings are wanted.
_SMALL = {"ops": ["softmax"], "cases": ["x=f32[3,37] dim=-1 -> f32[3,37]"], "kernels": ["pick"], "seconds": 0.05}


@click.command()
@model_argument
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="The page. [MODEL.html]")
@click.option("--profile", "profiled", is_flag=True, help="Run it, too: times, timeline and roofline.")
@click.option(
    "--export-report",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `pumice export --report` wrote: adds what was refused, converted, folded.",
)
@input_options
@click.option("--runs", "-r", default=20, show_default=True, type=click.IntRange(1), help="Profiled runs (medians).")
@device_options
def report(
    model: Path, output: Path | None, profiled: bool, export_report: Path | None, shapes, sizes, files, runs: int,
    device, features, cache_dir,
) -> None:  # fmt: skip
    """Write one HTML page: layers, weights, memory plan and, with --profile, times. It works without a network.

    Needs matplotlib: pip install 'pumice[plot]'. Without --profile no device is touched.
    """
    import pumice

    require_matplotlib("report")
    facts = pumice.inspect(model)
    method, rows, run_sections = facts["methods"][0], [], []
    if profiled:
        session = pumice.load(model, device=device, features=features, cache_dir=cache_dir)
        last, rows = profile_runs(session, made_inputs(session, shapes, sizes, files), runs)
        run_sections = _of_the_run(session, last, rows, device=device, features=features)
    sections = [
        ("The file", _file(facts)),
        ("Layers", report_page.layers(method, rows)),
        *run_sections,
        ("Memory over time", _memory(method)),
        ("Weights", report_page.weights(method)),
    ]
    if export_report:
        sections.append(("What the export did", report_page.exported(_read(export_report))))
    output = output or model.with_suffix(".html")
    output.write_text(report_page.page(model.name, sections), encoding="utf-8")
    click.echo(f"{output}: {size_text(output.stat().st_size)}")


def _of_the_run(session: Any, last: list[ProfileRow], rows: list[ProfileRow], **where: Any) -> list[tuple[str, str]]:
    given = _SMALL | {name: value for name, value in where.items() if value}
    ceilings = run_kernels(_pumice.kernel_bench, given, lambda _: None)["ceilings"]
    names = {"name": session.device.name, "driver": f"{session.device.driver} {session.device.driver_version}"}
    total = sum(row.microseconds for row in rows)
    text = (
        f"{names['name']}, driver {names['driver']}: {total:.1f} us in {len(rows)} dispatches and copies; "
        f"{split_text(session.precision, rows)}."
    )
    return [
        ("Time", f"<p>{report_page.escape(text)}</p>{report_pictures.timeline(last)}"),
        ("Self test of the kernels", _self_test(session)),
        ("Roofline", report_pictures.points(rows, ceilings, names)),
    ]


def _self_test(session: Any) -> str:
    rows = [[each.kernel, each.family, each.result, each.wrong] for each in session.device.self_test]
    return report_page.table(["kernel", "family", "result", "what is wrong"], rows)


def _file(facts: dict[str, Any]) -> str:
    header, method = facts["header"], facts["methods"][0]
    rows = [
        ["size", f"{size_text(header['file_bytes'])}, {size_text(header['constant_bytes'])} of it constants"],
        ["written by", f"{header['producer']}, format {header['version']}"],
        ["precision", header["precision"]],
        ["method", f"{method['name']} (of {', '.join(each['name'] for each in facts['methods'])})"],
    ]
    for role in ("inputs", "outputs", "states"):
        rows += [[role[:-1], f"{each['name']}: {each['dtype']}{each['dims']}"] for each in method[role]]
    rows += [
        ["size", f"{each['name']} in {each['min']}..{each['max']}, at export {each['hint']}"]
        for each in method["symbols"]
    ]
    return report_page.table(["", ""], rows)


def _memory(method: dict[str, Any]) -> str:
    plan = method["plan"]
    text = (
        f"Arena {size_text(plan['arena_bytes'])} at the exported sizes; "
        f"without reuse {size_text(plan['naive_bytes'])}, at least {size_text(plan['lower_bound_bytes'])}."
    )
    return f"<p>{text}</p>{report_pictures.memory(method)}"


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not {"counts", "notes", "refusals", "nodes"} <= set(facts):
            raise ValueError("not what `pumice export --report` writes")
        return facts
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"--export-report {path}: {error}") from None
