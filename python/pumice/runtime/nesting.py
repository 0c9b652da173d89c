# SPDX-License-Identifier: Apache-2.0
"""Nesting of arguments and results, kept in the file as JSON (Method.in_spec, out_spec) and applied without torch.

    null              a leaf: the next tensor
    {"t": [...]}      a tuple        {"l": [...]}   a list
    {"d": [[k, s]..]} a dict, keys in order (also OrderedDict, defaultdict)
    {"o": [[k, s]..]} an object with named fields (transformers' ModelOutput, a dataclass); comes back as `Fields`
    {"N": [[field, s]..], "name": "Point"}   a namedtuple
    {"n": 1}          None           {"c": 3}       a constant that is not a tensor (bool, int, float, str)

The arguments of a call are {"t": [{"t": positional}, {"d": keyword}], "names": [...]}: the nesting of torch.export, and
the names of forward's positional parameters.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterator, Mapping
from typing import Any

from pumice.errors import InvalidFileError, InvalidInputError


class Fields(dict):
    """A dict in field order whose items are attributes and, by number or slice, positions, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, key: Any) -> Any:
        return tuple(self.values())[key] if isinstance(key, int | slice) else super().__getitem__(key)


def parse_arguments(text: str, tensors: int) -> Any:
    """Method.in_spec of a file whose method takes that many tensors; None when it says nothing."""
    spec = _parse(text, tensors, "in_spec")
    if text and not (
        isinstance(spec, dict)
        and isinstance(spec.get("t"), list)
        and [next(iter(part), "") if isinstance(part, dict) else "" for part in spec["t"]] == ["t", "d"]
        and isinstance(spec.get("names"), list)
        and all(isinstance(name, str) for name in [*spec["names"], *(key for key, _ in spec["t"][1]["d"])])
    ):
        raise _damaged("in_spec", "the arguments of a call have another form")
    return spec


def parse_results(text: str, tensors: int) -> Any:
    """Method.out_spec, as above."""
    return _parse(text, tensors, "out_spec")


def _parse(text: str, tensors: int, field: str) -> Any:
    try:
        spec = json.loads(text) if text else None
        count = _count(spec) if text else tensors
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(field, str(error)) from None
    if count != tensors:
        raise _damaged(field, f"it has {count} tensors, the method has {tensors}")
    return spec


def _count(spec: Any) -> int:
    """The leaves of a nest that comes from a file."""
    if spec is None:
        return 1
    kind = next(iter(spec), "") if isinstance(spec, dict) else ""
    if kind in ("n", "c"):
        return 0
    inside = spec[kind] if kind in ("t", "l", "d", "o", "N") else None
    if not isinstance(inside, list):
        raise ValueError(f"no nest: {_short(spec)}")
    if kind in ("d", "o", "N"):
        parts = dict(inside)
        if len(parts) != len(inside) or (kind == "o" and not all(isinstance(key, str) for key in parts)):
            raise ValueError(f"fields without a name of their own: {_short(list(parts))}")
        if kind == "N":
            namedtuple(spec.get("name"), parts)
        inside = list(parts.values())
    return sum(map(_count, inside))


def _damaged(field: str, why: str) -> InvalidFileError:
    return InvalidFileError(f"{field} is no nesting of tensors: {why}", code="BadSchema", stage="semantics", path=field)


def dump(spec: Any) -> str:
    return json.dumps(spec, separators=(",", ":"))


def unflatten(spec: Any, leaves: Iterator[Any]) -> Any:
    """The nest with its tensors taken from `leaves` in order."""
    if spec is None:
        return next(leaves)
    if "t" in spec:
        return tuple(unflatten(item, leaves) for item in spec["t"])
    if "l" in spec:
        return [unflatten(item, leaves) for item in spec["l"]]
    if "d" in spec:
        return {key: unflatten(item, leaves) for key, item in spec["d"]}
    if "o" in spec:
        return Fields((key, unflatten(item, leaves)) for key, item in spec["o"])
    if "N" in spec:
        made = namedtuple(spec["name"], [field for field, _ in spec["N"]])
        return made(*(unflatten(item, leaves) for _, item in spec["N"]))
    return spec.get("c")


