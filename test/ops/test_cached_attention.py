# SPDX-License-Identifier: Apache-2.0
"""Attention over caches against the operator's own eager form: rotation, norms, groups, windows, soft caps, sinks."""

from __future__ import annotations

import pytest
import torch
from support.cached_attention import CachedAttention

import pumice


def steps(batch, lengths, start=0):
    generator = torch.Generator().manual_seed(5)
    for length in lengths:
        yield torch.randn(batch, length, 32, generator=generator), torch.full((batch,), start)
        start += length


# A size and a number of queries a head of keys are a kernel each, for which every device waits: options share them.
CASES = {
    "one head": {"heads": 1, "kv_heads": 1, "size": 8},
    "groups": {"heads": 4, "kv_heads": 2, "size": 16, "rotated": 16},
    "grouped by 8": {"heads": 8, "kv_heads": 1, "size": 64, "rotated": 64},
    "partial rotation": {"heads": 4, "kv_heads": 4, "size": 20, "rotated": 6},
    "norm before": {"heads": 4, "kv_heads": 2, "size": 16, "rotated": 16, "norm": "before"},
    "norm after": {"heads": 2, "kv_heads": 2, "size": 24, "rotated": 24, "norm": "after"},
    "window": {"heads": 4, "kv_heads": 2, "size": 16, "window": 7},
    "softcap": {"heads": 4, "kv_heads": 2, "size": 16, "softcap": 2.0},
    "sinks": {"heads": 4, "kv_heads": 2, "size": 16, "rotated": 8, "sinks": True, "bias": True},
    "two sequences": {"heads": 4, "kv_heads": 4, "size": 24, "rotated": 24, "batch": 2},
    "int8": {"heads": 4, "kv_heads": 2, "size": 16, "rotated": 16, "int8": True},
    "int8, partial rotation": {"heads": 2, "kv_heads": 2, "size": 20, "rotated": 6, "int8": True},
    "int8, all": {
        "heads": 6,
        "kv_heads": 3,
        "size": 24,
        "rotated": 24,
        "norm": "after",
        "sinks": True,
        "window": 20,
        "softcap": 5.0,
        "batch": 2,
        "int8": True,
    },
    "all": {
        "heads": 6,
        "kv_heads": 3,
        "size": 128,
        "rotated": 64,
        "norm": "before",
        "sinks": True,
        "window": 20,
        "softcap": 5.0,
        "batch": 2,
    },
}

