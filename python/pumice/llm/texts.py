# SPDX-License-Identifier: Apache-2.0
"""The texts of a language model's file: tokenizer, chat template and facts, as constants that no method uses.

Reading them needs neither torch nor flatbuffers. It comes after the file was loaded, so every offset was checked.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO

from pumice.errors import InvalidFileError
from pumice.format import ir

_TOKENIZER, _TEMPLATE, _FACTS = "llm/tokenizer.json", "llm/chat_template.jinja", "llm/facts.json"


@dataclass
class Texts:
    """`tokenizer`: a tokenizer.json; `template`: Jinja; `special`: the template's tokens, such as bos_token; `eos`: the
    tokens that end a text; `facts`: numbers of the model, for people and for `generate`."""

    tokenizer: bytes = b""
    template: str = ""
    special: dict[str, str] = field(default_factory=dict)
    eos: list[int] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def add_texts(program: ir.Program, texts: Texts) -> None:
    """Adds them to the constants of a program; empty ones stay away."""
    facts = {name: value for name, value in asdict(texts).items() if name not in ("tokenizer", "template")}
    data = {
        _TOKENIZER: texts.tokenizer,
        _TEMPLATE: texts.template.encode(),
        _FACTS: json.dumps(facts, ensure_ascii=False).encode(),
    }
    for key, content in data.items():
        if content:
            program.constants.append(ir.Constant(key, len(content), lambda content=content: content))


def read_texts(path: str | os.PathLike[str]) -> Texts:
    """The texts of a file that was loaded. Raises InvalidFileError when it holds no language model."""
    try:
        with Path(path).open("rb") as file:
            found = {key: _read(file, *place) for key, place in _constants(file).items() if key.startswith("llm/")}
        if _FACTS not in found:
            raise _no_model(path, "it was not written by `pumice llm export`")
        facts = json.loads(found[_FACTS])
        known = {name: facts[name] for name in facts if name in {f.name for f in fields(Texts)}}
        return Texts(found.get(_TOKENIZER, b""), found.get(_TEMPLATE, b"").decode(), **known)
    except (struct.error, ValueError, TypeError, IndexError) as error:
        raise _no_model(path, str(error)) from None


def _no_model(path: str | os.PathLike[str], why: str) -> InvalidFileError:
    return InvalidFileError(f"{os.fspath(path)} holds no language model: {why}", code="BadSchema", path=os.fspath(path))


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _constants(file: BinaryIO) -> dict[str, tuple[int, int]]:
    """{key: (offset in the file, size)} of the constants inside of the file, from Program.constants (schema.fbs)."""
    header = _read(file, 0, 64)
    program, size, start = (*struct.unpack_from("<QQ", header, 16), *struct.unpack_from("<Q", header, 40))
    data = _read(file, program, size)
    root = struct.unpack_from("<I", data)[0]
    found = {}
    for table in _vector(data, _field(data, root, 3)):
        key = _follow(data, _field(data, table, 0))
        length = struct.unpack_from("<I", data, key)[0]
        offset, count = (
            struct.unpack_from("<Q", data, at)[0] if (at := _field(data, table, number)) else 0 for number in (1, 2)
        )
        found[data[key + 4 : key + 4 + length].decode()] = (start + offset, count)
    return found


def _field(data: bytes, table: int, number: int) -> int:
    """Where a table's field lies, 0 when it is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", data, vtable + place)[0]
    return table + offset if offset else 0


def _follow(data: bytes, place: int) -> int:
    return place + struct.unpack_from("<I", data, place)[0]


def _vector(data: bytes, place: int) -> list[int]:
    """The tables of a vector."""
    start = _follow(data, place)
    count = struct.unpack_from("<I", data, start)[0]
    return [_follow(data, start + 4 + 4 * index) for index in range(count)]
