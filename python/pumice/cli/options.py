# SPDX-License-Identifier: Apache-2.0
"""Options and argument forms that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Commands(click.Group):
    """Lists commands in the order in which they were added, and answers a misspelt one with the nearest."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """The command of that name; a usage error names the nearest."""
        from difflib import get_close_matches

        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.commands:
            near = get_close_matches(name, self.commands, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; commands: {', '.join(self.commands)}"
            raise click.UsageError(f"no command '{name}'{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command's help, wrapped where click would cut it."""
        first = {
            name: " ".join((command.help or "").split("\n\n")[0].split()) for name, command in self.commands.items()
        }
        rows = [(name, text.partition(". ")[0].rstrip(".") + ".") for name, text in first.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs instead of a table for people."
)


def device_options(command: Any) -> Any:
    """--device, --features, --cache-dir, as in pumice.load."""
    for option in (
        click.option("--cache-dir", help="Where compiled pipelines are kept ('off': nowhere). [$PUMICE_CACHE_DIR]"),
        click.option(
            "--features", help="Switch optional features off: '-coopmat,-int_dot', or 'none'. [$PUMICE_FEATURES]"
        ),
        click.option(
            "--device", help="Index, part of the name, or UUID, as `pumice devices` lists them. [$PUMICE_DEVICE]"
        ),
    ):
        command = option(command)
    return command


def budget_options(command: Any) -> Any:
    """--max-memory, --max-seconds, as in pumice.load."""
    for option in (
        click.option("--max-seconds", type=float, help="Limit of the load in seconds. [60]"),
        click.option(
            "--max-memory", type=int, help="Limit of the model's memory in bytes. [80 % of the device's largest heap]"
        ),
    ):
        command = option(command)
    return command
