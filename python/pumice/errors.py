# SPDX-License-Identifier: Apache-2.0
"""The errors of Pumice, each with a code (a name of runtime/error.h), a stage, and the object it is about."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """Anything Pumice refuses or cannot do."""

    def __init__(self, message: str, *, code: str = "Internal", stage: str = "api", path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.stage = stage
        self.path = path


class UnsupportedError(Error):
    """The model asks for something Pumice has no operator for. `reasons` has one item for every refused node."""

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


class InvalidFileError(Error):
    """A .pumice file that is damaged, truncated, or of another version."""


class InvalidInputError(Error):
    """An argument, an option or a tensor that does not fit."""


class DeviceError(Error):
    """No such device, or one that failed, was lost or ran out of memory."""
