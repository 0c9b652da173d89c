# SPDX-License-Identifier: Apache-2.0
"""What pumice.quantize made of each layer, with bytes before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor, nn

from pumice.format.text import size_text

# What the weights of a scheme are; two layers that share a weight then share the integers.
INTEGERS = {"int4": "int4", "int8": "int8", "8da4w": "int4", "8da8w": "int8"}


@dataclass
class QuantizedLayer:
    """One layer: its scheme or dtype, and bytes of its weight and bias. `note`: why it stayed as it was.

    bytes_after: as the file holds them, scales and zero points included; 0 for a weight that another layer has.
    """

    name: str
    type: str
    became: str
    bytes_before: int
    bytes_after: int
    note: str = ""


@dataclass
class QuantizeSummary:
    """A row for each linear layer, embedding and convolution, and one for all other parameters and buffers.

    str() is a table; layers that differ in their numbers only share a row of it.
    """

    layers: list[QuantizedLayer] = field(default_factory=list)

    @property
    def bytes_before(self) -> int:
        """Of the whole module."""
        return sum(layer.bytes_before for layer in self.layers)

    @property
    def bytes_after(self) -> int:
        """Of the whole module, as a file holds it; less where matrices are equal, which it holds once."""
        return sum(layer.bytes_after for layer in self.layers)

    def __str__(self) -> str:
        groups: dict[tuple[str, ...], list[QuantizedLayer]] = {}
        for layer in self.layers:
            key = re.sub(r"\d+", "*", layer.name), layer.type, layer.became, re.sub(r"\d+", "*", layer.note)
            groups.setdefault(key, []).append(layer)
        rows = [("layer", "type", "count", "became", "before", "after", "")]
        for (pattern, kind, became, _), layers in groups.items():
            sizes = (size_text(sum(getattr(each, f"bytes_{when}") for each in layers)) for when in ("before", "after"))
            name = pattern if len(layers) > 1 else layers[0].name
            rows.append((name, kind, str(len(layers)), became, *sizes, layers[0].note))
        rows.append(("total", "", "", "", size_text(self.bytes_before), size_text(self.bytes_after), ""))
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        right = (2, 4, 5)
        return "\n".join(
            "  ".join(
                cell.rjust(width) if column in right else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, [*widths, 0], strict=True))
            ).rstrip()
            for row in rows
        )


@contextmanager
def summarize(module: nn.Module, chosen: Mapping[str, tuple[str, str]]) -> Iterator[QuantizeSummary]:
    """Around the quantizing; the summary is complete afterwards. `chosen`: (scheme or "", reason) by layer."""
    summary, layers, first = QuantizeSummary(), dict(module.named_modules()), dict[tuple, str]()
    before = {name: {key: (id(t), _bytes(t)) for key, t in _tensors(layers[name])} for name in chosen}
    rest = {id(t): _bytes(t) for name, layer in layers.items() if name not in chosen for _, t in _tensors(layer)}
    yield summary
    seen: set[int] = set()
    for name, (how, note) in chosen.items():
        row = QuantizedLayer(name, type(layers[name]).__name__, how or _dtype(layers[name]), 0, 0, note)
        for key, tensor in _tensors(layers[name]):
            was, size = before[name][key]
            row.bytes_before += 0 if was in seen else size
            seen.add(was)
            other = first.setdefault((was, INTEGERS.get(how, "") if key == "weight" else ""), name)
            if other == name:
                row.bytes_after += _bytes(tensor)
            else:
                row.note = f"the weight of '{other}'"
        summary.layers.append(row)
    size = sum(size for was, size in rest.items() if was not in seen)
    if size:
        summary.layers.append(QuantizedLayer("everything else", "", "", size, size))


def _tensors(layer: nn.Module) -> list[tuple[str, Tensor]]:
    """The parameters and buffers of a layer itself, by name."""
    return [*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)]


def _dtype(layer: nn.Module) -> str:
    weight = layer.weight
    return str(getattr(weight, "target_dtype", weight.dtype)).removeprefix("torch.")


def _bytes(tensor: Tensor) -> int:
    """In the file. torchao's integers have a byte each in memory; int4 takes half of one in the file."""
    integers = getattr(tensor, "qdata", None)
    if integers is None:
        return tensor.numel() * tensor.element_size()
    size = (integers.numel() + 1) // 2 if str(tensor.target_dtype) == "torch.int4" else integers.numel()
    parts = tensor.scale, tensor.zero_point
    return size + sum(part.numel() * part.element_size() for part in parts if part is not None)
