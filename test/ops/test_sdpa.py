# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.budget import ATTENTION, Budget
from support.device import is_llvmpipe
from support.one_call import OneCall
from torch.nn import functional as F

import pumice

INF = float("inf")


class Attention(torch.nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.options = options

    def forward(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, **{"attn_mask": mask, **self.options})


def budget(v: torch.Tensor) -> Budget:
    """That of the steps in fp32; GPUs with matrices round probabilities, whose sum is 1, to fp16."""
    if v.dtype is torch.float32 or is_llvmpipe():
        return ATTENTION
    return replace(ATTENTION, atol=2.0**-11 * float(v.abs().max()), why="MATMUL, SOFTMAX, MATMUL of fp16")


def heads(*shapes, dtype=torch.float32):
    torch.manual_seed(sum(map(sum, shapes)))
    return [torch.randn(shape).to(dtype) for shape in shapes]


SHAPES = [
    # batch, heads, rows, keys, size of a head, of a value
    (1, 2, 5, 5, 8, 8), (2, 12, 33, 33, 32, 32), (1, 2, 17, 70, 64, 64), (1, 2, 17, 70, 7, 5), (1, 1, 1, 200, 128, 128),
    (2, 3, 2, 65, 40, 36), (1, 1, 3, 129, 256, 256), (1, 1, 4, 9, 300, 20), (1, 2, 3, 3, 1, 1), (1, 1, 130, 64, 16, 16),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("b", "h", "rows", "keys", "e", "ev"), SHAPES)
def test_shapes(e2e, b, h, rows, keys, e, ev, dtype) -> None:
    q, k, v = heads((b, h, rows, e), (b, h, keys, e), (b, h, keys, ev), dtype=dtype)
    program = e2e.check(Attention(), q, k, v, budget=budget(v), all_features=rows == 5)
    assert program.report.operators == {"sdpa": 1}
    e2e.check(Attention(is_causal=True), q, k, v, budget=budget(v))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 9, 70), (2, 1, 1, 70), (1, 3, 9, 1), (9, 70), (1, 70)], ids=str)
def test_masks(e2e, shape, dtype) -> None:
    """Bool and float masks, broadcast; rows that see nothing are 0, as eager has them."""
    q, k, v = heads((2, 3, 9, 8), (2, 3, 70, 8), (2, 3, 70, 8), dtype=dtype)
    seen = torch.rand(shape) > 0.5
    seen.reshape(-1, shape[-1])[-1] = False
    e2e.check(Attention(), q, k, v, seen, budget=budget(v))
    added = torch.randn(shape).to(dtype).masked_fill(~seen, -INF)
    e2e.check(Attention(), q, k, v, added, budget=budget(v))


def test_rows_of_any_size(e2e) -> None:
    """In fp32: huge rows beside tiny ones, and what is not finite, as eager has it. Errors: ops/sdpa.cpp."""
    q, k, v = heads((1, 4, 40, 32), (1, 4, 75, 32), (1, 4, 75, 32))
    q[:, 1, ::2] *= 1e15
    q[:, 1, 1::2] *= 1e-15
    k[:, 1] *= 1e-15
    k[:, 2, ::3] *= 1e-30
    v[:, 2, 10] *= 1e4
    v[:, 2, :, 3] *= 1e-8
    v[:, 3, 5, 7], v[:, 3, 6, 8], q[:, 3, 4, 2], k[:, 3, 70, 1] = INF, -INF, float("nan"), -INF
    y = pumice.load(bytes(pumice.export(Attention(), (q, k, v)))).run(q, k, v)[0]
    eager, exact = (F.scaled_dot_product_attention(*(t.to(to) for t in (q, k, v))) for to in (q.dtype, torch.float64))
    finite = eager.isfinite()
    torch.testing.assert_close(y.where(~finite, 0.0), eager.where(~finite, 0.0), equal_nan=True)
    largest = v.abs().where(v.isfinite(), 0.0).amax(2, keepdim=True)  # of each element
    scores = 32**-0.5 * (q.abs().double() @ k.abs().double().mT).amax(-1, keepdim=True).nan_to_num(0.0)
    bound = (2.0**-17 + 2.0**-17 * scores) * largest + 2.0**-49 * largest.amax(-1, keepdim=True)
    assert ((y - exact).abs() <= bound)[finite].all()
    assert finite[:, :3].all() and not finite[:, 3].all()


