# SPDX-License-Identifier: Apache-2.0
"""`pumice devices` and `pumice doctor`."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform

import click

from pumice.cli import tables
from pumice.cli.options import json_option


def _no_device() -> str:
    import pumice

    return (
        f"no Vulkan device: {pumice.why_no_devices()}\n  what to do: install the Vulkan loader and a driver (Debian:"
        " libvulkan1, mesa-vulkan-drivers), or name their files in PUMICE_VULKAN_LOADER and VK_DRIVER_FILES"
    )


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


@click.command()
def doctor() -> None:
    """Versions, driver, settings and a self test, as a block to paste into an issue."""
    import pumice

    def version(package: str) -> str:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"

    click.echo(f"pumice {pumice._pumice.version()}, Python {platform.python_version()}, {platform.platform()}")
    click.echo(", ".join(f"{package} {version(package)}" for package in ("numpy", "torch", "torchao", "executorch")))
    for name in sorted(os.environ):
        if name.startswith(("PUMICE_", "VK_")):
            click.echo(f"{name}={os.environ[name]}")
    found = pumice.devices()
    if not found:
        click.echo(_no_device())
        raise SystemExit(4)
    for device in found:
        click.echo(
            f"device {device.index}: {device.name} ({device.kind}), driver {device.driver} {device.driver_version}, "
            f"Vulkan {device.api_version}"
        )
        click.echo(f"  features: {' '.join(device.features) or 'none'}")
        for bug in device.driver_bugs:
            click.echo(f"  driver bug: {bug['off']}: {bug['why']}, {bug['link']}")
    from pumice.runtime.selftest import self_test

    try:
        click.echo(f"self test: {self_test()}")
    except pumice.Error as error:
        click.echo(f"self test: {error} [{error.code}]")
        raise SystemExit(4) from None
