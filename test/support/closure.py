# SPDX-License-Identifier: Apache-2.0
"""What is accepted, run: the samples of closure_samples.py and those of torch's operator database, and what became of
each in test/ops/closure.json.

python -m support.closure [samples|partitioner|database ...]   records all again, or these"""

from __future__ import annotations

import copy
import itertools
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch.export import ExportedProgram

import pumice
from pumice.executorch import PumicePartitioner
from pumice.format import ir
from pumice.lowering.optable import Signature, op_table
from support import operator_database, quick_export
from support.closure_samples import Sample, samples

RECORD = Path(__file__).parents[1] / "ops/closure.json"
AGAIN = "where that is meant: cd test && python -m support.closure"
PARTS = ("samples", "partitioner", "database")
RTOL = {torch.float16: 4e-3, torch.float32: 2e-5}  # the budgets proper are those of each operator's own test
# What the native table has and no program: a cast to the same dtype is none.
NOTHING_TO_DO = {f"cast {name} {name}" for name in ("f32", "f16", "i32", "i64", "u8", "bool", "i8")}


def rows() -> set[str]:
    """ "OPERATOR [DTYPE] [DTYPE of results] [TEXTURES]" for all that the native table accepts, a line each."""
    found = set()
    for (name, _), signature in op_table().items():
        accepts = signature.accepts
        x, weight = (accepts.get(what, ("buffer",)) for what in ("storage", "weight_storage"))
        dtypes = itertools.product(accepts.get("tensors", ("",)), accepts.get("results", ("",)))
        found |= {_row(name, *each) for each in itertools.product(dtypes, x, weight)}
    return found - NOTHING_TO_DO


def _row(name: str, dtypes: tuple[str, ...], *storages: str) -> str:
    return " ".join(filter(None, [name, *dtypes, *(storage for storage in storages if storage != "buffer")]))


def rows_of(program: ir.Program) -> set[str]:
    """Those that a program has."""
    (method,) = program.methods
    return {_of_call(method, call, op_table()[call.op, call.version]) for call in method.ops}


def _of_call(method: ir.Method, call: ir.OpCall, signature: Signature) -> str:
    args = [item for arg in call.args for item in (arg if isinstance(arg, list) else [arg])]
    tensors = [method.values[arg.index] for arg in args if isinstance(arg, ir.ValueId)]
    weights = [
        method.values[arg.index]
        for parameter, arg in zip(signature.parameters, call.args, strict=True)
        if parameter.name == "weight" and isinstance(arg, ir.ValueId) and "weight_storage" in signature.accepts
    ]
    results = [method.values[index] for index in call.outputs]
    named = [("tensors", tensors), ("results", results)]
    dtypes = tuple(values[0].dtype.name for what, values in named if what in signature.accepts)
    may_be = [("storage", tensors), ("result_storage", results)]
    x = {values[0].storage.name for what, values in may_be if values and len(signature.accepts[what]) > 1}
    return _row(call.op, dtypes, *sorted(x - {"buffer"}), *(value.storage.name for value in weights))


def choice(storage: str) -> Any:
    """The export option `storage` that puts activations, weights or both into textures."""
    kinds = {"texture3d": ("input", "result"), "texture2d": ("weight",)}
    chosen = {kind for word in storage.split() for kind in kinds.get(word, ())}
    return lambda value: "texture" if value.kind in chosen else "buffer"


def capture(sample: Sample) -> tuple[ExportedProgram, tuple[torch.Tensor, ...], list[torch.Tensor]]:
    """The exported program, its inputs, and what eager PyTorch gives."""
    module, inputs = sample.make()
    module = module.eval()
    with torch.no_grad():
        want = tensors_of(copy.deepcopy(module)(*copy.deepcopy(inputs)))
        program = torch.export.export(module, inputs, dynamic_shapes=sample.dynamic)
    return program, inputs, want


def outcome(sample: Sample) -> dict[str, Any]:
    """Each storage's rows, run and compared; "refused CODE" instead where export refuses."""
    program, inputs, want = capture(sample)
    found: dict[str, Any] = {}
    for storage in sample.storages:
        try:
            chosen = "buffer" if sample.is_chain else choice(storage)
            made = pumice.export(program, options={"storage": chosen, "seed": 0})
        except pumice.UnsupportedError as error:
            found[storage] = f"refused {error.code}"
            continue
        compare(tensors_of(pumice.load(bytes(made))(*copy.deepcopy(inputs))), want, sample)
        found[storage] = sorted(rows_of(made.ir))
    return found


def partitioned() -> list[str]:
    """One sample of each kind, which has its dtype as a second word: what ExecuTorch makes of a graph before a
    partitioner sees it goes by operators, not by dtypes."""
    return list({name.split()[0]: name for name in reversed(samples())}.values())


def delegated(sample: Sample) -> list[str]:
    """What ExecuTorch's partitioner takes, by operator, and what it leaves, as "left TARGET"."""
    program, _, _ = capture(sample)
    partitioner = PumicePartitioner()
    unchecked = EdgeCompileConfig(_check_ir_validity=False)  # ExecuTorch knows no exp2, delegated or not
    to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=unchecked)
    report = partitioner.report
    assert report is not None
    return sorted({*report.operators, *(f"left {reason.target}" for reason in report.reasons)})


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All tensors of a nest of lists, tuples and dicts."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def compare(got: list[torch.Tensor], want: list[torch.Tensor], sample: Sample) -> None:
    """Shapes, dtypes and values; a failure names the result by its number."""
    assert len(got) == len(want)
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{sample.name}, result {index}: {a.dtype}{list(a.shape)}"
        if sample.is_open:
            continue
        atol = RTOL.get(b.dtype, 0.0)
        if b.dtype.is_floating_point:
            atol += sample.tolerance * float(b.nan_to_num(0, 0, 0).abs().max())
        close = torch.isclose(a, b, rtol=RTOL.get(b.dtype, 0.0), atol=atol, equal_nan=True)
        if sample.step and not b.dtype.is_floating_point:
            close = (a.int() - b.int()).abs() <= sample.step
        assert close.all(), f"{sample.name}, result {index}: {a[~close][:4]}, not {b[~close][:4]}"


def difference(name: str, found: Any, recorded: Mapping[str, Any]) -> str:
    """What became another thing, as a sentence; empty when nothing did."""
    known = recorded.get(name)
    return "" if found == known else f"{name}: {found}, recorded is {known}; {AGAIN}"


def covered(found: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The rows of accepted samples."""
    return {row for storages in found.values() for rows in storages.values() if isinstance(rows, list) for row in rows}


def named(info: Any, dtype: torch.dtype) -> str:
    """A first sample of the database."""
    return f"{info.name} {str(dtype).removeprefix('torch.')}"


def recorded() -> dict[str, dict[str, Any]]:
    return json.loads(RECORD.read_text(encoding="utf-8"))


def record(part: str) -> dict[str, Any]:
    if part == "samples":
        return {name: outcome(sample) for name, sample in samples().items()}
    if part == "partitioner":
        return {name: delegated(samples()[name]) for name in partitioned()}
    return {
        named(info, dtype): told.told or told.kind
        for info in operator_database.database()
        for dtype in operator_database.dtypes(info)
        for told in [operator_database.outcome(info, dtype=dtype)]
    }


def main() -> None:
    warnings.simplefilter("ignore")
    os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")
    quick_export.install()
    found = {part: record(part) for part in sys.argv[1:] or PARTS}
    kept = recorded() if RECORD.exists() else {}
    RECORD.write_text(json.dumps(kept | found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
