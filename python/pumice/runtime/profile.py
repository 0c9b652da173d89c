# SPDX-License-Identifier: Apache-2.0
"""A row of `Session.profile`: one dispatch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class ProfileRow:
    """One dispatch or copy of a profiled run. Times are in microseconds, sizes in bytes."""

    operator: str
    kernel: str
    shape: str  # of every tensor that the dispatch reads -> writes
    microseconds: float
    bytes: int  # read and written, from the shapes
    flops: int
    source: str = ""  # line of the model, with the layer
    start_us: float = 0.0  # since the first row began
    call: int = -1  # number of the operator call in the method, as `pumice inspect --ops` lists them; -1: a copy
    operands: str = ""  # of the call, by name: "x up.weight up.bias -> #7"; a value without a name is its number
    layer: str = ""  # the submodule, as named_modules() has it
    split: bool = False  # a product of fp32 as sums of fp16 products (docs/kernels.md)
    gb_per_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.gb_per_s = self.bytes / self.microseconds / 1e3 if self.microseconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict, for JSON."""
        return asdict(self)


def layer_of(source: str) -> str:
    """The submodule of a call's source: of "model.py:12 (encoder.layer.0)", or of "encoder.layer.0" alone, where all
    lines are torch's own. Empty where only a line is named."""
    found = re.search(r"\(([^()]*)\)$", source)
    if found:
        return found[1]
    return "" if re.search(r":\d+$", source) else source


def profile_row(facts: Mapping[str, Any]) -> ProfileRow:
    """A row of the JSON of pumice_session_profile."""
    source = facts["source"]
    return ProfileRow(
        facts["op"], facts["kernel"], facts["shapes"], float(facts["us"]), int(facts["bytes"]), int(facts["flops"]),
        source, float(facts["start_us"]), int(facts["call"]), facts["operands"], layer_of(source), bool(facts["split"]),
    )  # fmt: skip
