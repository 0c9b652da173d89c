# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts: quantized, from a folder, with what the device lacks switched off; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from support.decoders import MAX_SEQ, VOCABULARY, decoder
from support.experts import quantized

import pumice
from pumice.llm import export_model
from pumice.llm.methods import methods
from pumice.llm.mixture import replace_mixtures

KINDS = ("qwen3_moe", "olmoe", "mixtral")
GROUP = 16
TOKENS = torch.randint(0, VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(2))
TOKENIZER = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}


@pytest.fixture
def score_only(monkeypatch) -> None:
    """Exports have the method `score` alone."""
    score = lambda batch, max_seq: [m for m in methods(batch, max_seq) if m.name == "score"]  # noqa: E731
    monkeypatch.setattr(export_model, "methods", score)


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got.float() - want).square().mean().sqrt() / want.std())


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(TOKENS).logits


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scheme", "most"), [("int4", 1e-5), ("int8", 1e-5), ("8da4w", 0.005)])
@pytest.mark.usefixtures("score_only")
def test_quantized_logits_are_those_of_eager(kind, scheme, most) -> None:
    """In pieces of a prompt, and token by token; on every kind of device. 8da4w rounds activations, where a last bit
    may tip; it must be far nearer to its own scheme than to another."""
    model = decoder(kind)
    program = pumice.llm.export(model, max_seq=MAX_SEQ, quantize=scheme, group_size=GROUP)
    assert program.report.operators["expert_linear"] == 2 * model.config.num_hidden_layers
    want, other = (logits(quantized(model, name, GROUP)) for name in (scheme, "int8" if scheme == "int4" else "int4"))
    assert error(other, want) > 2 * most
    devices = {"int4": (None, "none", "like_gpu") if kind == "qwen3_moe" else (None, "none")}
    for features in devices.get(scheme, (None,)):
        session = pumice.load(bytes(program), features=features)
        parts = [session(TOKENS[:, a:b], torch.tensor([a])) for a, b in ((0, 13), (13, 14), (14, 15), (15, 20))]
        assert error(torch.cat(parts, 1), want) < most, (features, error(torch.cat(parts, 1), want))


@pytest.mark.usefixtures("score_only")
def test_shares_may_stay_as_they_are() -> None:
    """norm_topk_prob is false in OLMoE's checkpoints and true in Qwen3's; both follow the configuration."""
    for kind in ("qwen3_moe", "olmoe"):
        model = decoder(kind)
        model.config.norm_topk_prob = not model.config.norm_topk_prob
        before = logits(model)
        for layer in model.model.layers:
            layer.mlp.gate.norm_topk_prob = model.config.norm_topk_prob
        want = logits(model)
        assert error(before, want) > 0.01
        session = pumice.load(bytes(pumice.llm.export(model, max_seq=MAX_SEQ)))
        assert error(session(TOKENS, torch.tensor([0])), want) < 1e-5


