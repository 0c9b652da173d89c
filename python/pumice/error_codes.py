# SPDX-License-Identifier: Apache-2.0
"""What each code of an error means and what to do about it: the hint of the command line, and docs/errors.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """A code of base/error.h by its number (None: of Python only). `means` and `do` are sentences without a full stop."""

    number: int | None
    error: str  # the class in Python
    means: str
    do: str


_FILE, _INPUT, _DEVICE = "InvalidFileError", "InvalidInputError", "DeviceError"
_DAMAGED = "get the file again, or export it again; the text names the place"

CODES = {
    "BadHeader": Code(1, _FILE, "the first 64 bytes are not those of a .pumice file", "check that it is one: `file` and `pumice check` tell; a .pt2 goes through `pumice export` first"),
    "Truncated": Code(2, _FILE, "the file ends before its sections do", "get it again: a copy or a download was cut short"),
    "UnsupportedVersion": Code(3, _FILE, "the file needs a newer Pumice", "update Pumice where the file runs, or export with the version that runs it"),
    "ChecksumMismatch": Code(4, _FILE, "bytes changed since the file was written", "get the file again"),
    "BadSchema": Code(5, _FILE, "the program in the file is not built as docs/format.md says", _DAMAGED),
    "LimitExceeded": Code(6, _FILE, "the file asks for more than a limit allows; the text has both numbers", "raise `max_memory` where the device has more, run smaller shapes, or quantize the model further; limits of the format are in docs/format.md"),
    "BadIndex": Code(7, _FILE, "the file names a value, constant or operator that it does not have", _DAMAGED),
    "BadGraph": Code(8, _FILE, "a call does not fit its operator, or a value is read before it is written", _DAMAGED),
    "BadShape": Code(9, _FILE, "a rank, size or symbol of the file does not fit", _DAMAGED),
    "BadDtype": Code(10, _FILE, "a dtype does not fit", "of a file: get or export it again; at an export: convert the tensor that is named, such as an int64 constant beyond 32 bits"),
    "BadQuantParams": Code(11, "UnsupportedError", "a scale or zero point has a value that is no real scale, or integers are beyond their type", "quantize the layer that is named again; look for NaN or zeros in its weight"),
    "UnknownOp": Code(12, "UnsupportedError", "no operator computes a node of the model; of a file: this build lacks an operator", "each reason has the line of the model and what to do instead: docs/limits.md"),
    "WeightsMismatch": Code(13, _FILE, "external constants have other bytes than the file expects", "give the constants that were written with the file"),
    "PathRejected": Code(14, _FILE, "the path is no regular file", "give the path of a file, not of a folder, pipe or device"),
    "IoError": Code(15, _FILE, "the system cannot read or write a file", "the text has the system's reason: a missing file, no permission, a full disk"),
    "InvalidArgument": Code(32, _INPUT, "an argument, option or tensor does not fit", "the text says what was expected and what came: compare with `pumice inspect`, or `session.inputs`"),
    "WrongState": Code(33, _INPUT, "the object is closed, or a failed run has left the states of a model undefined", "load again after `close()`; call `session.reset()` after a run that was cancelled or failed"),
    "Busy": Code(34, _INPUT, "the object is in use by a call that has not ended", "wait for that call"),
    "Cancelled": Code(35, "CancelledError", "`Session.cancel()` or Ctrl-C ended the run", "nothing: run again when you want the result"),
    "Timeout": Code(64, _DEVICE, "a load or a run took longer than its limit", "raise `max_seconds` or `timeout_ms`, or run a smaller shape; a CPU driver is slow"),
    "OutOfHostMemory": Code(65, _DEVICE, "the process cannot get memory", "free memory, or raise the limit of the process"),
    "OutOfDeviceMemory": Code(66, _DEVICE, "the device has no memory left", "close other sessions, run smaller shapes, or quantize the model further; `session.needs` has the bytes by kind"),
    "DeviceUnsupported": Code(67, _DEVICE, "no such device, or it lacks what the model needs", "`pumice devices` lists what there is; where there is nothing, install the Vulkan loader and a driver (Debian: libvulkan1, mesa-vulkan-drivers) or name their files in PUMICE_VULKAN_LOADER and VK_DRIVER_FILES; a CPU driver is taken only when named"),
    "DeviceLost": Code(68, _DEVICE, "the driver lost the device", "load again; if it comes again, run `pumice doctor`, update the driver, and report it with the model"),
    "MissingPackage": Code(None, "Error", "a Python package is not installed", "`pip install 'pumice[export]'`, for language models `'pumice[export,llm]'`"),
    "Internal": Code(96, "Error", "a mistake of Pumice itself", "please report it with the model and the output of `pumice doctor`"),
}  # fmt: skip


def hint(name: str) -> str:
    """What to do about an error of that code, and the command that tells more; empty for a code that is not known."""
    return f"{CODES[name].do} (more: pumice explain {name})" if name in CODES else ""


def explanation(name: str) -> str:
    """What `pumice explain` prints of a code: the row of docs/errors.md."""
    code = CODES[name]
    number = "" if code.number is None else f", {code.number} in C"
    page = f"docs/errors.md#{name.lower()}"
    head = f"{name}: pumice.{code.error} in Python{number}"
    return f"{head}\n  means: {code.means}\n  what to do: {code.do}\n  page: {page}"