def flatten(spec: Any, args: tuple, kwargs: Mapping[str, Any], names: list[str]) -> list[Any]:
    """The tensors of a call in the file's order. Arguments may be given by position or by name, as to the module; what
    export fixed must be given as it was then, or left out.

    `names`: the names of the leaves, which stand in for parameters when the file has no spec (positional tensors only).
    """
    if spec is None:
        spec = {"t": [{"t": [None] * len(names)}, {"d": []}], "names": names}
    positional, keyword = spec["t"][0]["t"], dict(spec["t"][1]["d"])
    parameters = dict(zip(spec.get("names") or names, positional, strict=False)) | keyword
    wanted = f"expected {len(parameters)} argument(s) ({', '.join(parameters)})"
    if len(args) > len(parameters):
        raise _bad(f"{wanted}, got {len(args)}")
    given = dict(zip(parameters, args, strict=False))
    if twice := sorted(set(given) & set(kwargs)):
        raise _bad(f"'{twice[0]}' is given twice")
    given |= kwargs
    if unknown := sorted(set(given) - set(parameters)):
        raise _bad(f"{wanted}, got unknown {', '.join(unknown)}")
    leaves: list[Any] = []
    for name, item in parameters.items():
        if name in given:
            _collect(item, given[name], name, leaves)
        elif not is_constant(item):
            raise _bad(f"{wanted}, got {len(given)}: '{name}' is missing")
    return leaves


def is_constant(spec: Any) -> bool:
    """Whether a nest holds no tensor."""
    return spec is not None and all(is_constant(item) for _, item in items(spec))


def items(spec: Any) -> list[tuple[Any, Any]]:
    """(index, key or field; spec) of what a container holds; nothing for a leaf or a constant."""
    if spec is None:
        return []
    kind = next(iter(spec))
    if kind in ("t", "l"):
        return list(enumerate(spec[kind]))
    return [(key, item) for key, item in spec[kind]] if kind in ("d", "o", "N") else []


def leaf_names(spec: Any, path: str) -> list[str]:
    """The names of the leaves in order: "cache.0" is item 0 of the argument `cache`."""
    if spec is None:
        return [path]
    return [name for key, item in items(spec) for name in leaf_names(item, f"{path}.{key}" if path else str(key))]


def _collect(spec: Any, value: Any, path: str, leaves: list[Any]) -> None:
    if spec is None:
        leaves.append(value)
        return
    kind = next(iter(spec))
    if kind in ("d", "o"):
        keys = [key for key, _ in spec[kind]]
        if kind == "o" and not isinstance(value, Mapping) and all(hasattr(value, key) for key in keys):
            value = {key: getattr(value, key) for key in keys}
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise _bad(f"'{path}': expected a dict with {keys}, got {_short(value)}")
        parts = [value[key] for key in keys]
    elif kind in ("t", "l", "N"):
        if not isinstance(value, list | tuple) or len(value) != len(spec[kind]):
            raise _bad(f"'{path}': expected a sequence of {len(spec[kind])}, got {_short(value)}")
        parts = list(value)
    else:
        fixed = spec.get("c")
        if type(value) is not type(fixed) or value != fixed:
            raise _bad(f"'{path}' was fixed to {fixed!r} at export, got {_short(value)}; export again to change it")
        return
    for (key, item), part in zip(items(spec), parts, strict=True):
        _collect(item, part, f"{path}.{key}", leaves)


def _bad(text: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input")


def _short(value: Any) -> str:
    if isinstance(value, bool | int | float | str | None):
        return repr(value)[:80]
    return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, list | tuple | Mapping) else "")
