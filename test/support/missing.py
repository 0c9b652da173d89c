# SPDX-License-Identifier: Apache-2.0
"""What Pumice has no operator for. Tests take it from here, so that no new operator can turn it into one that it has.

``missing`` is an operator of a library of these tests: for those that only export. ExecuTorch has no kernel for it;
tests that run a program there use ``on_cpu``, an ATen operator whose lowering is taken away by ``lacking()``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pumice.lowering import registry

ON_CPU = torch.ops.aten.atan.default


@torch.library.custom_op("pumice_test::missing", mutates_args=())
def missing(x: torch.Tensor) -> torch.Tensor:
    """A tensor like x, of any shape and dtype."""
    return x.clone()


@missing.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def on_cpu(x: torch.Tensor) -> torch.Tensor:
    """What `ON_CPU` computes, for modules that are lowered inside of `lacking()`."""
    return x.atan()


class OnCpu(torch.nn.Module):
    """`on_cpu` as a module."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return on_cpu(x)


@contextmanager
def lacking() -> Iterator[None]:
    """Inside, Pumice has no lowering of `ON_CPU`."""
    lowering = registry._lowerings.pop(ON_CPU, None)
    assert lowering is not None, "give ON_CPU an operator that has a lowering: then this proves something"
    try:
        yield
    finally:
        registry._lowerings[ON_CPU] = lowering
