# SPDX-License-Identifier: Apache-2.0
"""All steps of a call as one dispatch: the tokens of single steps, and single steps where it does not suit."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest
import torch
from support.device import device
from support.merged_layers import CASES, MERGED, SINGLE, model_of, program_of

import pumice
from pumice.llm import methods
from pumice.llm.decoder import Decoder
from pumice.llm.steps import Steps

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a head of the caches needs a compute unit")

MOST, TEXT = 96, 24
PLAIN, NO_COUNTS = (0.0, 1.0, 0.0, 1.0), (0, 0, 1, 2)
# Of support.merged_layers, and whether embedding and head are one matrix.
MODELS = {"llama": True, "one_layer": False, "bias": False, "window": False, "wide_groups": False}


@functools.cache
def program(case: str) -> bytes:
    model = model_of(case, tie_word_embeddings=MODELS[case], vocab_size=208)
    return program_of(model, CASES[case][2], MOST, ("prefill", "decode", "sample"))


@functools.cache
def text_of(case: str) -> torch.Tensor:
    return torch.randint(0, 208, (1, TEXT), generator=torch.Generator().manual_seed(len(case)))


def loaded(case: str, features: str) -> pumice.Session:
    """With the caches of all but the last token of the text."""
    session = pumice.load(program(case), features=features)
    session.method("prefill")(text_of(case)[:, :-1], torch.tensor([0]))
    return session


def call(session: pumice.Session, case: str, steps: int, **changes: object) -> list[int]:
    """The tokens after the text."""
    values = {
        "token": int(text_of(case)[0, -1]),
        "position": TEXT - 1,
        "step": 0,
        "options": PLAIN,
        "counts": NO_COUNTS,
    }
    values |= changes
    before = torch.zeros(1, MOST, dtype=torch.int64)
    before[:, :TEXT] = text_of(case)
    made = session.method("sample").run(
        torch.tensor([[values["token"]]]),
        torch.tensor([values["position"]]),
        torch.tensor([values["step"]]),
        before,
        torch.tensor([values["options"]]),
        torch.tensor([values["counts"]], dtype=torch.int32),
        steps=steps,
    )
    return made[0, : values["step"] + steps].tolist()


def log_of_generating(path: Path, features: str, *options: str) -> str:
    """What a process tells that generates tokens."""
    command = ["pumice-rt", "generate", str(path), "--tokens", "20,21,22", "-n", "12", "--features", features, *options]
    environment = os.environ | {"PUMICE_LOG": "debug"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


@pytest.mark.parametrize("case", MODELS)
def test_tokens_are_those_of_single_steps(case: str) -> None:
    """Whatever their number, cut into several submits, up to the last place of the caches, after any token."""
    merged, single = loaded(case, MERGED), loaded(case, SINGLE)
    cut = loaded(case, MERGED + ",submit_us=1")
    lengths = (2, 3, 64, 1, 17)
    wanted = [call(single, case, steps) for steps in lengths]
    for steps, want in zip(lengths, wanted, strict=True):
        assert call(merged, case, steps) == want
        assert call(cut, case, steps) == want
    last = MOST - 5
    assert call(merged, case, 5, position=last) == call(single, case, 5, position=last)
    rows = [(call(merged, case, 2, token=token), call(single, case, 2, token=token)) for token in range(60, 76)]
    assert all(got == want for got, want in rows)
    assert len({tuple(want) for _, want in rows}) > 2, "a model that says one thing shows little"


def test_by_the_products_of_devices_without_fragments() -> None:
    """On devices that have them: where a matrix keeps its elements is known, and the products are others."""
    if "fragments" not in device().features:
        pytest.skip("these are the products of this device")
    merged, single = (loaded("llama", f"{features},-fragments") for features in (MERGED, SINGLE))
    assert call(merged, "llama", 17) == call(single, "llama", 17)


@pytest.mark.parametrize("case", MODELS)
def test_they_are_one_dispatch(case: str, tmp_path) -> None:
    """But for tokens that are drawn otherwise, and where nothing is merged."""
    path = tmp_path / "model.pumice"
    path.write_bytes(program(case))
    said = "steps of a decoder"
    assert said in log_of_generating(path, MERGED)
    assert said not in log_of_generating(path, SINGLE)
    assert said not in log_of_generating(path, MERGED, "--temperature", "0.8")
    assert said not in log_of_generating(path, MERGED, "--repeat-penalty", "1.2")


def test_a_call_goes_on_where_another_ended() -> None:
    """Steps do not begin at column 0, and the caches hold what both kinds of runs wrote."""
    merged, single = loaded("llama", MERGED), loaded("llama", SINGLE)
    want = call(single, "llama", 40)
    first = call(merged, "llama", 9)
    assert first == want[:9]
    assert call(merged, "llama", 1, token=first[-1], position=TEXT + 8) == want[9:10]
    assert call(merged, "llama", 30, token=want[9], position=TEXT + 9) == want[10:]
    assert call(merged, "llama", 7, token=want[9], position=TEXT + 9, step=50)[50:] == want[10:17]


@pytest.mark.parametrize(
    "changes",
    [
        {"options": (0.8, 1.0, 0.0, 1.0)},
        {"options": (0.0, 1.0, 0.0, 1.3), "counts": (0, 64, 1, 2)},
        {"options": (0.7, 0.9, 0.05, 1.1), "counts": (40, 64, 1, 2)},
    ],
    ids=["temperature", "penalty", "all"],
)
def test_what_draws_otherwise(changes) -> None:
    merged, single = loaded("llama", MERGED), loaded("llama", SINGLE)
    assert call(merged, "llama", 20, **changes) == call(single, "llama", 20, **changes)
    assert call(merged, "llama", 20) == call(single, "llama", 20)


@pytest.mark.parametrize(
    "changes",
    [
        {"position": MOST - 3},
        {"position": -1},
        {"position": MOST},
        {"token": 208},
        {"token": -1},
        {"step": 60},
        {"step": -1},
        {"options": (0.0, 0.0, 0.0, 1.0)},
        {"options": (0.0, 1.0, 2.0, 1.0)},
        {"counts": (-1, 0, 1, 2)},
        {"counts": (0, -1, 1, 2)},
    ],
    ids=str,
)
def test_errors_are_those_of_single_steps(changes) -> None:
    merged, single = loaded("llama", MERGED), loaded("llama", SINGLE)
    errors = []
    for session in (merged, single):
        with pytest.raises(pumice.InvalidInputError) as error:
            call(session, "llama", 6, **changes)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert call(merged, "llama", 12) == call(single, "llama", 12)


def test_logits_without_a_number_are_an_error() -> None:
    """The last norm has NaN as a weight."""
    model = model_of("llama", tie_word_embeddings=False)
    model.model.norm.weight.data[0] = torch.nan
    session = pumice.load(program_of(model, 32, MOST, ("prefill", "sample")), features=MERGED)
    text = torch.zeros(1, MOST, dtype=torch.int64)
    inputs = (torch.tensor([[3]]), torch.tensor([0]), torch.tensor([0]), text, torch.tensor([PLAIN]))
    with pytest.raises(pumice.InvalidInputError, match="number"):
        session.method("sample").run(*inputs, torch.tensor([NO_COUNTS], dtype=torch.int32), steps=4)


def test_single_steps_take_over_when_workgroups_give_up(capfd) -> None:
    merged, single = loaded("llama", MERGED + ",max_waits=1"), loaded("llama", SINGLE)
    assert call(merged, "llama", 30) == call(single, "llama", 30)
    assert capfd.readouterr().err.count("did not run all workgroups of a kernel at once") == 1


class Forgets(Steps):
    """Each step of a call is on the same token."""

    def forward(self, token, position, step, text, options, counts):
        logits = Decoder.forward(self, token, position)
        drawn = torch.ops.pumice.sample_token(logits, options, counts, text, self.made, token, position, step)
        self.made.copy_(drawn[0])
        return drawn[0]


def test_steps_that_are_not_each_on_the_one_before(monkeypatch) -> None:
    monkeypatch.setitem(methods._MODULES, "sample", Forgets)
    made = program_of(model_of("one_layer", vocab_size=208), CASES["one_layer"][2], MOST, ("prefill", "sample"))
    merged, single = (pumice.load(made, features=features) for features in (MERGED, SINGLE))
    assert call(merged, "one_layer", 4) == call(single, "one_layer", 4)
