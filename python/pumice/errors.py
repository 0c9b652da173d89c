# SPDX-License-Identifier: Apache-2.0
"""The errors of Pumice, each with a code (a name of base/error.h), a stage, and the object it is about."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_FEW = 6  # names that fit into a message beside the nearest


class Error(Exception):
    """Anything Pumice refuses or cannot do."""

    def __init__(self, message: str, *, code: str = "Internal", stage: str = "api", path: str = "") -> None:
        super().__init__(message)
        self.add_note(f"what to do: pumice explain {code}")  # a traceback ends with it; it is no part of str(error)
        self.code = code
        self.stage = stage
        self.path = path


class UnsupportedError(Error):
    """The model asks for something Pumice has no operator for. `reasons` has one item for every refused node; `report`,
    where the model got that far, has all nodes."""

    def __init__(
        self,
        message: str,
        reasons: Sequence[object] = (),
        *,
        code: str = "UnknownOp",
        stage: str = "export",
        path: str = "",
    ) -> None:
        super().__init__(message, code=code, stage=stage, path=path)
        self.reasons = list(reasons)
        self.report: object = None


class InvalidFileError(Error):
    """A .pumice file that is damaged, truncated, or of another version."""


class InvalidInputError(Error):
    """An argument, an option or a tensor that does not fit."""


class CancelledError(Error):
    """A run that `Session.cancel()` ended."""


class DeviceError(Error):
    """No such device, or one that failed, was lost or ran out of memory."""


def require(name: str, known: Iterable[str], what: str) -> str:
    """`name`, or an InvalidInputError that names the nearest of `known`, and all of them where they are few."""
    names = sorted(known)
    if name in names:
        return name
    text = str(name)
    ratios = {each: difflib.SequenceMatcher(None, text, each).ratio() for each in names}
    best = max(ratios.values(), default=0.0)
    near = [f"'{each}'" for each in names if ratios[each] == best >= 0.6]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    if not near or len(names) <= _FEW:
        hint += f"{' ' if near else '; '}known: {', '.join(names)}"
    raise InvalidInputError(f"unknown {what} '{text}'{hint}", code="InvalidArgument", path=text)


def from_native(code: int, name: str, stage: str, path: str, text: str) -> Error:
    """The exception for an error of the runtime, by the group its code is in (base/error.h, enum Code)."""
    groups = ((range(1, 32), InvalidFileError), (range(32, 64), InvalidInputError), (range(64, 96), DeviceError))
    kind = next((error for codes, error in groups if int(code) in codes), Error)
    if name == "Cancelled":
        kind = CancelledError
    return kind(f"{path}: {text}" if path and path not in text else text, code=name, stage=stage, path=path)
