# SPDX-License-Identifier: Apache-2.0
"""Files of llama.cpp: Q4_0 and Q8_0 are taken over exactly; what cannot be read is said in a sentence."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from support import gguf_file
from tiny_llama import SPECIAL, byte_tokenizer

import pumice
from pumice.llm import export_model
from pumice.llm.gguf import q4_0, q8_0
from pumice.llm.methods import methods

TEXT = "| word | meaning | where |"
TOKENS = [token for token, _ in sorted(byte_tokenizer().get_vocab().items(), key=lambda item: item[1])]


@pytest.fixture
def model(eager) -> torch.nn.Module:
    """A copy; its vocabulary is cut to the tokens that the tokenizer has."""
    made = copy.deepcopy(eager("none"))
    made.resize_token_embeddings(len(TOKENS))
    return made


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "F16"])
def test_the_weights_are_those_of_the_file(model, tmp_path, monkeypatch, kind) -> None:
    score = [method for method in methods(1, 64) if method.name == "score"]
    monkeypatch.setattr(export_model, "methods", lambda batch, max_seq: score)  # one export instead of three
    meant = gguf_file.write(tmp_path / "m.gguf", model, kind, TOKENS)
    program = pumice.llm.export(tmp_path / "m.gguf", tmp_path / "m.pumice", dtype="f32", max_seq=64)
    lm = pumice.llm.load(tmp_path / "m.pumice")
    tokens = lm.encode(TEXT)
    assert tokens == byte_tokenizer().encode(TEXT).ids and lm.eos == {256}
    with torch.no_grad():
        want = meant(torch.tensor([tokens])).logits[0]
    got = torch.from_numpy(lm.score(tokens))
    torch.testing.assert_close(got, want, atol=2e-5 * float(want.abs().max()), rtol=0)
    assert program.report.notes == []
    assert lm.decode([*tokens, TOKENS.index(SPECIAL[0])]) == TEXT


def test_other_types_become_int8(model, tmp_path, monkeypatch) -> None:
    """Rounded once more, to a step of 1/127 of a row's largest weight, the probabilities move by 0.03; to four bits, by
    0.35."""
    score = [method for method in methods(1, 64) if method.name == "score"]
    monkeypatch.setattr(export_model, "methods", lambda batch, max_seq: score)
    meant = gguf_file.write(tmp_path / "m.gguf", model, "Q4_1", TOKENS)
    program = pumice.llm.export(tmp_path / "m.gguf", tmp_path / "m.pumice", dtype="f32", max_seq=64)
    assert program.report.notes == ["Q4_1: requantized to int8, a scale for each row (15 weights)"]
    lm = pumice.llm.load(tmp_path / "m.pumice")
    tokens = lm.encode(TEXT)
    with torch.no_grad():
        want = meant(torch.tensor([tokens])).logits[0].softmax(-1)
    got = torch.from_numpy(lm.score(tokens)).softmax(-1)
    difference = float((got - want).abs().sum(-1).max()) / 2
    print(f"of the probability, int8 moves {difference:.4f}")
    assert difference < 0.1


@pytest.mark.parametrize(
    ("kind", "options", "note"),
    [
        ("Q4_1", {"quantize": "int4"}, "Q4_1: requantized to int4, groups of 32 (15 weights)"),
        ("Q8_0", {"quantize": "int4", "group_size": 16}, "Q8_0: requantized to int4, groups of 16 (15 weights)"),
        ("Q4_0", {"quantize": "int8"}, "Q4_0: requantized to int8, a scale for each row (15 weights)"),
        ("Q8_0", {"quantize": "8da4w", "embedding": "int8"}, "Q8_0: requantized to 8da4w, groups of 32 (14 weights)"),
        ("Q4_0", {"quantize": "none"}, "Q4_0: dequantized to f32 (15 weights)"),
        ("F16", {"quantize": "int4"}, None),
    ],
)
def test_a_scheme_replaces_the_types_of_the_file(model, tiny, tmp_path, monkeypatch, kind, options, note) -> None:
    """The weights that the file means become what those of a model in memory do: the logits have the same bits."""
    score = [method for method in methods(1, 64) if method.name == "score"]
    monkeypatch.setattr(export_model, "methods", lambda batch, max_seq: score)
    meant = gguf_file.write(tmp_path / "m.gguf", model, kind, TOKENS)
    how = {"dtype": "f32", "max_seq": 64, **options}
    program = pumice.llm.export(tmp_path / "m.gguf", tmp_path / "m.pumice", **how)
    pumice.llm.export(meant, tmp_path / "same.pumice", tokenizer=tiny, **how)
    assert note in program.report.notes if note else not program.report.notes
    lm, same = (pumice.llm.load(tmp_path / name) for name in ("m.pumice", "same.pumice"))
    tokens = lm.encode(TEXT)
    assert np.array_equal(lm.score(tokens), same.score(tokens))


def test_an_embedding_alone_leaves_the_layers_as_they_are(model, tmp_path, monkeypatch) -> None:
    score = [method for method in methods(1, 64) if method.name == "score"]
    monkeypatch.setattr(export_model, "methods", lambda batch, max_seq: score)
    gguf_file.write(tmp_path / "m.gguf", model, "Q8_0", TOKENS)
    sizes = {}
    for embedding in (None, "int4"):
        program = pumice.llm.export(tmp_path / "m.gguf", embedding=embedding, max_seq=64)
        sizes[embedding] = sum(constant.size for constant in program.ir.constants)
        expected = ["Q8_0: requantized to int4, groups of 32 (1 weight)"] if embedding else []
        assert program.report.notes == expected
    assert sizes[None] - sizes["int4"] == len(TOKENS) * 96 // 2


@pytest.mark.parametrize(("write", "read"), [(gguf_file.q4_0, q4_0), (gguf_file.q8_0, q8_0)])
def test_blocks_are_exact(write, read) -> None:
    x = np.random.default_rng(0).standard_normal((6, 96)).astype(np.float32)
    x[0, :32], x[1, 32:64] = 0.0, -np.abs(x[1, 32:64])
    data, want = write(x)
    integers, scale, *zero = read(torch.from_numpy(data.reshape(6, -1)))
    zero = zero[0] if zero else torch.zeros_like(scale, dtype=torch.int8)
    got = (integers.unflatten(1, (3, 32)).float() - zero[..., None]) * scale.float()[..., None]
    assert torch.equal(got.flatten(1), torch.from_numpy(want))
    assert bool((scale >= 0).all()) and (read is q8_0 or {int(z) for z in zero.flatten()} == {0, -1})


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"general.architecture": "mamba"}, "unknown architecture .*llama, qwen2"),
        ({"llama.rope.scaling.type": "yarn"}, "scaled by 'yarn'"),
        ({"tokenizer.ggml.model": "other"}, "'other'"),
        ({"llama.feed_forward_length": 512}, "the configuration asks for"),
    ],
)
def test_a_file_that_is_not_known(model, tmp_path, changed, match) -> None:
    gguf_file.write(tmp_path / "m.gguf", model, "Q8_0", TOKENS, **changed)
    with pytest.raises(pumice.InvalidInputError, match=match):
        pumice.llm.export(tmp_path / "m.gguf", tmp_path / "m.pumice")
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


def test_a_file_that_is_cut_or_newer(model, tmp_path) -> None:
    path = tmp_path / "m.gguf"
    gguf_file.write(path, model, "Q8_0", TOKENS)
    data = path.read_bytes()
    whole = len(data)
    for size in (3, 20, 200, whole // 20, whole // 2, whole - 64):
        path.write_bytes(data[:size])
        with pytest.raises(pumice.InvalidInputError, match="or it is cut"):
            pumice.llm.export(path, tmp_path / "m.pumice")
    path.write_bytes(data[:4] + b"\x09" + data[5:])
    with pytest.raises(pumice.InvalidInputError, match="v9"):
        pumice.llm.export(path, tmp_path / "m.pumice")
