# SPDX-License-Identifier: Apache-2.0
"""Whether weights are still what they were when a graph was built: a constant on the device must never be stale."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import xxhash


def plain_tensors(tensor: torch.Tensor) -> Iterable[torch.Tensor]:
    """The tensor, or those that it is made of, as quantized weights are."""
    if hasattr(tensor, "__tensor_flatten__"):
        for name in tensor.__tensor_flatten__()[0]:
            yield from plain_tensors(getattr(tensor, name))
    else:
        yield tensor


def fingerprint(weights: Iterable[torch.Tensor], how: str) -> Any:
    """Equal as long as no weight has changed. `how`: "hashed" or "versions", as in CompileOptions."""
    parts = [part for weight in weights for part in plain_tensors(weight)]
    if how == "versions":
        return tuple((*_form(p), p.data_ptr(), 0 if p.is_inference() else p._version) for p in parts)
    hashed = xxhash.xxh3_128()
    for part in parts:
        hashed.update(repr(_form(part)).encode())
        if part.numel():
            hashed.update(part.detach().contiguous().reshape(-1).view(torch.uint8).numpy())
    return hashed.digest()


def _form(tensor: torch.Tensor) -> Any:
    return tuple(tensor.shape), tensor.stride(), str(tensor.dtype)
