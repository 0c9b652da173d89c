# SPDX-License-Identifier: Apache-2.0
"""Modules of which patterns make one operator, and quantized layers in every dtype: for closure_samples.py."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from pumice.llm.sampling import Sampling
from support.textures import Round

GREEDY = Sampling()
MADE = 0.03, 11  # scale and zero point of results

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
LIMITS = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int32: (-1000, 1000)}
Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Block(nn.Module):
    """silu(gate(norm(x))) * up(norm(x)): fused_linear."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.9, 1.1, 64))
        self.gate, self.up = (nn.Linear(64, 48, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        y = self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        return F.silu(self.gate(y)) * self.up(y)


class DepthwiseChannelsLast(nn.Module):
    """A depthwise convolution between permutations: conv2d_depthwise_channels_last."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, groups=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class SelfAttention(nn.Module):
    """Two heads of size 8, of three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 16) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).unflatten(-1, (2, 8)).transpose(1, 2) for layer in self.layers)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Patches(nn.Module):
    """Of 4 x 4 pixels, a row each."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, stride=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).flatten(2).transpose(1, 2)


class Draw(nn.Module):
    """The most probable token."""

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = logits.shape[0]
        text, made, token = (torch.zeros(rows, count, dtype=torch.int64) for count in (4, 3, 1))
        options, counts = (torch.from_numpy(each).repeat(rows, 1) for each in (GREEDY.options(), GREEDY.counts()))
        start = torch.full((rows,), 3), torch.zeros(1, dtype=torch.int64)
        return torch.ops.pumice.sample_token(logits, options, counts, text, made, token, *start)


class Integers(nn.Module):
    """quantize(function(dequantize(q), ...)), or without `requantized` its floats; `weight` is int8 by channel."""

    def __init__(
        self,
        function: Callable[..., torch.Tensor],
        shape: tuple[int, ...] = (),
        requantized: bool = True,
        given: tuple[float, int] = (0.02, 7),
    ) -> None:
        super().__init__()
        self.function, self.requantized, self.given = function, requantized, given
        generator = torch.Generator().manual_seed(5)
        weight = torch.randint(-128, 128, shape or (1,), dtype=torch.int8, generator=generator)
        self.weight = nn.Buffer(weight) if shape else None
        self.scale = nn.Buffer(torch.linspace(0.005, 0.01, weight.shape[0]))

    def layer(self, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
        if self.weight is None:
            return []
        limits = -128, 127, torch.int8
        return [qd.dequantize_per_channel(self.weight, self.scale, None, 0, *limits, out_dtype=dtype)]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        reals = [qd.dequantize_per_tensor(q, *self.given, *LIMITS[q.dtype], q.dtype) for q in inputs]
        y = self.function(*reals, *self.layer())
        return qd.quantize_per_tensor(y, *MADE, *LIMITS[inputs[0].dtype], inputs[0].dtype) if self.requantized else y


class Static(nn.Module):
    """A layer of float activations that are quantized with numbers."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.inner = Integers(F.linear, (20, 64))
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = qd.quantize_per_tensor(x, 0.02, 7, -128, 127, torch.int8)
        real = qd.dequantize_per_tensor(q, 0.02, 7, -128, 127, torch.int8, out_dtype=self.dtype)
        return F.linear(real, *self.inner.layer(self.dtype))


class Convolution(nn.Module):
    """Of floats, with int8 weights."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.inner, self.dtype = Integers(F.conv2d, (6, 4, 3, 3)), dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, *self.inner.layer(self.dtype))


class Quantized(nn.Module):
    """Layers one after the other, from integers to integers; the last may give floats."""

    def __init__(self, dtype: torch.dtype, *layers: nn.Module) -> None:
        super().__init__()
        self.dtype, self.layers = dtype, nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(qd.quantize_per_tensor(x, 0.02, 7, *LIMITS[self.dtype], self.dtype))


class Rows(nn.Module):
    """int8 in and out with numbers for each row: linear_qta8a_qga4w_qta8o."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(6)
        self.weight = nn.Buffer(torch.randint(-8, 8, (20, 64), dtype=torch.int8, generator=generator))
        self.scale = nn.Buffer(torch.rand(20, 4, generator=generator) * 0.1)
        self.zero = nn.Buffer(torch.randint(-8, 8, (20, 4), dtype=torch.int8, generator=generator))

    def forward(self, q, s, z, s_out, z_out) -> torch.Tensor:
        w = ao.dequantize_affine(self.weight, [1, 16], self.scale, self.zero, torch.int8, -8, 7)
        y = F.linear(ao.dequantize_affine(q, [1, 64], s, z, torch.int8, -128, 127), w)
        return ao.quantize_affine(y, [1, 20], s_out, z_out, torch.int8, -128, 127)


def rows() -> Made:
    generator = torch.Generator().manual_seed(7)
    q = torch.randint(-128, 128, (9, 64), dtype=torch.int8, generator=generator)
    z, z_out = (torch.randint(-9, 9, (9,), dtype=torch.int8, generator=generator) for _ in range(2))
    return Rows(), (q, torch.rand(9, generator=generator) * 0.1, z, torch.rand(9, generator=generator) + 0.5, z_out)


def integers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    low, high = LIMITS[dtype]
    return torch.randint(low, high + 1, shape, dtype=dtype, generator=torch.Generator().manual_seed(8))


def rounded(x: torch.dtype, to: torch.dtype) -> Made:
    """choose_qparams, quantize and dequantize."""
    return Round([1, 32], to, *LIMITS[to]).eval(), (
        torch.randn(3, 32, generator=torch.Generator().manual_seed(9)).to(x),
    )
