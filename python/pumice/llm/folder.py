# SPDX-License-Identifier: Apache-2.0
"""A folder as transformers saves it: config.json, safetensors in one or more shards, tokenizer.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import AutoConfig

from pumice.llm.architectures import check_architecture
from pumice.llm.source import Source, bad
from pumice.llm.texts import Texts

_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")


def open_folder(path: Path) -> Source:
    """Everything but the weights, which are read when they are asked for; all shards must be there."""
    check_architecture(_text_type(_json(path, "config.json")))
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True).get_text_config()
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise bad(f"{path / 'config.json'}: {error}", path) from None
    places = _places(path)
    opened: dict[Path, Any] = {}

    def shard(name: str) -> Any:
        file = places[name]
        if file not in opened:
            opened.clear()  # one shard at a time
            opened[file] = _open(file)
        return opened[file]

    def shape(name: str) -> list[int]:
        try:
            return shard(name).get_slice(name).get_shape()
        except SafetensorError as error:
            raise bad(f"{places[name]}: {error}", name) from None

    return Source(config, places.keys(), lambda name: shard(name).get_tensor(name), shape, texts_of(path, config))


def _text_type(facts: dict[str, Any]) -> str:
    """The architecture of the decoder; of a model with images that of its text part."""
    kind = facts.get("model_type")
    inner = facts.get("text_config", {}).get("model_type")
    if not isinstance(kind, str):
        raise bad("config.json has no model_type", "config.json")
    return inner or kind


def texts_of(path: Path, config: Any) -> Texts:
    """Tokenizer, chat template and the tokens that end a text, of a folder."""
    tokenizer = path / "tokenizer.json"
    if not tokenizer.is_file():
        text = f"{path} has no tokenizer.json; AutoTokenizer.from_pretrained(folder).save_pretrained(folder) makes one"
        raise bad(text, path, "IoError")
    settings = _json(path, "tokenizer_config.json") if (path / "tokenizer_config.json").is_file() else {}
    generation = _json(path, "generation_config.json") if (path / "generation_config.json").is_file() else {}
    eos = generation.get("eos_token_id", getattr(config, "eos_token_id", None))
    special = {name: _token(settings[name]) for name in _SPECIAL if settings.get(name)}
    ids = [] if eos is None else [int(item) for item in (eos if isinstance(eos, list) else [eos])]
    return Texts(tokenizer.read_bytes(), _template(path, settings), special, ids)


def _template(path: Path, settings: dict[str, Any]) -> str:
    """The chat template; of several that with the name "default"."""
    file = path / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    found = settings.get("chat_template") or ""
    if isinstance(found, list):
        named = {item["name"]: item["template"] for item in found}
        return named.get("default", next(iter(named.values()), ""))
    return found


def _token(token: str | dict[str, Any]) -> str:
    return token["content"] if isinstance(token, dict) else token


def _places(path: Path) -> dict[str, Path]:
    """The file of every weight; raises when one is missing."""
    index = path / _INDEX
    if index.is_file():
        shards = _json(path, _INDEX).get("weight_map", {})
        missing = sorted({file for file in shards.values() if not (path / file).is_file()})
        if missing:
            raise bad(f"{path} has no {missing[0]}, which {_INDEX} names ({len(missing)} missing)", path, "IoError")
        return {name: path / file for name, file in shards.items()}
    if not (path / _ONE).is_file():
        raise bad(f"{path} has no {_ONE} and no {_INDEX}", path, "IoError")
    return dict.fromkeys(_open(path / _ONE).keys(), path / _ONE)


def _open(file: Path) -> Any:
    try:
        return safe_open(file, framework="pt")
    except (SafetensorError, OSError) as error:
        raise bad(f"{file} is damaged or cut short: {error}", file, "IoError") from None


def _json(path: Path, name: str) -> dict[str, Any]:
    file = path / name
    if not file.is_file():
        raise bad(f"{path} has no {name}", path, "IoError")
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise bad(f"{file} is no JSON: {error}", file) from None
    if not isinstance(facts, dict):
        raise bad(f"{file} is no JSON object", file)
    return facts
