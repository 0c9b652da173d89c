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
BY_MATRICES = {"groups", "partial rotation", "all"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_session_follows_eager(case, dtype) -> None:
    """A prompt, then one token at a time, then two at once: results, and through the later ones the caches."""
    torch.manual_seed(1)
    options = CASES[case]
    module = CachedAttention(capacity=64, **options).eval().to(dtype)
    reference = CachedAttention(capacity=64, **options).eval().double()
    reference.load_state_dict(module.state_dict())
    batch = options.get("batch", 1)
    dim = torch.export.Dim("rows", min=1, max=64)
    example = (torch.randn(batch, 5, 32).to(dtype), torch.zeros(batch, dtype=torch.int64))
    with torch.no_grad():
        program = pumice.export(module, example, dynamic_shapes={"x": {1: dim}, "first": None})
    assert program.report.operators["cached_attention"] == 1
    assert program.report.operators["linear"] == 1  # queries, keys and values are one product
    data, calls = bytes(program), list(steps(batch, (17, 1, 1, 2, 1)))
    with torch.no_grad():
        wanted = [reference(x.to(dtype).double(), first) for x, first in calls]
    tolerance = 2e-5 if dtype is torch.float32 else 6e-3
    for features in (None, "none", "none,like_gpu", *(["like_gpu"] if case in BY_MATRICES else [])):
        session = pumice.load(data, features=features)
        for (x, first), want in zip(calls, wanted, strict=True):
            got = session(x.to(dtype), first)
            torch.testing.assert_close(got.double(), want, atol=tolerance, rtol=tolerance)


def test_positions_out_of_the_caches_end_the_run_and_write_nothing() -> None:
    """R14"""
    module = CachedAttention(heads=4, kv_heads=2, size=16, capacity=8, rotated=16).eval()
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


@pytest.mark.parametrize("features", [None, "like_gpu", "none"])
def test_what_is_left_after_the_last_position_counts_for_nothing(features) -> None:
    """The caches hold infinities and NaN where no row has been written yet."""
    torch.manual_seed(4)
    module = CachedAttention(heads=4, kv_heads=2, size=16, capacity=64, rotated=16).eval().half()
    clean = CachedAttention(heads=4, kv_heads=2, size=16, capacity=64, rotated=16).eval().half()
    clean.load_state_dict(module.state_dict())
    for name in ("key_cache", "value_cache"):
        getattr(module, name)[:] = torch.tensor([float("nan"), float("inf")], dtype=torch.float16).repeat(8)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_many_positions_are_shared_by_workgroups(dtype) -> None:
    """Several workgroups a head, whose number follows the live length, and the last one to end merges them."""
    torch.manual_seed(6)
    options = {"heads": 4, "kv_heads": 2, "size": 16, "capacity": 1200, "batch": 2, "rotated": 16, "sinks": True}
    module, reference = CachedAttention(**options).eval().to(dtype), CachedAttention(**options).eval().double()
    reference.load_state_dict(module.state_dict())
    example = (torch.randn(2, 1, 32).to(dtype), torch.zeros(2, dtype=torch.int64))
    session = pumice.load(bytes(pumice.export(module, example)), features="like_gpu")
    tolerance = 2e-5 if dtype is torch.float32 else 6e-3
    for first in ([0, 1199], [255, 256], [511, 700], [1023, 1024], [3, 900]):
        x = torch.randn(2, 1, 32)
        with torch.no_grad():
            want = reference(x.to(dtype).double(), torch.tensor(first))
        got = session(x.to(dtype), torch.tensor(first))
        torch.testing.assert_close(got.double(), want, atol=tolerance, rtol=tolerance)
