# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.quantized import quantized

import pumice

INDICES = [(5,), (3, 4), (2, 1, 7), (), (0,), (0, 3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("columns", [1, 3, 4, 7, 8, 130])
def test_float(e2e, columns, dtype) -> None:
    torch.manual_seed(columns)
    module = torch.nn.Embedding(23, columns, padding_idx=2).to(dtype)
    shapes = INDICES if columns == 7 else INDICES[:2]
    for i, shape in enumerate(shapes):
        kind = (torch.int64, torch.int32)[i % 2]
        e2e.check(module, torch.randint(0, 23, shape, dtype=kind), reference="eager", expect_ops={"embedding": 1})


@pytest.mark.parametrize("affine", [False, True], ids=["symmetric", "affine"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("bits", "columns", "group"), [(4, 64, 32), (4, 24, 12), (4, 30, None), (8, 64, 32), (8, 33, None)]
)
def test_quantized(e2e, bits, columns, group, dtype, affine) -> None:
    """(q - zero) * scale with one rounding, as eager."""
    torch.manual_seed(columns)
    module = quantized(torch.nn.Embedding(50, columns).to(dtype), bits, group, affine)
    index = torch.randint(0, 50, (3, 9))
    e2e.check(module, index, reference="eager", expect_ops={f"embedding_q{bits}gsw": 1}, all_features=True)


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("bad", [-1, 23, 2**31 - 1, -(2**31)])
def test_an_index_out_of_range_fails_the_run(bits, bad) -> None:
    module = torch.nn.Embedding(23, 32).eval()
    if bits:
        module = quantized(module, bits, 32)
    index = torch.randint(0, 23, (3, 4))
    session = pumice.load(bytes(pumice.export(module, (index,))))
    want = session(index)
    broken = index.clone()
    broken[1, 2] = bad
    with pytest.raises(pumice.Error, match=str(bad)):
        session(broken)
    assert torch.equal(session(index), want)  # the session goes on


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(70, 64), torch.nn.Linear(64, 70, bias=False)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(index))


def test_a_tied_head_shares_the_packed_weight() -> None:
    module = quantized(Tied(), 4, 32)
    module.head.weight = module.embed.weight
    index = torch.randint(0, 70, (2, 5))
    program = pumice.export(module, (index,))
    assert program.report.operators == {"embedding_q4gsw": 1, "linear_q4gsw": 1}
    torch.testing.assert_close(pumice.load(bytes(program))(index), module(index), rtol=1e-5, atol=1e-5)
