# SPDX-License-Identifier: Apache-2.0
"""What cannot be exported is said in a sentence, and nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from support.decoders import decoder

import pumice


def change_config(**facts):
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))

    return change


def cut_a_shard(folder: Path) -> None:
    shard = sorted(folder.glob("*.safetensors"))[0]
    shard.write_bytes(shard.read_bytes()[:500])


def without_weight(folder: Path) -> None:
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    del index["weight_map"]["model.norm.weight"]
    path.write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda f: (f / "config.json").unlink(), "has no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "is no JSON"),
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda f: sorted(f.glob("*.safetensors"))[1].unlink(), "has no model-00002-of-.*which"),
        (lambda f: (f / "model.safetensors.index.json").unlink(), "has no model.safetensors and no"),
        (cut_a_shard, "damaged or cut short"),
        (without_weight, "no weight 'model.norm.weight'"),
        (change_config(model_type="lama"), "did you mean 'llama'"),
        (change_config(model_type="mamba"), "unknown architecture .*Llama, Qwen2"),
        (change_config(hidden_size=192), r"is \[264, 96\], the configuration asks for \[264, 192\]"),
    ],
)
def test_a_folder_that_is_not_whole(tiny, tmp_path, damage, match) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny, folder)
    damage(folder)
    with pytest.raises(pumice.InvalidInputError, match=match):
        pumice.llm.export(folder, tmp_path / "m.pumice", max_seq=16)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"quantize": "int44"}, "did you mean 'int4'"),
        ({"dtype": "f64"}, "unknown dtype 'f64'"),
        ({"cache": "int4"}, "unknown cache 'int4'; did you mean 'int8'"),
        ({"cache": "f16"}, "cache='f16' needs dtype='f16'"),
        ({"embedding": "int2"}, "did you mean 'int"),
        ({"embedding": "f16"}, "needs dtype='f16'"),
        ({"max_seq": 0}, "max_seq must be a positive integer, got 0"),
        ({"max_seq": 100_000}, "max_seq is 100000, the model was made for at most 384"),
        ({"batch": 0}, "batch must be"),
        ({"quantize": "int4", "group_size": 7}, "96 inputs, which groups of 7 do not divide"),
    ],
)
def test_an_option_that_does_not_fit(tiny, tmp_path, options, match) -> None:
    with pytest.raises(pumice.InvalidInputError, match=match):
        pumice.llm.export(tiny, tmp_path / "m.pumice", **options)
    assert not list(tmp_path.iterdir())


def test_what_is_no_model(tmp_path) -> None:
    with pytest.raises(pumice.InvalidInputError, match=r"there is no folder and no \.gguf file"):
        pumice.llm.export(tmp_path / "nothing")
    with pytest.raises(pumice.InvalidInputError, match="a model of transformers, got Linear"):
        pumice.llm.export(torch.nn.Linear(2, 2))
    with pytest.raises(pumice.InvalidInputError, match=r"no folder .* to write m\.pumice in"):
        pumice.llm.export(decoder("llama"), tmp_path / "no/m.pumice")
    quantized = pumice.quantize(decoder("qwen3"), "int4")
    with pytest.raises(pumice.InvalidInputError, match="is quantized already"):
        pumice.llm.export(quantized)
