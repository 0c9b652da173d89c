# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.dispatches import kernels
from support.many import ALL, Many, normal
from support.one_call import OneCall

import pumice

DTYPES = [torch.float32, torch.float16, torch.int64, torch.int8, torch.bool]
PERMUTE = [
    lambda x: x.permute(0, 2, 1, 3), lambda x: x.permute(3, 2, 1, 0), lambda x: x.transpose(-1, -2),
    lambda x: x.transpose(0, -1), lambda x: x.permute(1, 0, 2, 3).reshape(-1, 8), lambda x: x[0, 0].t(),
    lambda x: x[0, 0, 0].t(), lambda x: x.permute(2, 3, 0, 1),
]  # fmt: skip
SLICE = [
    lambda x: x[1:], lambda x: x[:, -2:], lambda x: x[..., ::2], lambda x: x[..., 1:7:3], lambda x: x[..., 4:],
    lambda x: x[:, 5:2], lambda x: x[1], lambda x: x[..., -1], lambda x: x[:, 1, 2], lambda x: x[:, :, 1:100],
    lambda x: x.narrow(2, 1, 2), lambda x: x.select(-1, 3), lambda x: x[None, :, 1:], lambda x: x[-1:],
]  # fmt: skip
EXPAND = [
    lambda x: x[:, :1].expand(-1, 5, -1, -1), lambda x: x[..., :1].expand(3, 2, 3, 4, 8),
    lambda x: x.repeat(1, 2, 1, 3), lambda x: x.repeat(2, 1, 1, 1, 1), lambda x: x.repeat_interleave(2, dim=1),
    lambda x: x.repeat_interleave(3), lambda x: x.tile(2), lambda x: x[0, 0, 0, 0].expand(3, 4),
    lambda x: x.repeat(0, 1, 1, 1),
]  # fmt: skip
SPLIT = [
    lambda x: x.split(3, -1), lambda x: x.split([1, 2, 5], 3), lambda x: x.chunk(2, 2), lambda x: x.unbind(1),
    lambda x: x.unbind(-1), lambda x: x.split(3, -1)[1], lambda x: torch.stack(x.unbind(0)[::-1]),
]  # fmt: skip
TURN = [
    lambda x: x.flip(0), lambda x: x.flip(-1, 1), lambda x: x.roll(1, -1), lambda x: x.roll((-1, 3), (0, 3)),
    lambda x: x.roll(5), lambda x: x.rot90(1, (2, 3)), lambda x: x.movedim(0, 2),
    lambda x: x.swapaxes(0, 1).contiguous(),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "functions", [PERMUTE, SLICE, EXPAND, SPLIT, TURN], ids=["permute", "slice", "expand", "split", "turn"]
)
def test_copy(e2e, functions, dtype) -> None:
    e2e.check(Many(functions), normal(2, 3, 4, 8, dtype=dtype), reference="eager")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_odd_sizes(e2e, dtype) -> None:
    functions = [
        lambda x: x.permute(2, 0, 1), lambda x: x.transpose(0, 1), lambda x: x[:, 1:], lambda x: x[..., 1:6:2],
        lambda x: x[1, :, 3], lambda x: x[:, :, :1].expand(3, 5, 9), lambda x: x.repeat(2, 1, 3),
        lambda x: x.flip(-1), lambda x: x.split(2, 1),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(3, 5, 7, dtype=dtype), reference="eager", all_features=True)


def test_bits_stay(e2e) -> None:
    """NaN payloads, subnormals and signed zeros are moved, not computed with."""
    bits = torch.tensor([0x7FC00001, 0x7F800001, 1, -(2**31), 0x00400000, 0x3F800000], dtype=torch.int32).view(
        torch.float32
    )
    halves = torch.tensor([0x7E01, 0x7C01, 1, -(2**15), 0x0200, 0x3C00], dtype=torch.int16).view(torch.float16)
    functions = [lambda x: x.reshape(2, 3).t(), lambda x: x.flip(0), lambda x: torch.cat([x[1:], x[:1]])]
    for x, integer in ((bits, torch.int32), (halves, torch.int16)):
        program = e2e.export(Many(functions), x)
        for got, want in zip(pumice.load(bytes(program))(x), Many(functions)(x), strict=True):
            assert torch.equal(got.contiguous().view(integer), want.contiguous().view(integer))


def test_moves_of_ones_are_views(e2e) -> None:
    functions = [
        lambda x: x.permute(1, 0, 2), lambda x: x.expand(1, 5, 7), lambda x: x.transpose(0, 1)[:, 0], lambda x: x[0],
    ]  # fmt: skip
    program = e2e.check(Many(functions), normal(1, 5, 7))
    assert set(program.report.operators) == {"view"}


def test_rank_8_and_rank_0(e2e) -> None:
    x = normal(2, 1, 3, 2, 1, 2, 3, 2)
    e2e.check(
        Many(
            [lambda x: x.permute(7, 5, 3, 1, 6, 4, 2, 0), lambda x: x.flip(0, 2, 5), lambda x: x[1, :, 2, ..., 1:, 0]]
        ),
        x,
    )
    e2e.check(Many([lambda x: x.repeat(1, 2, 1, 1, 3, 1, 1, 2)]), x)
    e2e.refuses(Many([lambda x: x.repeat(2, 1, 2, 2, 2, 2, 2, 2)]), x, match="8 dimensions")
    e2e.refuses(Many([lambda x: x.unsqueeze(0) + 1]), x, match="rank 9")
    e2e.check(Many([lambda x: x.expand(4), lambda x: x.expand(2, 3), lambda x: x.repeat(5)]), torch.tensor(3.5))


