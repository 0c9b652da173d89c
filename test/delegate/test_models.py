# SPDX-License-Identifier: Apache-2.0
"""Real models through ExecuTorch: all-MiniLM-L6-v2 with its weights, and a decoder whose caches are buffers."""

from __future__ import annotations

import sys
from pathlib import Path

import cpp_host
import pytest
import torch
from cpp_host import DRIVER
from lowered import Lowered
from test_decoder import SLOTS, VOCAB, Decoder, greedy

import pumice

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "demo"))


@pytest.mark.parametrize(("scheme", "linear"), [(None, "linear"), ("int4", "linear_q4gsw")])
def test_minilm(tmp_path, scheme, linear) -> None:
    from minilm import build

    module, args, _, dynamic_shapes = build()
    if scheme:
        pumice.quantize(module, scheme, group_size=32)
    lowered = Lowered(tmp_path, module, args, {"strict": True}, dynamic_shapes=dynamic_shapes)
    assert len(lowered.report.partitions) == 1 and lowered.report.operators[linear] == 36
    method = lowered.load()
    for batch, tokens in [(1, 3), (4, 33), (1, 16)]:
        ids = torch.randint(0, 30522, (batch, tokens), generator=torch.Generator().manual_seed(tokens))
        mask = (torch.arange(tokens) < torch.arange(tokens, tokens - batch, -1)[:, None]).long()
        (got,), (want,) = method.execute((ids, mask)), lowered.eager(ids, mask)
        assert torch.nn.functional.cosine_similarity(got.double(), want.double()).min() >= 0.99999
        torch.testing.assert_close(got, want, atol=2e-5, rtol=0)
    if scheme is None and DRIVER.exists():
        ((other,),) = cpp_host.run(lowered.path, [(ids, mask)], [want.dtype])
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
    if DRIVER.exists():
        calls = [(prompt, torch.arange(5))]
        calls += [(torch.tensor([[token]]), torch.tensor([5 + i])) for i, token in enumerate(want_tokens[:4])]
        for (logits,), step in zip(cpp_host.run(lowered.path, calls, [torch.float32]), want[:5], strict=True):
            torch.testing.assert_close(logits[:, -1], step, atol=2e-4, rtol=0)
