# SPDX-License-Identifier: Apache-2.0
"""What a caller of pumice.export may choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from pumice.errors import InvalidInputError, require
from pumice.format.ir import Precision

CHOICES = ("buffer", "texture")
PRECISIONS = tuple(precision.name for precision in Precision)


@dataclass(frozen=True)
class ValueInfo:
    """A value that could be in a texture. `name`: of an input, of a node of the exported graph (node.1: its second
    result), or of a weight; empty for what is between the operators of one node. A dynamic size is None."""

    name: str
    kind: str  # "input", "result" or "weight"
    dtype: str
    shape: tuple[int | None, ...]


Choice = str | Mapping[str, str] | Callable[[ValueInfo], str]


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of pumice.export; an unknown one is refused with the nearest name.

    strict: capture with TorchDynamo instead of running the module's own Python (torch.export's `strict`).
    bf16: what bfloat16 weights and activations become on the device: "f32" (exact) or "f16" (smaller, narrower range).
    float64: "refused", or "as_float32": what is float64 is computed in f32, inputs and results included, as the report
        says. What is made of constants alone is computed in float64 in both cases, and then rounded.
    precision: what products and attention of fp32 are computed in. "split": sums of fp16 products of halves where a
        device is faster so, with the bound of docs/kernels.md, else fp32. "fp32": fp32 arithmetic alone. "fp16": what
        the module computes when its weights, buffers and inputs are turned into fp16; inputs and results keep their
        dtypes. The module itself is needed and not changed.
    storage: what values are on the device: "buffer"; "texture" where the operators have it, which suits some phones;
        or one of the two for each value, by a mapping of names (of inputs, nodes and weights, as in the report) or by
        a function of a ValueInfo. Elsewhere values are copied between the two.
    without_fusion: patterns of pumice/fusion that are left out, by the names of their files, to look for the cause of a
        difference: ("residual",). Some quantized models run by a pattern only.
    weights: what reads a parameter or a buffer when the file is written, by its name in the module. The module then
        has a tensor of that shape and dtype there, whose values nobody reads: a model larger than the memory.
    input_updates: take a model that writes into an input, x.copy_(y): the next step of the same call (Session.run with
        steps) has the new value there, on the device; the caller's tensor stays as it is. Else it is refused.
    seed: of the random numbers that the model draws, 0 to 2^64 - 1; Session.seed gives another one later. None: 0, and
        a dropout in training, which is mostly a forgotten model.eval(), is refused.
    """

    strict: bool = False
    bf16: str = "f32"
    float64: str = "refused"
    precision: str = "split"
    storage: Choice = "buffer"
    without_fusion: Sequence[str] = ()
    weights: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    input_updates: bool = False
    seed: int | None = None

    def __new__(cls, *_: Any, **given: Any) -> ExportOptions:
        """Raises InvalidInputError for an option that is not known; its message has the nearest name."""
        for name in given:
            require(name, (f.name for f in fields(cls)), "export option")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        require(self.bf16, ("f32", "f16"), "value of the export option bf16:")
        require(self.precision, PRECISIONS, "value of the export option precision:")
        if self.weights and self.precision == "fp16":
            text = "the export option precision='fp16' reads weights at once: leave weights out, or give an fp16 module"
            raise InvalidInputError(text, code="InvalidArgument", path="precision")
        require(self.float64, ("refused", "as_float32"), "value of the export option float64:")
        if type(self.input_updates) is not bool:
            text = f"the export option input_updates: True or False, not {self.input_updates!r}"
            raise InvalidInputError(text, code="InvalidArgument", path="input_updates")
        if self.seed is not None and (type(self.seed) is not int or not 0 <= self.seed < 2**64):
            text = f"the export option seed: a whole number from 0 to 2^64 - 1, not {self.seed!r}"
            raise InvalidInputError(text, code="InvalidArgument", path="seed")
        if isinstance(self.storage, str):
            require(self.storage, CHOICES, "value of the export option storage:")
        elif not isinstance(self.storage, Mapping) and not callable(self.storage):
            text = f"the export option storage: a word, a mapping or a function, not {self.storage!r}"
            raise InvalidInputError(text, code="InvalidArgument", path="storage")

    @staticmethod
    def of(value: ExportOptions | Mapping[str, Any] | None) -> ExportOptions:
        """Options as given: an ExportOptions, a mapping of names to values, or None for the defaults."""
        if value is None:
            return ExportOptions()
        return value if isinstance(value, ExportOptions) else ExportOptions(**value)
