# SPDX-License-Identifier: Apache-2.0
"""Layer by layer: what a device computes against eager PyTorch, and what quantizing costs against the float model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import pumice


@dataclass(frozen=True)
class Difference:
    """Two tensors: signal to noise in dB (infinite where they are equal), and the element that differs most."""

    snr: float
    worst: float  # its absolute difference
    at: tuple[int, ...]
    wanted: float
    got: float

    @staticmethod
    def of(got: torch.Tensor, wanted: torch.Tensor) -> Difference:
        """Of `got` from `wanted`, computed in fp64. Where only one is NaN, the noise is infinite."""
        a, b = got.detach().double().cpu(), wanted.detach().double().cpu()
        if not b.numel():
            return Difference(math.inf, 0.0, (), 0.0, 0.0)
        same = (a == b) | (a.isnan() & b.isnan())
        error = torch.where(same, 0.0, (a - b).abs()).nan_to_num(math.inf, math.inf)
        place = int(error.argmax())
        at = tuple(int(index) for index in torch.unravel_index(torch.tensor(place), error.shape))
        signal, noise = float(b[b.isfinite()].square().sum()), float(error.square().sum())
        if noise == 0:
            snr = math.inf
        else:
            snr = 10 * math.log10(signal / noise) if signal > 0 and math.isfinite(noise) else -math.inf
        return Difference(snr, float(error[at]), at, float(b[at]), float(a[at]))


@dataclass(frozen=True)
class LayerDifference:
    """A call of a layer. device: from the same module in eager PyTorch. so_far: of the quantized module from the float
    one, with all that came before; alone: of this layer, given what the float model gives it. None: not quantized."""

    name: str
    type: str
    device: Difference
    so_far: Difference | None = None
    alone: Difference | None = None


@dataclass(frozen=True)
class _Call:
    layer: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: torch.Tensor


@contextmanager
def _calls(module: nn.Module) -> Iterator[dict[str, _Call]]:
    """Meanwhile every call of a layer without sublayers that returns a tensor, as "name" and the next as "name (2)"."""
    found: dict[str, _Call] = {}

    def hook(name: str) -> Any:
        def record(layer: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            if isinstance(result, torch.Tensor):
                count = 1 + sum(call.layer is layer for call in found.values())
                found[name if count == 1 else f"{name} ({count})"] = _Call(layer, args, kwargs, result)

        return record

    leaves = [(name or "model", layer) for name, layer in module.named_modules() if not next(layer.children(), None)]
    handles = [layer.register_forward_hook(hook(name), with_kwargs=True) for name, layer in leaves]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


class _Tapped(nn.Module):
    """A module whose result is those of its layers, by name."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        with _calls(self.module) as found:
            self.module(*args, **kwargs)
        return {name: call.result for name, call in found.items()}


def compare_layers(
    module: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    original: nn.Module | None = None,
    device: str | int | None = None,
) -> list[LayerDifference]:
    """A row for each call of a layer, in their order. `original`: the float module that `module` was quantized from.

    The device runs a program whose results are those of the layers, so around them nothing is fused. args, kwargs: the
    inputs to compare with, as for pumice.export. Raises what pumice.export and pumice.load raise.
    """
    kwargs = dict(kwargs or {})
    tapped = _Tapped(module)
    with torch.no_grad():
        eager = tapped(*args, **kwargs)
        floats: dict[str, _Call] = {}
        if original is not None:
            with _calls(original) as floats:
                original(*args, **kwargs)
        with pumice.load(bytes(pumice.export(tapped, tuple(args), kwargs)), device=device) as session:
            got = session(*args, **kwargs)
        with _calls(module) as quantized:
            module(*args, **kwargs)
        rows = []
        for name, call in quantized.items():
            known = floats.get(name)
            so_far = alone = None
            if known is not None:
                so_far = Difference.of(eager[name], known.result)
                alone = Difference.of(call.layer(*known.args, **known.kwargs), known.result)
            found = Difference.of(torch.as_tensor(got[name]), eager[name])
            rows.append(LayerDifference(name, type(call.layer).__name__, found, so_far, alone))
    return rows
