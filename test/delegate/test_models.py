# SPDX-License-Identifier: Apache-2.0
"""Real models through ExecuTorch: all-MiniLM-L6-v2 with its weights, and a decoder whose caches are buffers."""

from __future__ import annotations

import pytest
import torch
from support import cpp_host
from support.decoder import SLOTS, VOCAB, Decoder, greedy
from support.lowered import Lowered

import pumice


def sentences(batch: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences of random words, each one word shorter than the one before."""
    ids = torch.randint(0, 30522, (batch, tokens), generator=torch.Generator().manual_seed(tokens))
    return ids, (torch.arange(tokens) < torch.arange(tokens, tokens - batch, -1)[:, None]).long()


def distance(got: torch.Tensor, want: torch.Tensor) -> float:
    """1 - the smallest cosine of two rows."""
    return 1 - torch.nn.functional.cosine_similarity(got.double(), want.double()).min().item()


def nudged(lowered: Lowered, args: tuple[torch.Tensor, ...]) -> float:
    """The largest change of eager's result, of three, when the embeddings change by 2^-22 of their size."""
    weight = lowered.module.bert.embeddings.word_embeddings.weight.data
    original, (want,), moved = weight.clone(), lowered.eager(*args), []
    for seed in range(3):
        step = torch.randint(-1, 2, original.shape, generator=torch.Generator().manual_seed(seed))
        weight.copy_(original * (1 + step * 2.0**-22))
        moved.append(distance(lowered.eager(*args)[0], want))
    weight.copy_(original)
    return max(moved)


ANY_SHAPE, ONE_SHAPE = [(1, 3), (4, 33), (1, 16)], [(4, 33)]  # one: ExecuTorch's passes take a third of the time


@pytest.mark.parametrize(
    ("scheme", "linear", "shapes"),
    [
        (None, "linear", ONE_SHAPE),
        ("int4", "linear_q4gsw", ANY_SHAPE),
        ("8da4w", "linear_dq8ca_q4gsw", ONE_SHAPE),
    ],
)
def test_minilm(tmp_path, scheme, linear, shapes) -> None:
    """8da4w rounds activations to integers: what differs in its last bit may become another integer, layer by layer,
    in eager, too. So it may be as far from eager as eager is from itself; a session without ExecuTorch has its bits."""
    from minilm import build

    module, args, _, dynamic_shapes = build()
    if scheme:
        pumice.quantize(module, scheme, group_size=32)
    calls = [sentences(*shape) for shape in shapes]
    if shapes is ONE_SHAPE:
        args, dynamic_shapes = calls[0], None
    lowered = Lowered(tmp_path, module, args, {"strict": True}, dynamic_shapes=dynamic_shapes)
    assert len(lowered.report.partitions) == 1 and lowered.report.operators[linear] == 24
    method = lowered.load()
    session = pumice.load(lowered.blobs()[0], external=lowered.weights()) if scheme == "8da4w" else None
    gots = [method.execute(call)[0] for call in calls]
    for call, got in zip(calls, gots, strict=True):
        (want,) = lowered.eager(*call)
        if session:
            assert torch.equal(got, session(*call))
            assert distance(got, want) <= max(1e-5, 2 * nudged(lowered, call))
        else:
            assert distance(got, want) <= 1e-5
            torch.testing.assert_close(got, want, atol=2e-5, rtol=0)
    for (other,), got in zip(cpp_host.run(lowered.path, calls, [torch.float32]), gots, strict=True):
        assert torch.equal(other, got)


def test_a_decoder_with_caches_generates_the_same_tokens(tmp_path) -> None:
    torch.manual_seed(0)
    module = Decoder().eval()
    pumice.quantize(module, "int4", group_size=32)
    steps = torch.export.Dim("steps", min=1, max=SLOTS)
    shapes = {"ids": {1: steps}, "pos": {0: steps}}
    args = (torch.ones(1, 4, dtype=torch.int64), torch.arange(4))
    lowered = Lowered(tmp_path, module, args, {"strict": True}, dynamic_shapes=shapes)
    assert len(lowered.report.partitions) == 1
    assert not any("cache" in node.name for node in lowered.graph.graph.nodes if node.op == "placeholder")
    prompt = torch.randint(0, VOCAB, (1, 5), generator=torch.Generator().manual_seed(3))
    method = lowered.load()
    with torch.no_grad():
        want_tokens, want = greedy(lowered.module, prompt, 20)
    got_tokens, got = greedy(lambda ids, pos: method.execute((ids, pos))[0], prompt, 20)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, atol=2e-4, rtol=0)
    assert got_tokens == want_tokens
    calls = [(prompt, torch.arange(5))]
    calls += [(torch.tensor([[token]]), torch.tensor([5 + i])) for i, token in enumerate(want_tokens[:4])]
    for (logits,), step in zip(cpp_host.run(lowered.path, calls, [torch.float32]), want[:5], strict=True):
        torch.testing.assert_close(logits[:, -1], step, atol=2e-4, rtol=0)
