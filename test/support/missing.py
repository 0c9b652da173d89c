# SPDX-License-Identifier: Apache-2.0
"""Operators that Pumice lacks. Tests take them from here, so that a new operator cannot make such a test meaningless.

``missing`` is an operator of a library of these tests: for those that only export. ExecuTorch has no kernel for it;
tests that run a program there use ``on_cpu``, an ATen operator whose lowering is taken away by ``lacking()``."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from pumice.lowering.registry import without_lowering

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


def lacking() -> AbstractContextManager[None]:
    """Inside of `with`, Pumice has no lowering of `ON_CPU`; raises LookupError when it has none anyway."""
    return without_lowering(ON_CPU)
