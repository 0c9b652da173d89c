# SPDX-License-Identifier: Apache-2.0
"""torch's pytree specs -> the nesting of runtime/nesting.py, and the names of dynamic dimensions."""

from __future__ import annotations

import collections
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from pumice.errors import UnsupportedError
from pumice.runtime import nesting as nests

_MAX_DEFAULT = 4096  # characters of a default that goes into the file


def nesting(spec: Any, leaves: Iterator[Any], what: str) -> Any:
    """The nest for a torch TreeSpec whose leaves are, in order, `leaves`."""
    if spec.is_leaf():
        return next(leaves)
    kind, context = spec.type, spec.context
    items = [nesting(child, leaves, what) for child in spec.children()]
    if kind is type(None):
        return {"n": 1}
    if kind is tuple:
        return {"t": items}
    if kind is list or kind is collections.deque:
        return {"l": items}
    if kind in (dict, collections.OrderedDict):
        return {"d": _pairs(context, items, what)}
    if kind is collections.defaultdict:
        return {"d": _pairs(context[1], items, what)}
    if kind.__module__ == "torch.return_types":  # of torch.max(x, 1), torch.topk
        return {"N": _pairs(kind.__match_args__, items, what), "name": kind.__name__}
    if kind is collections.namedtuple:
        return {"N": _pairs(context._fields, items, what), "name": context.__name__}
    if kind in torch.return_types.all_return_types and what == "a result":  # of sort, max and others
        return {"N": _pairs(kind.__match_args__, items, what), "name": kind.__name__}
    keys = _field_names(context, len(items))
    if keys is None:
        raise _unsupported(what, f"has the type {kind.__name__}; use tuples, lists, dicts or dataclasses of tensors")
    return {"o": _pairs(keys, items, what)}


def constant(value: Any) -> Any:
    """The nest for something that is not a tensor."""
    return {"n": 1} if value is None else {"c": value}


def _field_names(context: Any, count: int) -> list[str] | None:
    """The fields of a registered class: the context of transformers' ModelOutput, the first item of a dataclass's."""
    for names in (context, context[0] if isinstance(context, list | tuple) and context else None):
        if isinstance(names, list | tuple) and len(names) == count and all(isinstance(name, str) for name in names):
            return list(names)
    return None


def _pairs(keys: Any, items: list[Any], what: str) -> list[list[Any]]:
    for key in keys:
        if not isinstance(key, str | int):
            raise _unsupported(what, f"has a dict with the key {key!r}; keys must be text or integers")
    return [[key, item] for key, item in zip(keys, items, strict=True)]


def _unsupported(what: str, text: str) -> UnsupportedError:
    return UnsupportedError(f"{what} {text}", [f"{what} {text}"], code="InvalidArgument", path=what)


def with_signature(in_spec: str, module: torch.nn.Module) -> str:
    """Method.in_spec with what forward's signature says: the order of its parameters, and their defaults."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return in_spec
    spec = json.loads(in_spec)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = positional[len(spec["names"]) :]  # *args are among the names, after all others
    if rest or spec["t"][1]["d"]:
        spec["positional"] = [*spec["names"], *rest]
    defaults = [[p.name, _default(p.default)] for p in parameters if p.default is not p.empty]
    if known := [pair for pair in defaults if pair[1] is not None]:
        spec["defaults"] = known
    return nests.dump(spec)


def _default(value: Any) -> Any:
    """The nest of a default; None for a tensor and for what has no nest."""
    try:
        spec = _plain(value)
        return spec if len(nests.dump(spec)) <= _MAX_DEFAULT else None
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return constant(value)
    if type(value) is tuple or type(value) is list:
        return {"t" if type(value) is tuple else "l": [_plain(item) for item in value]}
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return {"d": [[key, _plain(item)] for key, item in value.items()]}
    raise TypeError(f"no nest for a {type(value).__name__}")


def dim_names(module: torch.nn.Module, args: Any, kwargs: dict[str, Any], dynamic_shapes: Any) -> list[dict[int, str]]:
    """For every tensor among the arguments {axis: name of its torch.export.Dim}; [] where nesting is not plain."""
    if not isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = dict(enumerate(dynamic_shapes or ()))
    try:
        bound = list(inspect.signature(module.forward).bind(*args, **kwargs).arguments.items())
        found: list[dict[int, str]] = []
        for index, (name, value) in enumerate(bound):
            _walk(value, dynamic_shapes.get(name, dynamic_shapes.get(index)), found)
        return found
    except (TypeError, KeyError, AttributeError, IndexError):
        return []


def _walk(value: Any, spec: Any, found: list[dict[int, str]]) -> None:
    if isinstance(value, torch.Tensor):
        pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
        roots = {axis: getattr(dim, "root", dim) for axis, dim in pairs}  # that of 16 * d is d
        found.append({axis: dim.__name__ for axis, dim in roots.items() if hasattr(dim, "__name__")})
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _walk(item, spec[key] if spec else None, found)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _walk(item, spec[index] if spec else None, found)
