# SPDX-License-Identifier: Apache-2.0
"""int64 has 32 bits on the device: what they hold is exact, whatever the sums on the way to it; what they do not hold
is an error that names the operator and the place, and the next call is fine. So is a division of integers by 0."""

from __future__ import annotations

import pytest
import torch
from support.many import Many
from support.one_call import OneCall

import pumice
from pumice.format.ir import DType

TOP, LOW = 2**31 - 1, -(2**31)


def last(value: int) -> torch.Tensor:
    """The value after a whole vec4 group of small ones."""
    return torch.tensor([1, -2, 3, 4, value])


def div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.div(a, b, rounding_mode="trunc")


# Function; arguments whose results fit; arguments with one that does not; operator and position that are named.
CASES = {
    "add": (torch.add, [last(TOP - 1), last(1)], [last(TOP), last(1)], "add", 4),
    "add low": (torch.add, [last(LOW + 1), last(-1)], [last(LOW), last(-1)], "add", 4),
    "alpha": (lambda a, b: a.add(b, alpha=3), [last(LOW), last(2**30)], [last(0), last(2**30)], "add", 4),
    "number": (lambda a: a + 5, [last(TOP - 5)], [last(TOP - 4)], "add", 4),
    "sub": (torch.sub, [last(-1), last(LOW)], [last(0), last(LOW)], "sub", 4),
    "sub alpha": (lambda a, b: a.sub(b, alpha=-2), [last(-1), last(2**30)], [last(0), last(2**30)], "sub", 4),
    "rsub": (lambda a: 1 - a, [last(LOW + 2)], [last(LOW + 1)], "sub", 4),
    "mul": (torch.mul, [last(46340), last(46340)], [last(46341), last(46341)], "mul", 4),
    "mul low": (torch.mul, [last(LOW), last(1)], [last(LOW), last(-1)], "mul", 4),
    "broadcast": (lambda a, b: a[:, None] * b, [last(TOP), last(1).clamp(0, 1)], [last(1), last(TOP)], "mul", 9),
    "cube": (lambda a: a**3, [last(1290)], [last(-1291)], "pow", 4),
    "pow": (lambda a: torch.pow(a, 31), [torch.tensor([1, 0, -1, -2])], [torch.tensor([1, 0, -1, 2])], "pow", 3),
    "square": (torch.square, [last(-46340)], [last(-46341)], "mul", 4),
    "neg": (torch.neg, [last(TOP)], [last(LOW)], "sub", 4),
    "abs": (torch.abs, [last(LOW + 1)], [last(LOW)], "sub", 4),
    "floor": (torch.floor_divide, [last(LOW), last(2)], [last(LOW), last(-1)], "div_floor", 4),
    "trunc": (div, [last(LOW), last(1)], [last(LOW), last(-1)], "div_trunc", 4),
    "sum": (
        lambda x: x.sum(0), [torch.tensor([[TOP, 1], [TOP, 1], [LOW, 1], [LOW, 1]])],
        [torch.tensor([[1, 1], [1, TOP], [1, 1], [1, -1]])], "sum", 1,
    ),
    "long sum": (torch.sum, [torch.full((3, 600), 1193046)], [torch.full((3, 600), 1193047)], "sum", 0),
    "sum of int32": (
        torch.sum, [torch.full((4,), 2**29 - 1, dtype=torch.int32)], [torch.full((4,), 2**29, dtype=torch.int32)],
        "sum", 0,
    ),
    "prod": (
        lambda x: x.prod(1), [torch.tensor([[65536, 65536, 0, 9], [1, 65536, -32768, 1]])],
        [torch.tensor([[65536, 65536, 0, 9], [65536, 1, 65536, 1]])], "prod", 1,
    ),
    "long prod": (torch.prod, [last(5).repeat(20) // 4], [torch.full((100,), 2)], "prod", 0),
    "cumsum": (
        lambda x: x.cumsum(0), [torch.tensor([1, TOP - 1, LOW, TOP, LOW] + [0] * 200 + [TOP, -9])],
        [torch.tensor([0] * 150 + [TOP, 1, -1] + [0] * 54)], "cumsum", 151,
    ),
    "index_add": (
        lambda x, v: x.index_add(0, torch.tensor([4, 0, 4]), v), [last(TOP), torch.tensor([1, 1, -1])],
        [last(TOP), torch.tensor([1, 1, 0])], "index_add", 4,
    ),
    "to int64": (
        lambda x: x.long(), [torch.tensor([1.5, float(LOW), 2147483520.0])], [torch.tensor([1.5, -3e9, 7.0])],
        "cast", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_32_bits_do_not_hold_is_an_error(name) -> None:
    function, fits, leaves, op, position = CASES[name]
    session = pumice.load(bytes(pumice.export(Many([function]), tuple(fits))))
    assert torch.equal(session(*fits)[0], function(*fits))
    with pytest.raises(
        pumice.Error, match=f"{op}: the int64 at position {position} of the result needs more"
    ) as caught:
        session(*leaves)
    assert caught.value.code == "InvalidArgument"
    assert torch.equal(session(*fits)[0], function(*fits))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int8], ids=str)
@pytest.mark.parametrize("function", [torch.floor_divide, div, torch.remainder, torch.fmod], ids=lambda f: f.__name__)
def test_a_division_by_zero_is_an_error(function, dtype) -> None:
    a, b = (torch.arange(7).to(dtype), torch.tensor([1, 2, 3, 1, 2, 3, 4], dtype=dtype))
    session = pumice.load(bytes(pumice.export(Many([function]), (a, b))))
    assert torch.equal(session(a, b)[0], function(a, b))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        function(a, b * 0)
    b[5] = 0
    with pytest.raises(pumice.Error, match="an integer is divided by 0 at position 5"):
        session(a, b)


class Buckets(torch.nn.Module):
    """Relative positions as T5 has them: the logarithm of 0 becomes an int64 that `where` drops."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = torch.arange(x.shape[0])
        distance = (at[None, :] - at[:, None]).abs()
        large = 8 + (torch.log(distance.float() / 8) / 2.7725887 * 8).to(torch.int64)
        return torch.where(distance < 8, distance, torch.minimum(large, torch.full_like(large, 15)))


def test_what_is_not_used_is_no_error() -> None:
    program = pumice.export(Buckets(), (torch.zeros(40),), dynamic_shapes=({0: torch.export.Dim("n", max=200)},))
    session = pumice.load(bytes(program))
    for size in (40, 7, 150):
        assert torch.equal(session(torch.zeros(size)), Buckets()(torch.zeros(size)))


@pytest.mark.parametrize("op", ["neg", "abs", "square"])
def test_a_file_cannot_ask_for_what_nobody_looks_at(op) -> None:
    program = OneCall()
    program.call(op, [program.input(DType.i64, [5])], DType.i64, [5])
    with pytest.raises(pumice.Error, match="of i64 are written as sub, maximum and mul"):
        pumice.load(program.bytes())


def test_int32_wraps(e2e) -> None:
    x = last(TOP).int()
    functions = [lambda x: x + x, lambda x: x * x, torch.neg, lambda x: x.sum(dtype=torch.int32)]
    e2e.check(Many([*functions, lambda x: x.cumsum(0, dtype=torch.int32)]), x)


@pytest.mark.parametrize(("low", "high"), [(2**31, None), (None, -(2**31) - 1)])
def test_a_bound_beyond_is_refused(low, high) -> None:
    with pytest.raises(pumice.Error, match="leaves the 32 bits"):
        pumice.export(Many([lambda x: x.clamp(low, high)]), (last(1),))
