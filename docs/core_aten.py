# SPDX-License-Identifier: Apache-2.0
"""Core ATen, the overloads that torch tags `core`: which of them run, and why the others do not. For generate_ops.py
and test/docs/test_core_aten.py."""

from __future__ import annotations

import torch

from pumice.lowering.registry import targets
from pumice.passes.complex_pairs import TRANSFORMS
from pumice.passes.decompositions import decompositions
from pumice.passes.random_numbers import RANDOM

# Of what torch.export writes as an integer expression: the runtime computes these from the shapes of a call.
SIZES = {
    "sym_is_contiguous.default",
    "sym_numel.default",
    "sym_size.int",
    "sym_storage_offset.default",
    "sym_stride.int",
}
_DATA = "the size of its result depends on the data: compute a mask, or the k largest by topk, and keep the size"
_TRAINING = "of training"
WHY_NOT = {
    "_adaptive_avg_pool2d_backward.default": _TRAINING,
    "_local_scalar_dense.default": "a number that the host reads; an integer that places something runs",
    "_native_batch_norm_legit.default": "a form that writes into its arguments; its functional form, of a module, runs",
    "atan2.out": "a form that writes into its argument; torch.export writes atan2.default, which runs",
    "avg_pool2d_backward.default": _TRAINING,
    "convolution_backward.default": _TRAINING,
    "embedding_dense_backward.default": _TRAINING,
    "max_pool2d_with_indices_backward.default": _TRAINING,
    "native_group_norm_backward.default": _TRAINING,
    "native_layer_norm_backward.default": _TRAINING,
    "nonzero.default": _DATA,
    "resize_.default": "a form that changes its argument; torch.export refuses it",
}


def core_aten() -> list[str]:
    """The names of all overloads tagged `core`, without their namespace."""
    names = set()
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        packet = getattr(torch.ops.aten, name, None) if namespace == "aten" else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and torch.Tag.core in overload.tags:
            names.add(_name(overload))
    return sorted(names)


def runs() -> set[str]:
    """Those that the exporter has a lowering for, takes apart, draws, transforms, or writes as a size."""
    known = {_name(target) for target in [*targets(), *decompositions(dropout=True), *RANDOM, *TRANSFORMS]}
    return {name for name in core_aten() if (name in known or name in SIZES) and name not in WHY_NOT}


def table() -> list[str]:
    """Lines of Markdown: the count, and a row for each that does not run."""
    names, running = core_aten(), runs()
    lines = [f"Core ATen: {len(running)} of {len(names)}. The others:", "", "| overload | why not |", "|---|---|"]
    return lines + [f"| `{name}` | {WHY_NOT[name]} |" for name in names if name not in running]


def _name(target: object) -> str:
    return str(target).removeprefix("aten.")
