# SPDX-License-Identifier: Apache-2.0
"""`pumice::route_experts` and `pumice::expert_linear`: the parts of a mixture of experts, as operators of an exported
graph.

The bodies below are plain PyTorch: what runs in eager mode, and the reference of the device's kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


@torch.library.custom_op("pumice::route_experts", mutates_args=())
def route_experts(logits: Tensor, count: int, normalize: bool) -> tuple[Tensor, Tensor]:
    """The `count` experts with the largest logits of each row, largest first.

    logits [T, E], f32 or f16. Returns factors [T, count], f32: what softmax over the row gives them, with `normalize`
    divided by their sum; and the experts [T, count], int64.
    """
    factors, experts = logits.float().softmax(-1).topk(count, dim=-1)
    return (factors / factors.sum(-1, keepdim=True) if normalize else factors), experts


@route_experts.register_fake
def _(logits, count, normalize):
    shape = logits.shape[0], count
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int64)


@torch.library.custom_op("pumice::expert_linear", mutates_args=())
def expert_linear(
    x: Tensor, weight: Tensor, chosen: Tensor, factors: Tensor | None, experts: int, act: str, gated: bool
) -> Tensor:
    """A linear layer for each row and each expert that was chosen for it.

    x [T, K], or [T, A, K]: a row for each expert. weight [E * N, K]: the `experts` matrices [N, K] one below the other.
    chosen [T, A], int64. act: a name of ACTIVATIONS. gated: the first N / 2 results are a gate, act(gate) * others.
    Returns [T, A, N] (N / 2 where it is gated), or with factors [T, A], f32, its sum over A by them: [T, N].
    Raises IndexError for an expert that does not exist.
    """
    if bool(((chosen < 0) | (chosen >= experts)).any()):
        raise IndexError(f"experts {chosen.tolist()} are not all of {experts}")
    rows = x if x.dim() == 3 else x[:, None].expand(*chosen.shape, x.shape[1])
    matrices = weight.unflatten(0, (experts, -1))
    y = x.new_empty(*chosen.shape, matrices.shape[1])
    for expert in chosen.unique().tolist():
        own = chosen == expert
        y[own] = F.linear(rows[own], matrices[expert])
    first, rest = y.chunk(2, -1) if gated else (y, None)
    z = ACTIVATIONS[act](first) if rest is None else ACTIVATIONS[act](first) * rest
    return z.contiguous() if factors is None else (z.float() * factors[..., None]).sum(1).to(x.dtype)


@expert_linear.register_fake
def _(x, weight, chosen, factors, experts, act, gated):
    columns = weight.shape[0] // experts // (2 if gated else 1)
    return x.new_empty((*chosen.shape, columns) if factors is None else (chosen.shape[0], columns))
