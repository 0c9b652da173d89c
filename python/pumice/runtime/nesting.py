# SPDX-License-Identifier: Apache-2.0
"""Nesting of arguments and results, kept in the file as JSON (Method.in_spec, out_spec) and applied without torch.

    null              a leaf: the next tensor
    {"t": [...]}      a tuple        {"l": [...]}   a list
    {"d": [[k, s]..]} a dict, keys in order (also OrderedDict, defaultdict)
    {"o": [[k, s]..]} an object with named fields (transformers' ModelOutput, a dataclass); comes back as `Fields`
    {"N": [[field, s]..], "name": "Point"}   a namedtuple
    {"n": 1}          None           {"c": 3}       a constant that is not a tensor (bool, int, float, str)

The arguments of a call are {"t": [{"t": positional}, {"d": keyword}], "names": [...]}: the nesting of torch.export, and
the names of forward's positional parameters. Where export knew forward itself, two more fields follow; a file without
them comes from a saved program, or from before there were any:

    "positional": [name, ..]      every parameter that may be given by position, in forward's order
    "defaults": [[name, s], ..]   forward's defaults, as far as they can be written down

What is not a tensor is fixed at export. A call may leave it out only if forward's default is the same value, since the
eager module would compute with the default.
"""

from __future__ import annotations

import functools
import json
import keyword
import math
from collections import namedtuple
from collections.abc import Iterator, Mapping
from typing import Any

from pumice.errors import InvalidFileError, InvalidInputError

_CALL = ("names", "positional", "defaults")  # the fields of a call's arguments beside their nest


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
        and _is_signature(spec)
    ):
        raise _damaged("in_spec", "the arguments of a call have another form")
    return spec


def _is_signature(spec: Any) -> bool:
    """Whether "positional" and "defaults" have their form, where they are there."""
    positional, defaults = spec.get("positional", []), spec.get("defaults", [])
    try:
        return (
            isinstance(positional, list)
            and len(set(positional)) == len(positional)
            and all(isinstance(name, str) for name in positional)
            and isinstance(defaults, list)
            and len(dict(defaults)) == len(defaults)
            and all(isinstance(name, str) and _count(item) == 0 for name, item in defaults)
        )
    except (ValueError, TypeError, RecursionError):
        return False


def parse_results(text: str, tensors: int) -> Any:
    """Method.out_spec, as above."""
    return _parse(text, tensors, "out_spec")


def _parse(text: str, tensors: int, field: str) -> Any:
    try:
        spec = json.loads(text) if text else None
        count = _count(spec, _CALL if field == "in_spec" else ()) if text else tensors
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(field, str(error)) from None
    if count != tensors:
        raise _damaged(field, f"it has {count} tensors, the method has {tensors}")
    return spec


def _count(spec: Any, beside: tuple[str, ...] = ()) -> int:
    """The leaves of a nest that comes from a file. It may have the fields `beside` its kind, and no others."""
    if spec is None:
        return 1
    kind = next(iter(spec), "") if isinstance(spec, dict) else ""
    fields = {kind, *beside, "name" if kind == "N" else kind}
    if kind and (more := set(spec) - fields):
        raise ValueError(f"a nest '{kind}' has no field {sorted(more)[0]!r}")
    if kind in ("n", "c"):
        return 0
    inside = spec[kind] if kind in ("t", "l", "d", "o", "N") else None
    if not isinstance(inside, list):
        raise ValueError(f"no nest: {_short(spec)}")
    if kind in ("d", "o", "N"):
        parts = dict(inside)
        if len(parts) != len(inside) or (kind == "o" and not all(isinstance(key, str) for key in parts)):
            raise ValueError(f"fields without a name of their own: {_short(list(parts))}")
        names = [spec.get("name"), *parts] if kind == "N" else []
        if not all(map(_is_name, names)) or any(name.startswith("_") for name in names[1:]):
            raise ValueError(f"no names of a tuple and its fields: {_short(names)}")
        inside = list(parts.values())
    return sum(map(_count, inside))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


@functools.lru_cache(maxsize=1024)
def _tuple_type(name: str, fields: tuple[str, ...]) -> Any:
    """Made when a result needs it: a class takes long, and a hostile file has many."""
    return namedtuple(name, fields)


def _damaged(field: str, why: str) -> InvalidFileError:
    return InvalidFileError(f"{field} is no nesting of tensors: {why}", code="BadSchema", stage="semantics", path=field)


def dump(spec: Any) -> str:
    """A nesting as the compact JSON that the file holds."""
    return json.dumps(spec, separators=(",", ":"))


def unflatten(spec: Any, leaves: Iterator[Any]) -> Any:
    """The nest with its tensors taken from `leaves` in order."""
    if spec is None:
        return next(leaves)
    kind = next(iter(spec))
    if kind == "t":
        return tuple(unflatten(item, leaves) for item in spec["t"])
    if kind == "l":
        return [unflatten(item, leaves) for item in spec["l"]]
    if kind == "d":
        return {key: unflatten(item, leaves) for key, item in spec["d"]}
    if kind == "o":
        return Fields((key, unflatten(item, leaves)) for key, item in spec["o"])
    if kind == "N":
        tuple_type = _tuple_type(spec["name"], tuple(field for field, _ in spec["N"]))
        return tuple_type(*(unflatten(item, leaves) for _, item in spec["N"]))
    return spec["c"] if kind == "c" else None


