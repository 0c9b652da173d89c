# SPDX-License-Identifier: Apache-2.0
"""All layers of a decoder as one dispatch whose workgroups wait for each other: logits as fp64's and as those of single
kernels, the same tokens, and single kernels where the workgroups do not run at once."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
from pathlib import Path

import pytest
import torch
from support.merged_layers import CASES, MERGED, SINGLE, model_of, program_of
from support.roundings import roundings, row_error
from torch import nn

import pumice

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a head of the caches needs a compute unit")


def exact_of(model: nn.Module, group: int) -> nn.Module:
    """With the weights that are in the file, in fp64."""
    quantized = copy.deepcopy(model)
    pumice.quantize(quantized, "int4", group_size=group)
    for layer in quantized.modules():
        if isinstance(layer, nn.Linear):
            layer.weight = nn.Parameter(layer.weight.dequantize(), False)
    return quantized.double()


def logits(session: pumice.Session, tokens: torch.Tensor) -> torch.Tensor:
    rows = [session(token.view(1, 1), torch.tensor([i])) for i, token in enumerate(tokens)]
    return torch.cat(rows).double()


def is_merged(session: pumice.Session) -> bool:
    rows = session.profile(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([0]))
    return any("layers of a decoder" in row.operator for row in rows)


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_fp64(case: str) -> None:
    _, _, group, length = CASES[case]
    model = model_of(case)
    tokens = torch.randint(0, 64, (length,), generator=torch.Generator().manual_seed(2))
    want, off = roundings(exact_of(model, group), lambda m: m(tokens[None], use_cache=False).logits[0], 2.0**-11)
    program = program_of(model, group, max(length, 32))
    merged, single = (pumice.load(program, features=features) for features in (MERGED, SINGLE))
    got, beside = logits(merged, tokens), logits(single, tokens)
    most = 3 * row_error(want + off, want)
    assert row_error(got, want) <= most, (
        f"{row_error(got, want):.3g} of a row, {most:.3g} allowed; single kernels {row_error(beside, want):.3g}"
    )
    assert row_error(got, beside) <= most
    assert row_error(want.flip(0), want) > 20 * most, "other tokens would nearly pass, too"
    assert is_merged(merged)
    assert not is_merged(single)


def test_what_they_hand_over_counts_as_memory() -> None:
    """Where the budget has no room for it, single kernels run."""
    program = program_of(model_of("llama"), 32, 32)
    merged, single = (pumice.load(program, features=features) for features in (MERGED, SINGLE))
    token, first = torch.zeros(1, 1, dtype=torch.int64), torch.tensor([0])
    merged(token, first), single(token, first)
    assert merged.memory["io"] > single.memory["io"]
    least = sum(single.memory.values())
    assert not is_merged(pumice.load(program, features=MERGED, max_memory=least))
    assert is_merged(pumice.load(program, features=MERGED, max_memory=sum(merged.memory.values())))


@pytest.fixture(scope="module")
def file_of_layers(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("decoder_layers") / "llama.pumice"
    # The sizes of test_decoder_steps.py: the driver compiles the same kernels, which takes it seconds, once for both.
    model = model_of("llama", tie_word_embeddings=True, vocab_size=208)
    pumice.llm.export(model, path, quantize="int4", dtype="f16", max_seq=128)
    return path


@functools.cache
def generated(path: Path, features: str, count: int, **options: float) -> list[int]:
    lm = pumice.llm.load(path, features=features)
    return list(lm.generate_tokens(list(range(20, 40)), max_new_tokens=count, **options))


@pytest.mark.thorough
def test_tokens_are_those_of_single_kernels(file_of_layers) -> None:
    """Greedy and drawn, many steps in one submit."""
    for count, options in ((70, {}), (20, {"temperature": 0.8, "seed": 3, "top_k": 20})):
        tokens = [generated(file_of_layers, features, count, **options) for features in (MERGED, SINGLE)]
        assert tokens[0] == tokens[1] and len(tokens[0]) == count


def test_single_kernels_take_over_when_workgroups_give_up(file_of_layers, capfd) -> None:
    """A lane may wait once: the run ends wrong, is made again with single kernels, and so are all that follow."""
    assert generated(file_of_layers, MERGED + ",max_waits=1", 70) == generated(file_of_layers, SINGLE, 70)
    assert capfd.readouterr().err.count("did not run all workgroups of a kernel at once") == 1


def test_single_kernels_run_where_workgroups_do_not_run_at_once(file_of_layers) -> None:
    """The driver has one thread, so that a second workgroup begins when the first has ended."""
    command = ["pumice-rt", "generate", str(file_of_layers), "--tokens", "20,21,22", "-n", "12", "--device", "llvmpipe"]
    runs = [
        subprocess.run(
            [*command, "--features", features],
            env={**os.environ, "LP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        for features in (MERGED, SINGLE)
    ]
    assert "did not run all workgroups" in runs[0].stderr
    assert runs[0].stdout.splitlines()[0] == runs[1].stdout.splitlines()[0]
