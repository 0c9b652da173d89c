# SPDX-License-Identifier: Apache-2.0
"""The command `pumice`. stdout has data, stderr messages.

Exit codes: 0 done, 1 an exception of a FILE.py or a failed test, 2 usage, 3 unsupported or refused, 4 device,
130 Ctrl-C.
"""

from __future__ import annotations

import sys

import click

from pumice import _pumice
from pumice.cli import (
    bench,
    cache,
    compare,
    devices,
    explain,
    export,
    inspect,
    kernel,
    llm,
    quantize,
    report,
    run,
    tune,
    warm,
)
from pumice.cli.options import Commands
from pumice.error_codes import hint
from pumice.errors import DeviceError, Error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(_pumice.version(), prog_name="pumice")
def cli() -> None:
    """Quantized PyTorch models on any Vulkan GPU.

    \b
    pumice export model.py:build --quantize int4 -o m.pumice    PyTorch -> file
    pumice run m.pumice --inputs ids.npy --outputs out/         file -> answers
    pumice bench m.pumice --shape ids=1x128                     how fast
    pumice report m.pumice --profile                            a page: layers, times, memory
    pumice quantize model.py:build int4                         what a scheme makes of each layer
    pumice compare model.py:build --quantize int4               which layer costs the accuracy
    pumice tune m.pumice                                        faster on this device
    pumice warm m.pumice --size seq=16,64                       no pauses for compiling
    pumice llm --help                                           language models: export, chat, generate
    pumice devices                                              where it can run
    pumice explain BadShape                                     what an error means, what to do

    The device is --device, else $PUMICE_DEVICE, else the best GPU; a CPU driver (llvmpipe) only when named.
    """


for command in (
    export.export,
    quantize.quantize,
    run.run,
    inspect.inspect,
    inspect.check,
    bench.bench,
    bench.profile,
    report.report,
    compare.compare,
    llm.llm,
    tune.tune,
    warm.warm,
    cache.cache,
    kernel.kernel,
    devices.devices,
    devices.doctor,
    explain.explain,
):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Entry point; every error of ours becomes one message and an exit code."""
    try:
        code = cli.main(args=arguments, prog_name="pumice", standalone_mode=False)
        if isinstance(code, int) and code:  # of ctx.exit
            sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Error as error:
        click.echo(f"pumice: {error} [{error.code}]", err=True)
        if advice := hint(error.code):
            click.echo(f"  what to do: {advice}", err=True)
        sys.exit(4 if isinstance(error, DeviceError) else 3)
