# SPDX-License-Identifier: Apache-2.0
"""`pumice explain`."""

from __future__ import annotations

import click

from pumice.error_codes import CODES, explanation
from pumice.errors import require


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """What an error means and what to do about it: CODE is the name or number in its message, as BadShape or 9.

    Without CODE all of them. The same is in docs/errors.md; the name is in a message's [brackets], and `error.code`.
    """
    if code is None:
        for name, each in CODES.items():
            click.echo(f"{name:{max(map(len, CODES))}}  {each.means}")
        return
    names = {name.lower(): name for name in CODES} | {str(each.number): name for name, each in CODES.items()}
    click.echo(explanation(names.get(code.lower()) or require(code, CODES, "code of an error")))
