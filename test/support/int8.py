# SPDX-License-Identifier: Apache-2.0
"""Integer linear layers for tests: eager PyTorch chooses the integers, and fp64 multiplies them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
import torchao  # noqa: F401 (registers torch.ops.torchao)
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers torch.ops.quantized_decomposed)

import pumice
from pumice.format import ir
from support.device import is_llvmpipe
from support.one_call import OneCall
from support.quantized import UNIT
from support.sums import SUM_UNIT, Sums, product

MAPPINGS = ["ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"]
# Every kernel by name; "" is the one that is picked. Names: ops/linear/pick.cpp.
FLOATS = ["gemv1", "gemv4x2", "tile32x64"]  # a few of those that multiply whole numbers as floats
INTEGERS = ["dot1", "dot4", "dotw8", "dot_tile32x64"]
# Of the matrices that lavapipe has, which compiles them for seconds: where they have something of their own to do.
MATRICES = ["int8_16x32", "int8g_16x32", "int8g_16x32n16"] if is_llvmpipe() else []
FEW = ["gemv4x2", "dot2", "dotw1", "dot_tile64x64"]  # for the many shapes of weights


@dataclass
class Weight:
    """q [N, K], scale [N, G], zero [N, G] or None."""

    q: torch.Tensor
    scale: torch.Tensor
    zero: torch.Tensor | None
    bits: int

    @staticmethod
    def random(n: int, k: int, group: int | None, bits: int, zero: bool = False, dtype=torch.float32) -> Weight:
        torch.manual_seed(n * k + bits)
        groups, most = 1 if group is None else k // group, 1 << (bits - 1)
        return Weight(
            torch.randint(-most, most, (n, k)).to(torch.int8),
            (torch.rand(n, groups) * 0.1 + 0.01).to(dtype),
            torch.randint(-most, most, (n, groups)).to(torch.int8) if zero else None,
            bits,
        )

    @property
    def group(self) -> int:
        return self.q.shape[1] // self.scale.shape[1]

    def real(self) -> torch.Tensor:
        spread = lambda t: t.double().repeat_interleave(self.group, 1)  # noqa: E731
        return (self.q.double() - (0 if self.zero is None else spread(self.zero))) * spread(self.scale)

    def constants(self, program: OneCall) -> list[ir.ValueId | None]:
        data = program.constant(self.q, ir.DType.i4 if self.bits == 4 else None)
        return [data, program.constant(self.scale), program.constant(self.zero)]


@dataclass
class Layer:
    """A linear layer that quantizes x at run time; `program` takes x [m, K], and maybe the residual [m, N]."""

    weight: Weight
    bias: torch.Tensor | None = None
    act: int = 0
    residual: bool = False
    dtype: torch.dtype = torch.float32
    mapping: int = 0
    low: int = -128
    high: int = 127
    eps: float = 1.1920928955078125e-07
    per_token: int = 1
    static: tuple[float, int] | None = None  # scale and zero point of x
    where: str = field(default="", init=False)
    kernel: str = field(default="", init=False)  # that is forced

    @property
    def op(self) -> str:
        group = self.weight.group < self.weight.q.shape[1] or self.weight.bits == 4
        return f"linear_{'q8ta' if self.static else 'dq8ca'}_q{self.weight.bits}{'g' if group else 'c'}sw"

    def program(self) -> bytes:
        program, (n, k) = OneCall(), self.weight.q.shape
        x = program.input(self.dtype, ["m", k])
        args = [x, *self.weight.constants(program), program.constant(self.bias)]
        if "g" in self.op.rsplit("_", 1)[1]:
            args.append(self.weight.group)
        args += [self.act, program.input(self.dtype, ["m", n]) if self.residual else None]
        if self.static:
            args += [*self.static, self.low, self.high]
        else:
            args += [self.mapping, self.low, self.high, self.eps, self.per_token]
        program.call(self.op, args, self.dtype, ["m", n])
        return program.bytes()

    def integers(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, scale and zero point of x as eager PyTorch has them, the last two [m or 1, 1]."""
        low, high, ao, qd = self.low, self.high, torch.ops.torchao, torch.ops.quantized_decomposed
        dtype = torch.int8 if high <= 127 else torch.uint8
        if self.static:
            q = qd.quantize_per_tensor(x, *self.static, low, high, dtype)
            scale, zero = (torch.tensor([[number]]) for number in self.static)
        elif self.per_token:
            block = [1, x.shape[1]]
            scale, zero = ao.choose_qparams_affine(
                x, MAPPINGS[self.mapping], block, dtype, low, high, self.eps, None, dtype
            )
            q = ao.quantize_affine(x, block, scale, zero, dtype, low, high)
        else:
            choose = qd.choose_qparams_symmetric if self.mapping == 1 else qd.choose_qparams
            scale, zero = (t.reshape(1, 1) for t in choose(x, low, high, self.eps, dtype))
            q = qd.quantize_per_tensor.tensor(x, scale[0], zero[0], low, high, dtype)
        return q, scale.reshape(-1, 1), zero.reshape(-1, 1)

    def check(self, got: torch.Tensor, x: torch.Tensor, residual: torch.Tensor | None = None) -> None:
        """|err| <= u |y| and the error of the sum, u of the output's type; NaN where the reference has it.

        Matrices of fp16 round each weight to fp16.
        """
        q, scale, zero = self.integers(x)
        whole, real = q.double() - zero.double(), self.weight.real()
        # A row scale that is not finite makes NaN of any zero.
        rows = scale.double().expand(x.shape[0], 1)
        sums = product(whole, real.T).times(rows).plus(self.bias)
        sums = sums.then(torch.relu) if self.act == 1 else sums
        sums = sums.plus(residual)
        want = sums.want
        undefined = ~rows.isfinite().expand_as(want)
        assert torch.equal(got.isnan(), undefined), f"{self.where}: NaN at other places"
        allowed = 2 * UNIT[got.dtype] * want.abs() + sums.error(**roundings(self.kernel, self.weight))
        if self.kernel.startswith("matrix"):
            allowed += 2.0**-11 * 6 / 3**0.5 * sums.squares.sqrt()
        allowed += 2.0**-25 if got.dtype is torch.float16 else 0.0
        error = torch.where(undefined, torch.zeros(()), (got.double() - want).abs())
        over = ~undefined & ~(error <= allowed)
        worst = (error / allowed.clamp_min(1e-300))[~undefined]
        assert not over.any(), (
            f"{self.where}: {int(over.sum())} of {over.numel()} beyond the budget, one is {float(worst.max()):.3g} "
            f"times what is allowed; first at {over.nonzero()[0].tolist()}"
        )

    def unsupported_reason(self, kernel: str) -> str:
        group = self.weight.group
        whole = group == self.weight.q.shape[1]
        if kernel.startswith("int8g") and (whole or group % 32):
            return "takes groups of multiples of (8|32) columns"
        if kernel.startswith(("gemv", "tile", "matrix", "int8g")) or not kernel or whole:
            return ""
        if group % 8:
            return "takes groups of multiples of 8 columns"
        if kernel.startswith("dot_tile") and group % 32:
            return "takes groups of multiples of 32 columns"
        return "takes weights with one scale a row" if kernel.startswith("int8") else ""

    def check_rows(self, monkeypatch, kernels=(), rows=(1, 2, 5, 33), make=torch.randn, features=None) -> None:
        """Any number of rows through every kernel; twice, bit for bit."""
        data, (n, k) = self.program(), self.weight.q.shape
        torch.manual_seed(11)
        inputs = [
            (make(m, k).to(self.dtype), *([torch.randn(m, n).to(self.dtype)] if self.residual else [])) for m in rows
        ]
        for kernel in ("", *kernels):
            monkeypatch.setenv("PUMICE_KERNEL", kernel)
            reason = self.unsupported_reason(kernel)
            if reason:
                with pytest.raises(pumice.InvalidInputError, match=reason):
                    pumice.load(data, features=features)
                continue
            session = pumice.load(data, features=features)
            self.kernel = kernel
            for each in inputs:
                self.where = f"{self.op} [{n}, {k}] by {kernel or 'the pick'} with {each[0].shape[0]} rows"
                got = session(*each)
                self.check(got, *each)
            again = session(*inputs[-1])
            assert again.numpy().tobytes() == got.numpy().tobytes(), f"{self.where}: a replay gave other bits"
        self.kernel = ""  # what is checked from here on may run by any
        if self.per_token or self.static:
            assert session(*(each[:0] for each in inputs[0])).shape == (0, n)


