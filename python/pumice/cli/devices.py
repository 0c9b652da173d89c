# SPDX-License-Identifier: Apache-2.0
"""`pumice devices` and `pumice doctor`."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pumice.cli import tables
from pumice.cli.options import json_option
from pumice.error_codes import hint


def _no_device() -> str:
    import pumice

    return f"no Vulkan device: {pumice.why_no_devices()}\n  what to do: {hint('DeviceUnsupported')}"


@click.command()
@json_option
@click.option("--profile", is_flag=True, help="Print the device as a file for `kernel list --profile`. Send us yours.")
@click.option("--device", default="", help="Of --profile: index, part of the name, or UUID [$PUMICE_DEVICE].")
def devices(as_json: bool, profile: bool, device: str) -> None:
    """List every Vulkan device, CPU drivers included, with what Pumice can use of it."""
    import pumice

    if profile:
        click.echo(pumice._pumice.device_profile(device=device))
        return
    found = pumice.devices()
    if as_json:
        click.echo(json.dumps({"schema": 1, "devices": [each.to_dict() for each in found]}, indent=1))
        return
    if not found:
        click.echo(_no_device(), err=True)
        raise SystemExit(4)
    for each in found:
        size = each.limits["subgroup_size"]
        tables.line(f"{each.index}: {each.name} ({each.kind}), Vulkan {each.api_version}, subgroups of {size}")
        tables.field("driver", f"{each.driver} {each.driver_version}")
        tables.field("features", " ".join(each.features) or "none")
        tables.field("kernels", " ".join(each.kernels) or "baseline")
        for bug in each.driver_bugs:
            tables.field("driver bug", f"{bug['off']}: {bug['why']}, {bug['link']}")


# Operators that models spend their time in, and a few cases each; "": those of `pumice kernel test`.
_CASES = {
    "linear": "m=1|17|130,n=200,k=256,dtype=f16|f32",
    "linear_q4gsw": "m=1|17|130,n=200,k=256,g=32,dtype=f16|f32",
    "linear_dq8ca_q4gsw": "m=1|17,n=200,k=256,g=32,dtype=f16",
    "q8ta_linear": "m=1|17|130,n=200,k=256",
    "conv2d": "b=1,c=16,o=40,h=13,w=12,k=3,p=1,dtype=f16|f32",
    "q8ta_conv2d": "b=1,c=16,o=40,h=13,w=12,k=3,p=1",
    "sdpa": "",
    "cached_attention": "",
}


@click.command()
@click.option("--device", help="Test this device's kernels, too: index, part of the name, or UUID.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write all of it to a file, too.")
def doctor(device: str | None, output: Path | None) -> None:
    """Versions, driver, settings and a self test, as a block to paste into an issue.

    With --device the kernels that are picked there run some hundred cases, compared with fp64 and 20 times replayed.
    """
    lines: list[str] = []

    def say(text: str) -> None:
        lines.append(text)
        click.echo(text)

    try:
        _examine(device, say)
    finally:
        if output:
            output.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _examine(device: str | None, say: Callable[[str], None]) -> None:
    import pumice

    _machine(say)
    found = pumice.devices()
    if not found:
        say(_no_device())
        raise SystemExit(4)
    for each in found:
        say(
            f"device {each.index}: {each.name} ({each.kind}), driver {each.driver} {each.driver_version}, "
            f"Vulkan {each.api_version}"
        )
        say(f"  features: {' '.join(each.features) or 'none'}")
        for bug in each.driver_bugs:
            say(f"  driver bug: {bug['off']}: {bug['why']}, {bug['link']}")
    from pumice.runtime.selftest import self_test

    try:
        say(f"self test: {self_test(device)}")
    except pumice.Error as error:
        say(f"self test: {error} [{error.code}]\n  what to do: {hint(error.code)}")
        raise SystemExit(4) from None
    if device is not None and not _kernels(device, say):
        raise SystemExit(1)


def _machine(say: Callable[[str], None]) -> None:
    import pumice

    def version(package: str) -> str:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"

    say(f"pumice {pumice._pumice.version()}, Python {platform.python_version()}, {platform.platform()}")
    say(", ".join(f"{package} {version(package)}" for package in ("numpy", "torch", "torchao", "executorch")))
    for name in sorted(os.environ):
        if name.startswith(("PUMICE_", "VK_")):
            say(f"{name}={os.environ[name]}")


def _kernels(device: str, say: Callable[[str], None]) -> bool:
    """A line for each operator; whether no case failed."""
    right = [_operator(op, device, say) for op in _CASES]
    return all(right)


def _operator(op: str, device: str, say: Callable[[str], None]) -> bool:
    from pumice import _pumice
    from pumice.cli.kernel import run_kernels

    counts = {"ok": 0, "skipped": 0, "failed": 0}

    def show(fact: dict[str, Any]) -> None:
        if fact["event"] != "row":
            return
        counts[fact["status"]] += 1
        if fact["status"] == "failed":
            say(f"  failed: {fact['kernel']}, {fact['title']}: {fact['why']}")

    given = {"ops": [op], "kernels": ["pick"], "replays": 20, "device": device}
    run_kernels(_pumice.kernel_test, given | ({"cases": [_CASES[op]]} if _CASES[op] else {}), show)
    say(f"kernels of {op}: {counts['ok']} right, {counts['failed']} failed")
    return counts["failed"] == 0