# By kernels of matrices, too, which a CPU driver compiles for a quarter of a minute each.
BY_MATRICES = {"groups", "partial rotation", "all", "int8"}
# Of fp16 results. Of int8 rows: elements are rounded to fp16 first, which the reference does not; an integer may
# then be the next one, by a scale: 1/127 of up to 2.5.
HALF, HALF_INT8 = 6e-3, 2.5 / 127


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_session_follows_eager(case, dtype) -> None:
    """A prompt, then one token at a time, then two at once: results, and through the later ones the caches."""
    torch.manual_seed(1)
    options = CASES[case]
    module = CachedAttention(capacity=64, **options).eval().of_floats(dtype)
    reference = CachedAttention(capacity=64, **options).eval().of_floats(torch.float64)
    reference.load_state_dict(module.state_dict())
    batch = options.get("batch", 1)
    dim = torch.export.Dim("rows", min=1, max=64)
    example = (torch.randn(batch, 5, 32).to(dtype), torch.zeros(batch, dtype=torch.int64))
    with torch.no_grad():
        program = pumice.export(module, example, dynamic_shapes={"x": {1: dim}, "first": None})
    int8 = options.get("int8", False)
    assert program.report.operators["cached_attention_int8" if int8 else "cached_attention"] == 1
    assert program.report.operators["linear"] == 1  # queries, keys and values are one product
    data, calls = bytes(program), list(steps(batch, (17, 1, 1, 2, 1)))
    with torch.no_grad():
        wanted = [reference(x.to(dtype).double(), first) for x, first in calls]
    tolerance = 2e-5 if dtype is torch.float32 else HALF_INT8 if int8 else HALF
    for features in (None, "none", "none,like_gpu", *(["like_gpu"] if case in BY_MATRICES else [])):
        session = pumice.load(data, features=features)
        for (x, first), want in zip(calls, wanted, strict=True):
            got = session(x.to(dtype), first)
            torch.testing.assert_close(got.double(), want, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("int8", [False, True], ids=["floats", "int8"])
def test_positions_out_of_the_caches_end_the_run_and_write_nothing(int8) -> None:
    """R14"""
    module = CachedAttention(heads=4, kv_heads=2, size=16, capacity=8, rotated=16, int8=int8).eval()
    dim = torch.export.Dim("rows", min=1, max=8)
    module.cos, module.sin = (torch.randn(32, 16) for _ in range(2))
    example = (torch.randn(1, 3, 32), torch.zeros(1, dtype=torch.int64))
    data = bytes(pumice.export(module, example, dynamic_shapes={"x": {1: dim}, "first": None}))
    session, other = pumice.load(data), pumice.load(data)
    start = (torch.randn(1, 3, 32), torch.zeros(1, dtype=torch.int64))
    assert torch.equal(session(*start), other(*start))
    with pytest.raises(pumice.InvalidInputError, match=r"outside 0\.\.7"):
        session(torch.randn(1, 3, 32), torch.tensor([6]))
    with pytest.raises(pumice.InvalidInputError, match="index -1"):
        session(torch.randn(1, 1, 32), torch.tensor([-1]))
    after = (torch.randn(1, 1, 32), torch.tensor([3]))
    assert torch.equal(session(*after), other(*after))


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("features", [None, "like_gpu", "none"])
def test_what_is_left_after_the_last_position_counts_for_nothing(features, int8) -> None:
    """Caches of f16, and scales of caches of int8, hold infinities and NaN where no row has been written yet."""
    torch.manual_seed(4)
    options = {"heads": 4, "kv_heads": 2, "size": 16, "capacity": 64, "rotated": 16, "int8": int8}
    module, clean = (CachedAttention(**options).eval().of_floats(torch.float16) for _ in range(2))
    clean.load_state_dict(module.state_dict())
    for name in ("scales",) if int8 else ("key_cache", "value_cache"):
        left = getattr(module, name)
        left[:] = torch.tensor([float("nan"), float("inf")], dtype=left.dtype).repeat(left.shape[-1] // 2)
        getattr(clean, name)[:] = 0
    dim = torch.export.Dim("rows", min=1, max=64)
    sessions = []
    for each in (module, clean):
        example = (torch.randn(1, 5, 32).half(), torch.zeros(1, dtype=torch.int64))
        program = pumice.export(each, example, dynamic_shapes={"x": {1: dim}, "first": None})
        sessions.append(pumice.load(bytes(program), features=features))
    for x, first in steps(1, (17, 1, 3)):
        got, want = (session(x.half(), first) for session in sessions)
        assert torch.isfinite(want).all()
        assert torch.equal(got, want)


class Raw(torch.nn.Module):
    """The operator with caches of int8 and their scales as results."""

    def __init__(self, size: int, capacity: int) -> None:
        super().__init__()
        self.size, self.capacity = size, capacity

    def forward(self, x, first):
        """x [1, 1, L, size]: queries, keys and values."""
        cache = torch.zeros(1, 1, self.capacity, self.size, dtype=torch.int8)
        scales = torch.zeros(1, 1, self.capacity, 2)
        return torch.ops.pumice.cached_attention_int8(x, x, 3 * x, cache, cache + 0, scales, first, self.size**-0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("rows", [1, 3, 12])
def test_integers_and_scales_are_those_of_eager(rows, dtype) -> None:
    """Ties, rows of zeros, subnormal and the largest numbers; exactly, where there is neither norm nor rotation."""
    torch.manual_seed(3)
    x = torch.randn(1, 1, rows, 16).to(dtype)
    x[0, 0, 0] = torch.arange(16).to(dtype) * 0.25 + 59.75  # 63.5 / 0.5 = 127; every other one is a tie
    if rows > 1:
        x[0, 0, 1] = 0
        subnormal = 2.0**-5 if dtype is torch.float16 else 1  # of fp32 it may be taken for 0
        small = torch.finfo(dtype).tiny * subnormal
        x[0, 0, 2] = small * torch.arange(16).to(dtype)
    if rows > 3:
        x[0, 0, 3] = torch.finfo(dtype).max / 3 * torch.linspace(-1, 1, 16).to(dtype)
    module, first = Raw(16, 16).eval(), torch.zeros(1, dtype=torch.int64)
    session = pumice.load(bytes(pumice.export(module, (x, first))))
    for got, want in zip(session(x, first)[1:], module(x, first)[1:], strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("rows", [1, 3, 12])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_row_that_is_not_finite_is_read_as_nan(rows, bad) -> None:
    x, first = torch.randn(1, 1, rows, 16), torch.zeros(1, dtype=torch.int64)
    x[0, 0, -1, 5] = bad
    module = Raw(16, 16).eval()
    got = pumice.load(bytes(pumice.export(module, (x, first))))(x, first)
    want = module(x, first)
    assert torch.isnan(got[0][0, -1]).all() and torch.isnan(want[0][0, -1]).all()
    assert torch.equal(got[1], want[1]) and not got[1][0, 0, rows - 1].any()


def test_int8_rows_are_as_near_to_floats_as_the_operator_says() -> None:
    """|result - that of floats| <= max|v| / 254 + (e^(2 d) - 1) max|v|, d = |scale| sum|q| max|k| / 254."""
    torch.manual_seed(8)
    x, first = torch.randn(1, 1, 24, 16), torch.zeros(1, dtype=torch.int64)
    module = Raw(16, 24).eval()
    got = pumice.load(bytes(pumice.export(module, (x, first))))(x, first)[0]
    caches = (torch.zeros(1, 1, 24, 16), torch.zeros(1, 1, 24, 16))
    want = torch.ops.pumice.cached_attention(x, x, 3 * x, *caches, first, 0.25)[0]
    most_v, most_k = float(3 * x.abs().max()), float(x.abs().max())
    d = 0.25 * x[0, 0].abs().sum(-1) * most_k / 254
    bound = most_v / 254 + torch.expm1(2 * d) * most_v
    off = (got - want)[0, :, 0].abs().amax(-1)
    assert (off <= bound).all()
    assert off.max() > 1e-3, "rows were not quantized"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_many_positions_are_shared_by_workgroups(dtype) -> None:
    """Several workgroups a head, whose number follows the live length, and the last one to end merges them."""
    torch.manual_seed(6)
    options = {"heads": 4, "kv_heads": 2, "size": 16, "capacity": 1200, "batch": 2, "rotated": 16, "sinks": True}
    module, reference = CachedAttention(**options).eval().to(dtype), CachedAttention(**options).eval().double()
    reference.load_state_dict(module.state_dict())
    example = (torch.randn(2, 1, 32).to(dtype), torch.zeros(2, dtype=torch.int64))
    session = pumice.load(bytes(pumice.export(module, example)), features="like_gpu")
    tolerance = 2e-5 if dtype is torch.float32 else HALF
    for first in ([0, 1199], [255, 256], [511, 700], [1023, 1024], [3, 900]):
        x = torch.randn(2, 1, 32)
        with torch.no_grad():
            want = reference(x.to(dtype).double(), torch.tensor(first))
        got = session(x.to(dtype), torch.tensor(first))
        torch.testing.assert_close(got.double(), want, atol=tolerance, rtol=tolerance)