def test_empty(e2e) -> None:
    x = normal(0, 3, 4)
    e2e.check(
        Many([lambda x: x.permute(2, 1, 0), lambda x: x[:, 1], lambda x: x.repeat(2, 1, 1), lambda x: x.flip(1)]), x
    )


def test_changing_sizes(e2e) -> None:
    rows, columns = torch.export.Dim("rows", min=4, max=64), torch.export.Dim("columns", min=4, max=64)
    functions = [
        lambda x: x.transpose(0, 1), lambda x: x[:, 2:], lambda x: x[-1], lambda x: x[:, None].expand(-1, 3, -1),
        lambda x: x.repeat(2, 1), lambda x: x.reshape(-1), lambda x: x.split([2, x.shape[0] - 2]),
        lambda x: x.flip(1),
    ]  # fmt: skip
    shapes = {"inputs": ({0: rows, 1: columns},)}
    runs = [(normal(r, c),) for r, c in ((4, 5), (9, 4), (64, 64))]
    e2e.check(Many(functions), normal(6, 8), dynamic_shapes=shapes, runs=runs)


DIAGONALS = [
    lambda x: x.diagonal(), lambda x: x.diagonal(1, 1, 2), lambda x: x.diagonal(-2, -1, 0), lambda x: x.diagonal(9),
    lambda x: x[0].diagonal(-9), lambda x: x[:, 0].diagonal(4), lambda x: x.diagonal(-1, 2, 1),
    lambda x: x[:, :0].diagonal(), lambda x: x[:1, :1].diagonal(),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_diagonal(e2e, dtype) -> None:
    e2e.check(Many(DIAGONALS), normal(3, 4, 5, dtype=dtype), all_features=dtype is torch.float16)
    if dtype is not torch.bool:  # eager PyTorch has no trace of bool
        e2e.check(Many([lambda x: x.trace(), lambda x: x[:, :2].trace()]), normal(3, 4, dtype=dtype))
    rows = torch.export.Dim("rows", min=2, max=64)
    runs = [(normal(64, 3, 4, dtype=dtype),)]
    e2e.check(Many([lambda x: x.diagonal(0, 1, 2)]), normal(5, 3, 4, dtype=dtype),
              dynamic_shapes={"inputs": ({0: rows},)}, runs=runs)  # fmt: skip


def _kernels(program: pumice.Program, *inputs: torch.Tensor) -> set[str]:
    return {kernel.split("[")[0] for kernel in kernels(pumice.load(bytes(program)), *inputs)}


class Table(torch.nn.Module):
    """Reads the first rows of a table of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(normal(9, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.table[: x.shape[1]]


FIRST = {  # of x [1, 5, 7]
    "rows": lambda x: (x + 1)[:, :2],
    "elements": lambda x: (x + 1).flatten()[:3],
    "none": lambda x: (x + 1)[:, :0],
    "of an input": lambda x: (x[:, :3], x),
    "of first rows": lambda x: (x * 2)[:, :4][:, :3][:, :1].flatten()[:5],
    "in place": lambda x: torch.relu((x + 1)[:, :2]) * 3,
    "others read more": lambda x: (lambda y: (torch.relu(y[:, :3]), y * 2, y[:, :1]))(x + 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("function", FIRST.values(), ids=FIRST)
def test_first_elements_stay_where_they_are(e2e, function, dtype) -> None:
    """A slice from 0 on, with nothing in front of it, is memory that is there."""
    x = normal(1, 5, 7, dtype=dtype)
    program = e2e.check(Many([function]), x, reference="eager", all_features=True)
    assert program.report.operators["slice"] >= 1 and "copy" not in _kernels(program, x)


def test_first_rows_of_a_constant(e2e) -> None:
    x = normal(1, 5, 7)
    program = e2e.check(Table(), x, dynamic_shapes=({1: torch.export.Dim("rows", min=2, max=9)},))
    assert "copy" not in _kernels(program, x)


def test_first_rows_of_batches_are_copied(e2e) -> None:
    """Also where the batch is 1 at export only."""
    x = normal(2, 5, 7)
    batch = (({0: torch.export.Dim("batch", min=1, max=4)},),)
    program = e2e.check(Many([lambda x: (x + 1)[:, :2]]), x, dynamic_shapes=batch)
    assert "copy" in _kernels(program, x) and "copy" in _kernels(program, x[:1])


class Last(torch.nn.Module):
    """Keeps the first rows of what it computes from those of the last call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(1, 2, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.kept[:, :1]
        self.kept.copy_(y[:, :2])
        return y.mean(1)


def test_first_rows_of_a_state() -> None:
    model, xs = Last().eval(), normal(3, 1, 5, 7)
    session = pumice.load(bytes(pumice.export(model, (xs[0],))))
    for x in xs:
        torch.testing.assert_close(session(x), model(x))


def test_first_rows_of_a_constant_are_no_weight() -> None:
    """Their number may change from call to call, and weights are packed once."""
    file = OneCall()
    file.input(torch.float32, ["n", 8])
    x, weight = file.input(torch.float32, [3, 8]), file.constant(normal(9, 8))
    some = file.call("slice", [weight, 0, 0, file.size("n"), 1], torch.float32, ["n", 8], inner=True)
    file.call("linear", [x, some, None, 0, None], torch.float32, [3, "n"])
    with pytest.raises(pumice.InvalidFileError, match="must be a constant"):
        pumice.load(file.bytes())