@pytest.mark.usefixtures("score_only")
def test_some_layers_may_have_no_experts() -> None:
    model = decoder("qwen3_moe", mlp_only_layers=[0])
    program = pumice.llm.export(model, max_seq=MAX_SEQ)
    assert program.report.operators["expert_linear"] == 2
    assert error(pumice.load(bytes(program))(TOKENS, torch.tensor([0])), logits(model)) < 1e-5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of each kind in shards, as transformers writes it: a matrix for each expert."""
    made: dict[str, Path] = {}

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            decoder(kind).save_pretrained(made[kind], max_shard_size="100KB")
            (made[kind] / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        return made[kind]

    return of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("score_only")
def test_a_folder_is_the_model(folder, kind) -> None:
    path = folder(kind)
    shards = sorted(path.glob("*.safetensors"))
    names = [name for shard in shards for name in safe_open(shard, "pt").keys()]  # noqa: SIM118
    assert len(shards) > 2 and sum(".experts." in name for name in names) == 2 * 3 * 8
    got = pumice.load(bytes(pumice.llm.export(path, max_seq=MAX_SEQ)))(TOKENS, torch.tensor([0]))
    assert error(got, logits(decoder(kind))) < 1e-5


def copy_as_one_shard(path: Path, to: Path, change) -> Path:
    """The folder with all weights in one file, as `change` leaves them."""
    to.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (to / name).write_bytes((path / name).read_bytes())
    weights = {name: tensor for shard in path.glob("*.safetensors") for name, tensor in load_file(shard).items()}
    change(weights)
    save_file(weights, to / "model.safetensors")
    return to


@pytest.mark.usefixtures("score_only")
def test_a_folder_may_have_experts_in_one_tensor(folder, tmp_path) -> None:
    def stack(weights) -> None:
        for layer in range(2):
            first = f"model.layers.{layer}.mlp.experts"
            parts = {
                kind: torch.stack([weights.pop(f"{first}.{expert}.{kind}.weight") for expert in range(8)])
                for kind in ("gate_proj", "up_proj", "down_proj")
            }
            weights[f"{first}.gate_up_proj"] = torch.cat((parts["gate_proj"], parts["up_proj"]), 1)
            weights[f"{first}.down_proj"] = parts["down_proj"]

    path = copy_as_one_shard(folder("qwen3_moe"), tmp_path / "model", stack)
    got = pumice.load(bytes(pumice.llm.export(path, max_seq=MAX_SEQ)))(TOKENS, torch.tensor([0]))
    assert error(got, logits(decoder("qwen3_moe"))) < 1e-5


EXPERT = "model.layers.1.mlp.experts.7"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda w: w.pop(f"{EXPERT}.up_proj.weight"),
            "no part 1 of expert 7 of 'model.layers.1.mlp.experts.gate_up_pr",
        ),
        (lambda w: w.update({f"{EXPERT}.up_proj.weight": torch.zeros(3, 64)}), "of several shapes"),
        (
            lambda w: [w.pop(name) for name in list(w) if ".experts.7." in name],
            r"is \[672, 64\], the config.* \[768, 6",
        ),
        (
            lambda w: [w.pop(name) for name in list(w) if "gate.weight" in name],
            "no weight 'model.layers.0.mlp.gate.wei",
        ),
        (lambda w: w.update({f"{EXPERT}.up_proj.weight": torch.zeros(48, 64).char()}), "are of several types"),
    ],
)
@pytest.mark.usefixtures("score_only")
def test_a_folder_that_is_not_whole(folder, tmp_path, change, match) -> None:
    path = copy_as_one_shard(folder("qwen3_moe"), tmp_path / "model", change)
    with pytest.raises(pumice.InvalidInputError, match=match):
        pumice.llm.export(path, tmp_path / "m.pumice", max_seq=MAX_SEQ)
    assert not (tmp_path / "m.pumice").exists()


@pytest.mark.parametrize(
    ("kind", "facts", "match"),
    [
        ("qwen2_moe", {}, "unknown architecture .*Qwen3MoE, OLMoE, Mixtral"),
        ("mixtral", {"hidden_act": "tanh"}, "activation 'tanh'; known: silu, "),
        ("mixtral", {"num_experts_per_tok": 9}, "9 of 8 experts; at least one"),
    ],
)
def test_what_is_not_known(folder, tmp_path, kind, facts, match) -> None:
    config = json.loads((folder("mixtral") / "config.json").read_text())
    path = copy_as_one_shard(folder("mixtral"), tmp_path / "model", lambda _: None)
    (path / "config.json").write_text(json.dumps({**config, "model_type": kind, **facts}))
    with pytest.raises(pumice.InvalidInputError, match=match):
        pumice.llm.export(path, tmp_path / "m.pumice", max_seq=MAX_SEQ)
    assert not (tmp_path / "m.pumice").exists()


def test_a_router_that_is_not_known() -> None:
    """As of an architecture that is added without looking at its router."""

    class OtherBlock(type(decoder("mixtral").model.layers[0].mlp)):
        pass

    model = decoder("mixtral")
    model.model.layers[1].mlp = OtherBlock(model.config)
    with pytest.raises(pumice.InvalidInputError, match="is that of OtherBlock; known: MixtralSparseMoeBlock, Qwen3Moe"):
        replace_mixtures(model)


def test_tokens_are_generated_on_the_device(tmp_path) -> None:
    """All methods of a file: greedy tokens equal eager's."""
    model = decoder("qwen3_moe")
    pumice.llm.export(model, tmp_path / "m.pumice", max_seq=MAX_SEQ)
    lm = pumice.llm.load(tmp_path / "m.pumice")
    prompt = TOKENS[0, :7].tolist()
    tokens = TOKENS[:, :7]
    for _ in range(20):
        with torch.no_grad():
            tokens = torch.cat((tokens, model(tokens).logits[:, -1:].argmax(-1)), 1)
    want = tokens[0, 7:].tolist()
    got = list(lm.generate_tokens(prompt, max_new_tokens=20))
    assert got == want[: len(got)] and (len(got) == 20 or want[len(got)] == 2)