def test_grouped_heads_and_scale(e2e) -> None:
    q, k, v = heads((2, 8, 5, 64), (2, 2, 100, 64), (2, 2, 100, 64))
    e2e.check(Attention(enable_gqa=True, scale=0.3), q, k, v, budget=ATTENTION)
    q, k, v = heads((1, 8, 1, 128), (1, 2, 100, 128), (1, 2, 100, 128))
    e2e.check(Attention(enable_gqa=True), q, k, v, budget=ATTENTION)


def test_other_ranks(e2e) -> None:
    for lead in ((), (3,)):
        q, k, v = heads((*lead, 9, 8), (*lead, 11, 8), (*lead, 11, 8))
        e2e.check(Attention(), q, k, v, budget=ATTENTION)
        e2e.check(Attention(), q, k, v, torch.randn(9, 11), budget=ATTENTION)
    q, k, v = heads((3, 9, 8), (3, 11, 8), (3, 11, 8))
    e2e.check(Attention(), q, k, v, torch.randn(3, 9, 11), budget=ATTENTION)


def test_more_dimensions_are_a_batch(e2e) -> None:
    """Windows of images (NesT, Twins, shifted windows with a mask for each): leading dimensions in q, k and v, those of
    the mask broadcast."""
    q, k, v = heads((2, 3, 4, 9, 8), (2, 3, 4, 11, 8), (2, 3, 4, 11, 8))
    e2e.check(Attention(), q, k, v, budget=ATTENTION)
    for mask in ((9, 11), (4, 1, 11), (3, 1, 9, 11), (1, 3, 4, 9, 11), (2, 1, 1, 9, 11)):
        e2e.check(Attention(), q, k, v, torch.randn(mask), budget=ATTENTION)
        e2e.check(Attention(), q, k, v, torch.randn(mask) > -1, budget=ATTENTION)
    e2e.check(Attention(), *heads((2, 1, 2, 2, 5, 8), (2, 1, 2, 2, 5, 8), (2, 1, 2, 2, 5, 8)), budget=ATTENTION)
    e2e.check(Attention(), *heads((2, 3, 4, 9, 8), (1, 3, 4, 11, 8), (2, 1, 4, 11, 8)), budget=ATTENTION)
    e2e.check(Attention(enable_gqa=True), *heads((2, 3, 4, 9, 8), (2, 3, 2, 5, 8), (2, 3, 2, 5, 8)), budget=ATTENTION)
    e2e.check(Attention(is_causal=True), *heads(*[(2, 3, 4, 9, 8)] * 3), budget=ATTENTION)


def test_more_dimensions_that_change(e2e) -> None:
    windows = torch.export.Dim("windows", min=1, max=9)
    shapes = {name: {1: windows} for name in ("q", "k", "v")}
    runs = [tuple(heads(*[(2, n, 2, 9, 8)] * 3)) for n in (1, 5)]
    e2e.check(Attention(), *heads(*[(2, 3, 2, 9, 8)] * 3), dynamic_shapes=shapes, runs=runs, budget=ATTENTION)


def test_empty(e2e) -> None:
    e2e.check(Attention(), *heads((1, 2, 0, 8), (1, 2, 3, 8), (1, 2, 3, 8)), budget=ATTENTION)
    e2e.check(Attention(), *heads((1, 2, 2, 8), (1, 2, 0, 8), (1, 2, 0, 8)), budget=ATTENTION)


class Block(torch.nn.Module):
    """How models write it: [B, L, H, E] through transposes, and back."""

    def forward(self, q, k, v):
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.permute(0, 2, 1, 3), v.transpose(1, 2))
        return y.transpose(1, 2).reshape(q.shape[0], q.shape[1], -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_transposes_are_folded(e2e, dtype) -> None:
    q, k, v = heads((2, 9, 3, 8), (2, 70, 3, 8), (2, 70, 3, 8), dtype=dtype)
    program = e2e.check(Block(), q, k, v, budget=budget(v))
    assert set(program.report.operators) == {"sdpa", "view"}


def test_large_scores(e2e) -> None:
    q, k, v = heads((1, 2, 9, 16), (1, 2, 200, 16), (1, 2, 200, 16))
    e2e.check(Attention(scale=1.0), q * 20, k * 5, v, budget=ATTENTION)


def test_dynamic_lengths(e2e) -> None:
    rows, keys = torch.export.Dim("rows", min=1, max=300), torch.export.Dim("keys", min=1, max=300)
    sizes = [(1, 1), (2, 300), (17, 64), (130, 65)]
    runs = [tuple(heads((1, 2, n, 16), (1, 2, s, 16), (1, 2, s, 16))) for n, s in sizes]
    shapes = {"q": {2: rows}, "k": {2: keys}, "v": {2: keys}}
    e2e.check(
        Attention(),
        *heads((1, 2, 5, 16), (1, 2, 7, 16), (1, 2, 7, 16)),
        dynamic_shapes=shapes,
        runs=runs,
        budget=ATTENTION,
    )


def test_dropout_is_refused(e2e) -> None:
    e2e.refuses(Attention(dropout_p=0.5), *heads((1, 2, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)), match="dropout")


MATRICES = [
    # rows, keys, size of a head, of a value, mask, options
    (33, 33, 16, 16, None, {}), (17, 70, 12, 24, "f16", {}), (9, 65, 7, 5, "bool", {}),
    (40, 40, 8, 8, None, {"is_causal": True}), (8, 100, 8, 8, None, {"enable_gqa": True, "scale": 2.0}),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "is_read"), [((7, 9), False), ((1, 1, 1, 9), False), ((2, 1, 7, 9), True)], ids=str)