def flatten(spec: Any, args: tuple, kwargs: Mapping[str, Any], names: list[str]) -> list[Any]:
    """The tensors of a call in the file's order. Arguments may be given by position or by name, as to the module. What
    export fixed must be given as it was then; it may be left out where forward's default is that value.

    `names`: the names of the leaves, which stand in for parameters when the file has no spec (positional tensors only).
    """
    if spec is None:
        spec = {"t": [{"t": [None] * len(names)}, {"d": []}], "names": names}
    positional, named = spec["t"][0]["t"], dict(spec["t"][1]["d"])
    parameters = dict(zip(spec.get("names") or names, positional, strict=False))
    order = spec.get("positional", list(parameters))
    parameters |= named
    defaults = dict(spec.get("defaults", []))
    wanted = f"expected {len(parameters)} argument(s) ({', '.join(parameters)})"
    if len(args) > len(order) and named and "positional" not in spec and len(args) <= len(parameters):
        raise _bad(f"give {', '.join(map(repr, named))} by name: the file does not say where forward takes them")
    if len(args) > len(order):
        raise _bad(f"{wanted}, got {len(args)}" + (" by position" if len(args) <= len(parameters) else ""))
    given = dict(zip(order, args, strict=False))
    if twice := sorted(set(given) & set(kwargs)):
        raise _bad(f"'{twice[0]}' is given twice")
    given |= kwargs
    if unknown := sorted(set(given) - set(parameters) - set(defaults) - set(order)):
        raise _bad(f"{wanted}, got unknown {', '.join(unknown)}")
    leaves: list[Any] = []
    for name, item in parameters.items():
        if name in given:
            _collect(item, given[name], name, leaves)
        elif not is_constant(item):
            raise _bad(f"{wanted}, got {len(given)}: '{name}' is missing")
        elif name not in defaults or not _same(item, defaults[name]):
            raise _bad(_left_out(name, item, defaults))
    for name in given:
        if name not in parameters and name not in defaults:
            raise _bad(f"'{name}' was left out at export, so forward's default is in the file: leave it out")
        if name not in parameters:
            _collect(defaults[name], given[name], name, leaves)
    return leaves


def _left_out(name: str, fixed: Any, defaults: Mapping[str, Any]) -> str:
    value = _repr(fixed)
    default = f"forward's default is {_repr(defaults[name])}" if name in defaults else "the file has no default for it"
    return f"'{name}' is missing: it was fixed to {value} at export and {default}; {_way_out(value)}"


def _way_out(value: str) -> str:
    return f"pass exactly {value}, or export again with the other value or a tensor"


def _repr(spec: Any) -> str:
    """A nest without tensors as Python writes it."""
    text = repr(unflatten(spec, iter(())))
    return text if len(text) <= 200 else f"{text[:200]}..."


def _same(a: Any, b: Any) -> bool:
    """Whether two nests without tensors hold the same: kinds, keys, and constants by type and value."""
    kind = next(iter(a))
    if kind != next(iter(b)):
        return False
    if kind == "c":
        return same_constant(a["c"], b["c"])
    ours, theirs = items(a), items(b)
    if kind in ("d", "o"):
        ours, theirs = (sorted(pairs, key=lambda pair: repr(pair[0])) for pairs in (ours, theirs))
    return [key for key, _ in ours] == [key for key, _ in theirs] and all(
        _same(x, y) for (_, x), (_, y) in zip(ours, theirs, strict=True)
    )


def same_constant(value: Any, fixed: Any) -> bool:
    """1, 1.0 and True are three values; so are 0.0 and -0.0; NaN is itself."""
    if type(value) is not type(fixed):
        return False
    if isinstance(value, float):
        if math.isnan(value) or math.isnan(fixed):
            return math.isnan(value) and math.isnan(fixed)
        return value == fixed and math.copysign(1, value) == math.copysign(1, fixed)
    return value == fixed


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
            for field in getattr(value, "__dataclass_fields__", ()):  # torch keeps no field that was None at export
                if field not in keys and getattr(value, field, None) is not None:
                    raise _bad(_changed(f"{path}.{field}", "None", getattr(value, field)))
            value = {key: getattr(value, key) for key in keys}
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise _bad(f"'{path}': expected a dict with {keys}, got {_short(value)}")
        parts = [value[key] for key in keys]
    elif kind in ("t", "l", "N"):
        if not isinstance(value, list | tuple) or len(value) != len(spec[kind]):
            raise _bad(f"'{path}': expected a sequence of {len(spec[kind])}, got {_short(value)}")
        parts = list(value)
    else:
        if not same_constant(value, spec["c"] if kind == "c" else None):
            raise _bad(_changed(path, _repr(spec), value))
        return
    for (key, item), part in zip(items(spec), parts, strict=True):
        _collect(item, part, f"{path}.{key}", leaves)


def _changed(path: str, fixed: str, value: Any) -> str:
    return f"'{path}' was fixed to {fixed} at export, got {_short(value)}; {_way_out(fixed)}"


def _bad(text: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input")


def _short(value: Any) -> str:
    if isinstance(value, bool | int | float | str | None):
        return repr(value)[:80]
    return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, list | tuple | Mapping) else "")
