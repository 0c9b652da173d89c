# SPDX-License-Identifier: Apache-2.0
"""What torch.export does again and again though nothing has changed, done once.

Every export overrides the composite operators of torch twice, 22 Python kernels for each of 260 operators, and looks
for them in all libraries: more than half the time of exporting one operator. Here an operator gets the kernels that
torch made for it the first time, as long as it has the same ones before; operators are looked for when there are new.
The table of decompositions and its two parts are made again when there are new operators or the table is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch._export.utils as export_utils
from torch._subclasses.fake_impls import op_implementations_dict as fake_rules
from torch.export import decomp_utils, exported_program

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


def _override_with_kept_kernels(original: Callable) -> Callable:
    """`_override_composite_implicit_decomp` with the kernels that `original` made before."""
    kept: dict[Any, tuple[dict, dict, Callable]] = {}  # kernels before and during, the rule for fake tensors

    def is_kept(op: Any) -> bool:
        return op in kept and op.py_kernels == kept[op][0] and op not in fake_rules

    def set_kernels(op: Any, kernels: Mapping) -> None:
        op.py_kernels.clear()
        op.py_kernels.update(kernels)
        op._dispatch_cache.clear()

    @contextmanager
    def override(decompositions: Mapping[Any, Callable]) -> Iterator[None]:
        known = {op: function for op, function in decompositions.items() if is_kept(op)}
        new = {op: function for op, function in decompositions.items() if op not in known}
        before = {op: dict(op.py_kernels) for op in new if op not in fake_rules}
        with original(new):
            for op, kernels in before.items():
                kept[op] = kernels, dict(op.py_kernels), fake_rules[op]
            for op, function in known.items():
                set_kernels(op, {**kept[op][1], COMPOSITE: function})
                fake_rules[op] = kept[op][2]
            try:
                yield
            finally:
                for op in known:
                    set_kernels(op, kept[op][0])
                    fake_rules.pop(op, None)

    return override


def _libraries() -> tuple[Any, list[int]]:
    """What changes when a library gets operators."""
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    return registered, [len(getattr(getattr(torch.ops, name), "_dir", ())) for name in torch.ops._dir]


def _collect_when_changed(original: Callable) -> Callable:
    """`_collect_all_valid_cia_ops`, asked again only when a library has other operators than before."""
    seen, found = None, set()

    def collect() -> set:
        nonlocal seen, found
        if _libraries() != seen:
            found = original()
            seen = _libraries()  # looking for them loads some
        return found

    return collect


def _copied_table(original: Callable) -> Callable:
    """`default_decompositions`: copies of one table, which is made again when a library has other operators."""
    seen, first = None, None

    def default() -> decomp_utils.CustomDecompTable:
        nonlocal seen, first
        if _libraries() != seen:
            first = original()
            first.materialize()
            seen = _libraries()
        table = decomp_utils.CustomDecompTable.__new__(decomp_utils.CustomDecompTable)
        table.decomp_table, table.deleted_custom_ops, table.has_materialized = first.decomp_table.copy(), set(), True
        return table

    return default


def _split_once(original: Callable) -> Callable:
    """`_split_decomp_table_to_cia_and_python_decomp`, which keeps the parts of the last table."""
    seen, parts = None, ({}, {})

    def split(table: dict) -> tuple[dict, dict]:
        nonlocal seen, parts
        given = _libraries(), list(table), list(table.values())  # compared by identity, not by their slow hashes
        if given != seen:
            parts = original(table)
            seen = given
        return dict(parts[0]), dict(parts[1])

    return split


def install() -> None:
    """Puts all in place of torch's own, for this process."""
    collect = _collect_when_changed(export_utils._collect_all_valid_cia_ops)
    decomp_utils._collect_all_valid_cia_ops = exported_program._collect_all_valid_cia_ops = collect
    override = _override_with_kept_kernels(exported_program._override_composite_implicit_decomp)
    exported_program._override_composite_implicit_decomp = override
    table = _copied_table(exported_program.default_decompositions)
    torch.export.default_decompositions = exported_program.default_decompositions = table
    split = _split_once(exported_program._split_decomp_table_to_cia_and_python_decomp)
    exported_program._split_decomp_table_to_cia_and_python_decomp = split
