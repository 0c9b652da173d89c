# SPDX-License-Identifier: Apache-2.0
"""Tables that lose nothing: as wide as they need where the output is a pipe or a file, folded on a narrow terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_NO_LIMIT = 100_000


def new(*columns: str, left: Iterable[str] = (), plain: bool = False) -> Table:
    """A table with these columns, numbers (right) but for those in `left`; text that does not fit goes on below."""
    table = Table(box=None if plain else box.SIMPLE_HEAD, padding=(0, 2) if plain else (0, 1))
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", overflow="fold")
    return table


def add(table: Table, *cells: str) -> None:
    """A row of text; "[x]" in it is no markup."""
    table.add_row(*map(escape, cells))


def show(table: Table, title: str = "") -> None:
    """Prints the title and the table to stdout."""
    console = Console()
    if title:
        line(title)
    if not console.is_terminal:
        console = Console(width=Console(width=_NO_LIMIT).measure(table).maximum)
    console.print(table)


def is_wide() -> bool:
    """Whether there is room for columns of long text: on a wide terminal, in a pipe or a file."""
    console = Console()
    return not console.is_terminal or console.width >= 140


def line(text: str, style: str | None = None) -> None:
    """Prints a line that nothing cuts or breaks."""
    Console().print(text, style=style, soft_wrap=True, markup=False, highlight=False)


def field(name: str, words: str) -> None:
    """Prints "  name  words", with a hanging indent on a terminal."""
    console = Console()
    width = console.width if console.is_terminal else _NO_LIMIT
    start = f"  {name:10}"
    line(textwrap.fill(words, max(width, 40), initial_indent=start, subsequent_indent=" " * len(start)))
