# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2 with its real weights, int4, against eager PyTorch running the same quantized model."""

from __future__ import annotations

import pytest
import torch

import pumice


@pytest.fixture(scope="module")
def int4():
    from minilm import build

    module, args, kwargs, dynamic_shapes = build()
    pumice.quantize(module, "int4", group_size=32)
    program = pumice.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
    return module, bytes(program), program.report


@pytest.fixture(scope="module")
def session(int4):
    return pumice.load(int4[1])


def random_batch(batch: int, tokens: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 30522, (batch, tokens), generator=generator)
    lengths = torch.randint(1, tokens + 1, (batch, 1), generator=generator)
    return ids, (torch.arange(tokens) < lengths).long()


@pytest.mark.parametrize(("batch", "tokens"), [(1, 3), (1, 16), (2, 17), (4, 64), (3, 5), (1, 3)])
def test_agrees_with_eager(int4, session, batch, tokens) -> None:
    ids, mask = random_batch(batch, tokens, 100 * batch + tokens)
    with torch.inference_mode():
        want = int4[0](ids, mask)
    got = session(ids, mask)
    cosine = torch.nn.functional.cosine_similarity(got.double(), want.double())
    assert cosine.min() >= 0.99999
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


def test_a_changing_shape_equals_a_fresh_session_bit_for_bit(int4, session) -> None:
    for batch, tokens in [(1, 9), (4, 33), (1, 9), (2, 64), (1, 3)]:
        ids, mask = random_batch(batch, tokens, tokens)
        fresh = pumice.load(int4[1])
        assert torch.equal(session(ids, mask), fresh(ids, mask))


@pytest.mark.parametrize("features", ["none", "like_gpu", "none,like_gpu"])
def test_other_kernels_agree(int4, session, features) -> None:
    other = pumice.load(int4[1], features=features)
    for batch, tokens in [(2, 12), (1, 3), (4, 64)]:
        ids, mask = random_batch(batch, tokens, 5)
        torch.testing.assert_close(other(ids, mask), session(ids, mask), atol=2e-6, rtol=0)


def test_every_linear_is_int4_and_every_node_runs(int4) -> None:
    assert "linear_q4gsw" in int4[2].operators
    assert not int4[2].reasons


@pytest.mark.parametrize(
    ("ids", "mask", "name"),
    [
        (torch.ones(1, 257, dtype=torch.int64), torch.ones(1, 257, dtype=torch.int64), "ids"),
        (torch.ones(1, 2, dtype=torch.int64), torch.ones(1, 2, dtype=torch.int64), "ids"),
        (torch.ones(1, 8, dtype=torch.int64), torch.ones(1, 9, dtype=torch.int64), "mask"),
        (torch.ones(8, dtype=torch.int64), torch.ones(1, 8, dtype=torch.int64), "ids"),
        (torch.ones(1, 8), torch.ones(1, 8, dtype=torch.int64), "ids"),
        (torch.full((1, 8), 30522), torch.ones(1, 8, dtype=torch.int64), "30522"),
        (torch.full((1, 8), -1), torch.ones(1, 8, dtype=torch.int64), "-1"),
        (torch.full((1, 8), 2**40), torch.ones(1, 8, dtype=torch.int64), "ids"),
    ],
)
def test_bad_input_is_named_and_the_session_goes_on(session, ids, mask, name) -> None:
    good = random_batch(1, 8, 1)
    before = session(*good)
    with pytest.raises(pumice.InvalidInputError, match=name):
        session(ids, mask)
    assert torch.equal(session(*good), before)
