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
def devices(as_json: bool) -> None:
    """List every Vulkan device, CPU drivers included, with what Pumice can use of it."""
    import pumice

    found = pumice.devices()
    if as_json:
        click.echo(json.dumps({"schema": 1, "devices": [device.to_dict() for device in found]}, indent=1))
        return
    if not found:
        click.echo(_no_device(), err=True)
        raise SystemExit(4)
    for device in found:
        size = device.limits["subgroup_size"]
        tables.line(f"{device.index}: {device.name} ({device.kind}), Vulkan {device.api_version}, subgroups of {size}")
        tables.field("driver", f"{device.driver} {device.driver_version}")
        tables.field("features", " ".join(device.features) or "none")
        tables.field("kernels", " ".join(device.kernels) or "baseline")


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
    from pumice.runtime.selftest import self_test

    try:
        click.echo(f"self test: {self_test()}")
    except pumice.Error as error:
        click.echo(f"self test: {error} [{error.code}]")
        raise SystemExit(4) from None
