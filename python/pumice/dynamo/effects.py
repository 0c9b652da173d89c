# SPDX-License-Identifier: Apache-2.0
"""What a graph does besides computing: which arguments it writes, and which results share the memory of others.

The graph is run with fake tensors, and every operator's schema says what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

_BATCH_NORM = torch.ops.aten.native_batch_norm.default
_STATISTICS = ("running_mean", "running_var")  # it writes them in training, without a word of it in its schema


@dataclass(frozen=True)
class Effects:
    """Positions among the arguments and the results of a graph.

    written: arguments whose elements it changes. reshaped: arguments whose shape, strides or memory it changes.
    arguments: results that are an argument itself, and which. of_argument: other results that are in the memory of an
    argument, and of which. of_result: those that are in the memory of an earlier result. shares_written: one of
    of_argument is in the memory of a written argument.
    """

    written: frozenset[int]
    reshaped: frozenset[int]
    arguments: Mapping[int, int]
    of_argument: Mapping[int, int]
    of_result: Mapping[int, int]
    shares_written: bool

    @property
    def sharing(self) -> set[int]:
        """The results that share memory with another tensor, and those that they share it with."""
        return {*self.of_argument, *self.of_result, *self.of_result.values()}

    def are_kept(self, arguments: Sequence[Any], results: Sequence[Any]) -> bool:
        """Whether these results share memory as those of eager do."""
        pairs = [(results[n], arguments[m]) for n, m in self.of_argument.items()]
        pairs += [(results[n], results[m]) for n, m in self.of_result.items()]
        return all(_address(a) in (_address(b), 0) for a, b in pairs)


class _Written(TorchDispatchMode):
    """Keeps the memory that operators write."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for number, argument in enumerate(func._schema.arguments):
            declared = argument.alias_info is not None and argument.alias_info.is_write
            if declared or (func is _BATCH_NORM and args[5] and argument.name in _STATISTICS):
                value = args[number] if number < len(args) else kwargs.get(argument.name)
                for tensor in torch.utils._pytree.tree_leaves(value):
                    if isinstance(tensor, torch.Tensor):
                        self.storages[_storage(tensor)] = tensor
        return func(*args, **kwargs)


def effects(graph: Callable[..., Any], arguments: Sequence[Any]) -> Effects:
    """Runs `graph` with fakes of `arguments`. Raises what the graph raises."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(a, static_shapes=True) if isinstance(a, torch.Tensor) else a for a in arguments]
    tensors = {number: fake for number, fake in enumerate(fakes) if isinstance(fake, torch.Tensor)}
    before = {number: _layout(fake) for number, fake in tensors.items()}
    storages = {number: _memory(fake) for number, fake in tensors.items()}
    with torch.no_grad(), mode, _Written() as writes:
        results = graph(*fakes)
    written = frozenset(n for n, memory in storages.items() if memory & writes.storages.keys())
    reshaped = frozenset(n for n, fake in tensors.items() if _layout(fake) != before[n])
    argument_of = {key: n for n, memory in storages.items() for key in memory}
    itself, of_argument, of_result, first = {}, {}, {}, dict[int, int]()
    number_of = {id(fake): n for n, fake in tensors.items()}
    for number, result in enumerate(results if isinstance(results, list | tuple) else [results]):
        if not isinstance(result, torch.Tensor):
            continue
        if id(result) in number_of:
            itself[number] = number_of[id(result)]
            continue
        key = _storage(result)
        if key in argument_of:
            of_argument[number] = argument_of[key]
        elif first.setdefault(key, number) != number:
            of_result[number] = first[key]
    return Effects(written, reshaped, itself, of_argument, of_result, not written.isdisjoint(of_argument.values()))


def _memory(tensor: torch.Tensor) -> set[int]:
    """The storages of a tensor; those of its parts where it is made of others, as quantized weights are."""
    if hasattr(tensor, "__tensor_flatten__") and type(tensor) is not torch._subclasses.FakeTensor:
        return {key for name in tensor.__tensor_flatten__()[0] for key in _memory(getattr(tensor, name))}
    return {_storage(tensor)}


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _layout(tensor: torch.Tensor) -> Any:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), _storage(tensor)
