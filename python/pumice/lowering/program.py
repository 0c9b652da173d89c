# SPDX-License-Identifier: Apache-2.0
"""`Program`: what pumice.export returns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pumice.errors import Error, UnsupportedError
from pumice.format import ir, writer
from pumice.lowering.report import Report


class Program:
    """An exported program: `report` says what became of every node; bytes(program) and save() give the file."""

    def __init__(self, program: ir.Program, report: Report) -> None:
        self.ir = program
        self.report = report

    def __bytes__(self) -> bytes:
        with _constants_checked():
            return writer.to_bytes(self.ir)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file under a temporary name and renames it: a reader sees all of it or nothing.

        Raises Error (IoError) when that fails, UnsupportedError for constants that an operator cannot take.
        """
        try:
            with _constants_checked():
                writer.save(self.ir, path)
        except OSError as error:
            text = f"cannot write {os.fspath(path)}: {error.strerror}"
            raise Error(text, code="IoError", stage="export", path=os.fspath(path)) from error

    def __repr__(self) -> str:
        calls = sum(self.report.operators.values())
        return f"<pumice.Program: {calls} operator calls, {len(self.ir.constants)} constants>"


@contextmanager
def _constants_checked() -> Iterator[None]:
    """Values are read when a file is written: a lowering's `data` raises ValueError for what they may not be."""
    try:
        yield
    except ValueError as error:
        raise UnsupportedError(str(error), [str(error)], code="BadQuantParams", path="constants") from error
