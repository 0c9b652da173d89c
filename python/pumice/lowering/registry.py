# SPDX-License-Identifier: Apache-2.0
"""The lowerings and the fusion patterns, by the operator of PyTorch that they are for.

A lowering is a function that takes one node of the exported graph and says which Pumice operators compute it:

    @lowers(aten.softmax.int, aten._softmax.default)
    def softmax(call):
        call.emit("softmax", call.tensor("self"), call["dim"])

A pattern looks at one node and at those in front of it. Where it matches it returns a function that emits, else None;
it emits nothing before that. Patterns are asked before lowerings, in the order of the names of their files:

    @fuses(aten.relu.default)
    def add_relu(call):
        made = call.producer(call.tensor("self"), aten.add.Tensor, single_use=True)
        return None if made is None else lambda: call.emit("add_relu", made.tensor("self"), made.tensor("other"))

Nodes are visited from the outputs to the inputs, and only those whose result is needed: what a pattern has taken into
its operator is never lowered by itself. Both kinds refuse by ``call.refuse(reason)``. Neither reads the values of
weights while it decides (in ExecuTorch's partitioner they are not there): give `call.constant` a function instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

# Both take a lowering.call.Call.
Lowering = Callable[[Any], None]
Pattern = Callable[[Any], Callable[[], Any] | None]
# Takes a lowering.selection.Selection and the nodes whose results leave the graph.
Rewrite = Callable[[Any, list[Any]], None]

_lowerings: dict[Any, Lowering] = {}
_patterns: dict[Any, list[tuple[str, Pattern, bool]]] = {}  # name, pattern, whether it is first
_rewrites: list[tuple[str, Rewrite]] = []
_pattern_names: set[str] = set()
_pointwise: dict[Any, None] = {}


class Refused(Exception):
    """Raised by a lowering; `str()` is the reason shown in the report."""


def lowers(*targets: Any) -> Callable[[Lowering], Lowering]:
    """Registers a lowering for overloads, e.g. ``aten.gelu.default``; those of libraries that may not be imported yet
    are given by name: ``"torchao.quantize_affine.default"``."""

    def register(lowering: Lowering) -> Lowering:
        for target in targets:
            if target in _lowerings:
                both = f"{_lowerings[target].__module__} and {lowering.__module__}"
                raise AssertionError(f"two lowerings for {target}: {both}")
            _lowerings[target] = lowering
        return lowering

    return register


def fuses(*targets: Any, first: bool = False) -> Callable[[Pattern], Pattern]:
    """Registers a pattern that ends in a node of these overloads; one that is `first` is asked before the others, of
    which one would take a part of its nodes."""

    def register(pattern: Pattern) -> Pattern:
        name = pattern_name(pattern)
        for target in targets:
            known = _patterns.setdefault(target, [])
            known.append((name, pattern, first))
            known.sort(key=lambda item: (not item[2], item[0]))
        return pattern

    return register


def rewrites(rewrite: Rewrite) -> Rewrite:
    """Registers a pattern over what all nodes have become: it sees every operator call of a finished selection."""
    _rewrites.append((pattern_name(rewrite), rewrite))
    return rewrite


def rewrites_of_all(without: Collection[str] = ()) -> list[Rewrite]:
    """The patterns over finished selections, less those named."""
    return [rewrite for name, rewrite in sorted(_rewrites, key=lambda item: item[0]) if name not in without]


def pattern_name(pattern: Callable) -> str:
    """The name of a pattern, for ExportOptions.without_fusion: its file's. Makes it known to `pattern_names`."""
    name = pattern.__module__.rpartition(".")[2]
    _pattern_names.add(name)
    return name


def pointwise(*targets: Any) -> None:
    """Says of overloads that each element of the result depends on one element of the first argument alone, when all
    other arguments are numbers. A table can then replace a chain of them (fusion/integers.py)."""
    _pointwise.update(dict.fromkeys(targets))


def lowering_for(target: Any) -> Lowering | None:
    """The lowering of an overload, or None. Importing `pumice.ops` fills the table."""
    return _lowerings.get(target) or _lowerings.get(str(target))


def patterns_for(target: Any, without: Collection[str] = ()) -> list[Pattern]:
    """The patterns that end in an overload, less those named. Importing `pumice.fusion` fills the table."""
    found = _patterns.get(target) or _patterns.get(str(target), [])
    return [pattern for name, pattern, _ in found if name not in without]


def pattern_names() -> list[str]:
    """The names of all patterns, sorted."""
    return sorted(_pattern_names)


def pointwise_targets() -> list[Any]:
    """Every overload that was given to `pointwise`."""
    return list(_pointwise)


@contextmanager
def without_lowering(target: Any) -> Iterator[None]:
    """Inside of `with`, the overload has no lowering, as an operator that Pumice lacks: for tests of refusals.

    Raises LookupError where it has none to take away."""
    if target not in _lowerings:
        raise LookupError(f"{target} has no lowering that could be taken away")
    lowering = _lowerings.pop(target)
    try:
        yield
    finally:
        _lowerings[target] = lowering


def targets() -> list[Any]:
    """Every overload that has a lowering; some by name."""
    return list(_lowerings)