def roundings(kernel: str, weight: Weight) -> dict[str, float]:
    """Those of a kernel (ops/linear/error_bound.cpp), for Sums.error; the pick may be any.

    Kernels of integers add whole numbers exactly, and round where groups meet.
    """
    if not kernel.startswith(("dot", "int8")):
        return {"fixed": 28, "unit": 2 * SUM_UNIT if kernel.startswith("matrix") else SUM_UNIT}
    return {"fixed": 16, "per_term": 0.0 if weight.group == weight.q.shape[1] else 0.25}


def check_integers(got: torch.Tensor, sums: Sums, roundings: dict[str, float], scale, zero, low, high) -> None:
    """clamp(round(real / scale) + zero, low, high), where the real number, a sum, may be off by its roundings."""
    quotient = sums.want / scale
    error = sums.error(**roundings) / scale + 2.0**-22 * quotient.abs()
    least, most = (((quotient + e).round() + zero).clamp(low, high) for e in (-error, error))
    wrong = (got < least) | (got > most)
    assert not wrong.any(), (
        f"{int(wrong.sum())} of {wrong.numel()} integers differ, first at {wrong.nonzero()[0].tolist()}: "
        f"{got[wrong][0]}, not {least[wrong][0]}..{most[wrong][0]}"
    )
    exact = least == most
    assert exact.double().mean() > 0.9, "the reference leaves too much open"
