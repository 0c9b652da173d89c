# SPDX-License-Identifier: Apache-2.0
"""A small decoder whose key/value caches are registered buffers, written at a position: 40 steps."""

from __future__ import annotations

import pytest
import torch
from support.decoder import SLOTS, VOCAB, Decoder, greedy

import pumice


@pytest.fixture(scope="module", params=[None, "int4"], ids=["fp32", "int4"])
def decoder(request):
    torch.manual_seed(0)
    module = Decoder().eval()
    if request.param:
        pumice.quantize(module, request.param, group_size=32)
    steps = torch.export.Dim("steps", min=1, max=SLOTS)
    ids, pos = torch.ones(1, 4, dtype=torch.int64), torch.arange(4)
    import copy

    program = pumice.export(copy.deepcopy(module), (ids, pos), dynamic_shapes={"ids": {1: steps}, "pos": {0: steps}})
    return module, bytes(program)


def test_forty_steps_and_reset(decoder) -> None:
    module, data = decoder
    session = pumice.load(data)
    prompt = torch.randint(0, VOCAB, (1, 5), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        want_tokens, want = greedy(module, prompt, 40)
    got_tokens, got = greedy(session, prompt, 40)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, atol=2e-4, rtol=0)
    assert got_tokens == want_tokens
    session.reset()
    assert greedy(session, prompt, 3)[0] == want_tokens[:3]


def test_a_position_past_the_cache_is_refused_and_the_cache_is_unchanged(decoder) -> None:
    session, other = pumice.load(decoder[1]), pumice.load(decoder[1])
    first = (torch.tensor([[1, 2, 3]]), torch.arange(3))
    session(*first), other(*first)
    with pytest.raises(pumice.InvalidInputError, match=str(SLOTS)):
        session(torch.tensor([[5]]), torch.tensor([SLOTS]))
    after = (torch.tensor([[4]]), torch.tensor([3]))
    assert torch.equal(session(*after), other(*after))