def test_a_constant_mask_that_leaves_all_in_is_not_read(e2e, shape, is_read) -> None:
    """Transformers make one of arange(rows) >= 0; one with a False in it is a mask."""
    q, k, v = heads((2, 3, 7, 8), (2, 3, 9, 8), (2, 3, 9, 8))
    for seen in (torch.ones(shape, dtype=torch.bool), (torch.arange(9) < 8).expand(shape).clone()):
        module = Attention(attn_mask=seen)
        program = e2e.check(module, q, k, v, budget=ATTENTION)
        (row,) = [row for row in pumice.load(bytes(program)).profile(q, k, v) if row.operator == "sdpa"]
        assert ("bool" in row.shape) is (is_read or not bool(seen.all()))


@pytest.mark.parametrize(("rows", "keys", "e", "ev", "mask", "options"), MATRICES)
def test_matrices(rows, keys, e, ev, mask, options) -> None:
    """fp16 by cooperative matrices, against fp64 within the bound of ops/sdpa.cpp; a row that sees nothing is 0."""
    groups = 2 if "enable_gqa" in options else 4
    q, k, v = heads((2, 4, rows, e), (2, groups, keys, e), (2, groups, keys, ev), dtype=torch.float16)
    inputs = [q, k, v]
    if mask:
        seen = torch.rand(2, 1, rows, keys) > 0.5
        seen[0, 0, 0] = False
        added = torch.randn(2, 1, rows, keys).half().masked_fill(~seen, -INF)
        inputs.append(seen if mask == "bool" else added)
    data = bytes(pumice.export(Attention(**options), tuple(inputs)))
    session = pumice.load(data, features="like_gpu")
    if not {"coopmat", "memory_model", "float16"} <= set(session.device.features):
        pytest.skip("no cooperative matrices")
    got = session(*inputs).double()
    kernels = {row.kernel for row in session.profile(*inputs)} - {"copy"}
    fragments = {"sdpa_fragments[f16,own,shared]", "sdpa_fragments[f16,own,own]"}
    assert len(kernels) == 1 and kernels <= ({"sdpa_matrix[own]"} if is_llvmpipe() else fragments)
    assert torch.equal(got, session(*inputs).double())
    want = Attention(**options)(*(t.double() if t.is_floating_point() else t for t in inputs)).nan_to_num(0)
    scale = options.get("scale", e**-0.5)
    sums = scale * (q.double().abs() @ k.double().abs().repeat_interleave(4 // groups, 1).mT).max()
    score = 2.0**-23 * (e + 2) * sums
    bound = 2.0**-11 * want.abs() + (2.0**-11 + 2.0**-23 * (e + keys + 8) + 4 * score) * v.double().abs().max()
    assert ((got - want).abs() <= bound).all()


@pytest.mark.parametrize("dims", [(), (5,), (4, 5), (1, 4, 5), (1, 1, 1, 4, 5)], ids=len)
def test_a_mask_of_another_rank_is_refused(dims) -> None:
    b = OneCall()
    q, k, v = (b.input(torch.float32, (1, 2, rows, 8)) for rows in (4, 5, 5))
    args = [q, k, v, b.input(torch.float32, dims), False, 1.0, False, False, False, False]
    b.call("sdpa", args, torch.float32, (1, 2, 4, 8))
    with pytest.raises(pumice.InvalidFileError, match=f"mask has rank {len(dims)}"):
        pumice.load(b.bytes())
