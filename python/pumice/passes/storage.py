# SPDX-License-Identifier: Apache-2.0
"""Buffers and textures: sets what ExportOptions.storage asks for, where the operators' shaders have it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pumice.errors import UnsupportedError, require
from pumice.format import ir
from pumice.lowering.lower import Lowered
from pumice.lowering.optable import Signature, op_table
from pumice.lowering.options import CHOICES, Choice, ValueInfo

# Along an axis: Vulkan promises 4096 and 256, phones in use have at least 4096 and 2048.
_TEXELS_2D, _TEXELS_3D = 4096, 2048
_BITS = {ir.DType.f32: 32, ir.DType.f16: 16, ir.DType.i8: 8, ir.DType.i4: 4}  # of weights
_MAX_SHOWN = 8  # names in a note


def place_storage(lowered: Lowered, choice: Choice) -> None:
    """Sets the storage of the program's values and says so in its report; nothing where only buffers are asked for."""
    method, report = lowered.program.methods[0], lowered.report
    notes = _place(method, lowered.names, choice)
    report.notes = list(dict.fromkeys([*report.notes, *notes]))
    textures = {
        name: method.values[index].storage.name
        for index, name in lowered.names.items()
        if method.values[index].storage is not ir.Storage.buffer
    }
    for row in report.rows:
        row.storage = textures.get(row.node, "")


def _place(method: ir.Method, names: Mapping[int, str], choice: Choice) -> list[str]:
    """Sets the storage of the method's values; returns notes for the report."""
    possible = _possible(method)
    if isinstance(choice, Mapping):
        _check_names(choice, set(names.values()), {names.get(index, "") for index in possible})
    large = []
    for index, storage in possible.items():
        value = method.values[index]
        if _choose(choice, _info(value, names.get(index, ""))) != "texture":
            continue
        if choice == "texture" and _is_large(value, storage):  # one asked for by name is left to the device
            large.append(index)
        else:
            value.storage = storage
    count = {storage: sum(value.storage is storage for value in method.values) for storage in ir.Storage}
    textures, weights = count[ir.Storage.texture3d], count[ir.Storage.texture2d]
    notes = [f"storage: {textures} values and {weights} weights are textures"] if textures or weights else []
    if choice == "texture":
        kept = [index for index in _candidates(method) if index not in possible]
        notes += _kept("no operator that reads or writes them takes textures", kept, names)
        notes += _kept("larger than textures of many devices", large, names)
    return notes


def _kept(why: str, values: list[int], names: Mapping[int, str]) -> list[str]:
    shown = [name for index in values if (name := names.get(index, ""))][:_MAX_SHOWN]
    more = f" and {len(values) - len(shown)} more" if shown and len(values) > len(shown) else ""
    text = f": {', '.join(shown)}{more}" if shown else ""
    return [f"storage: {len(values)} stay buffers, {why}{text}"] if values else []


def _candidates(method: ir.Method) -> list[int]:
    """What a user might expect in a texture: activations, and constants that are weights."""
    weights = {
        arg.index
        for call in method.ops
        for parameter, arg in zip(op_table()[call.op, call.version].parameters, call.args, strict=True)
        if isinstance(arg, ir.ValueId) and parameter.name == "weight"
    }
    skipped = (ir.ValueKind.constant, ir.ValueKind.state)
    return [i for i, value in enumerate(method.values) if i in weights or value.kind not in skipped]


def _is_large(value: ir.Value, storage: ir.Storage) -> bool:
    """Whether a texture of the value, as far as its sizes are known, is too large for some devices."""
    sizes = [size if isinstance(size, int) else 1 for size in value.dims]
    if storage is ir.Storage.texture2d:
        rows, columns = (-(-size // step) * step for size, step in zip(sizes, (16, 64), strict=True))
        vectors = rows * columns * _BITS[value.dtype] // 128
        return -(-vectors // 4096) > _TEXELS_2D
    columns, height = sizes[-1] if sizes else 1, sizes[-2] if len(sizes) > 1 else 1
    return max(-(-columns // 4), height, math.prod(sizes[:-2])) > _TEXELS_3D


def _possible(method: ir.Method) -> dict[int, ir.Storage]:
    """The texture that some operator reads or writes a value as."""
    found: dict[int, ir.Storage] = {}
    for call in method.ops:
        signature = op_table()[call.op, call.version]
        for parameter, arg in zip(signature.parameters, call.args, strict=True):
            texture = (
                _taken(signature, parameter.name, method.values[arg.index]) if isinstance(arg, ir.ValueId) else None
            )
            found.update({arg.index: texture} if texture else {})
        if "texture3d" in signature.accepts.get("result_storage", ()):
            found.update(dict.fromkeys(call.outputs, ir.Storage.texture3d))
    return found


def _taken(signature: Signature, parameter: str, value: ir.Value) -> ir.Storage | None:
    """The texture that an operator reads an argument as."""
    if value.kind is ir.ValueKind.constant:
        packed = parameter == "weight" and "texture2d" in signature.accepts.get("weight_storage", ())
        return ir.Storage.texture2d if packed else None
    activation = "texture3d" in signature.accepts.get("storage", ())
    taken = activation and parameter in ("x", "residual") and value.kind is not ir.ValueKind.state
    return ir.Storage.texture3d if taken else None


def _info(value: ir.Value, name: str) -> ValueInfo:
    kinds = {ir.ValueKind.input: "input", ir.ValueKind.constant: "weight"}
    shape = tuple(size if isinstance(size, int) else None for size in value.dims)
    return ValueInfo(name, kinds.get(value.kind, "result"), value.dtype.name, shape)


def _choose(choice: Choice, info: ValueInfo) -> str:
    if isinstance(choice, str):
        return choice
    chosen = choice.get(info.name, "buffer") if isinstance(choice, Mapping) else choice(info)
    return require(chosen, CHOICES, f"storage of '{info.name}':")


def _check_names(choice: Mapping[str, str], names: set[str], possible: set[str]) -> None:
    for name, chosen in choice.items():
        require(name, names - {""}, "value in the export option storage:")
        if chosen == "texture" and name not in possible:
            text = f"storage: no operator that reads or writes '{name}' takes a texture; leave it a buffer"
            raise UnsupportedError(text, [text], code="BadSchema", path=name)
