# SPDX-License-Identifier: Apache-2.0
"""pumice.llm.export: a decoder of transformers -> a file that reads prompts, generates and scores."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pumice import ExportOptions, Program
from pumice.errors import InvalidInputError, require
from pumice.llm.architectures import check_architecture
from pumice.llm.decoder import Decoder
from pumice.llm.folder import texts_of
from pumice.llm.methods import CHUNK, SCORED, lower_methods, methods
from pumice.llm.open_source import open_source
from pumice.llm.skeleton import Quantization, Skeleton, skeleton
from pumice.llm.source import Source, bad
from pumice.llm.texts import add_texts
from pumice.llm.weight_forms import Integers, Scheme

_DTYPES = {"f32": torch.float32, "f16": torch.float16}
_CACHES = {**_DTYPES, "int8": torch.int8}
_MAX_SEQ = 4096
Progress = Callable[[str, int], None]


def export(
    model_or_path: nn.Module | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    quantize: str | None = None,
    group_size: int = 32,
    embedding: str | None = None,
    max_seq: int | None = None,
    batch: int = 1,
    cache: str | None = None,
    dtype: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Program:
    """Lowers a decoder and writes it to `output`, if that is given. Weights are read one at a time while writing.

    model_or_path: a folder as transformers saves it, a .gguf file, which keeps its own quantization (Q4_0 and Q8_0
        exactly) where neither quantize nor embedding says otherwise, or a model of transformers in memory (float). The
        report's notes name the types of a .gguf file that were quantized anew.
    quantize: "none", "int4", "int8" or "8da4w", of the linear layers, as pumice.quantize; None: "none", or what a .gguf
        file has. group_size: weights that share a scale, for int4 and 8da4w.
    embedding: "int4", "int8" or "f16"; None keeps floats, or what a .gguf file has. Where the head is the same matrix,
        both are quantized once: by `embedding` where it is given, else by `quantize`.
    max_seq: tokens that fit, prompt and answer together; None: 4096, or what the model was made for if that is less.
    batch: sequences at a time. cache: of keys and values: "int8", with an fp32 scale for each row of a head; None: as
        dtype, which "f16" and "f32" must be.
    dtype: "f32" or "f16" of floats; None: "f32" where the checkpoint is float32, else "f16".
    tokenizer: a folder with tokenizer.json, for a model in memory.
    progress: called with the name and the bytes of each constant before it is read.
    The methods of the file: prefill(tokens [B, n], first [B]) and decode(tokens [B, 1], first [B]) give logits [B, V]
    of the last token, score(tokens [B, n], first [B]) logits [B, n, V]; tokens and first are int64, first has the
    position of each sequence's first new token.
    Raises InvalidInputError for an argument, a folder or a model that does not fit, UnsupportedError for a model with
    an operator that Pumice lacks; nothing is written then.
    """
    require(quantize or "none", ("none", "int4", "int8", "8da4w"), "quantization scheme")
    for value, known, what in ((cache, _CACHES, "cache"), (dtype, _DTYPES, "dtype")):
        require(value or "f32", known, what)
    require(embedding or "f16", ("int4", "int8", "f16"), "kind of embedding")
    _positive(batch=batch, group_size=group_size, max_seq=1 if max_seq is None else max_seq)
    if output is not None and not Path(output).resolve().parent.is_dir():
        raise bad(f"no folder '{Path(output).parent}' to write {Path(output).name} in", output, "IoError")
    source = open_source(model_or_path)
    check_architecture(source.config.model_type)
    if tokenizer is not None:
        source.texts = texts_of(Path(tokenizer), source.config)
    floats = _DTYPES[dtype] if dtype else _floats(source)
    length = _length(source, max_seq)
    if embedding == "f16" and floats is not torch.float16:
        raise bad("embedding='f16' needs dtype='f16'", "embedding")
    rows = _CACHES[cache] if cache else floats
    if rows not in (floats, torch.int8):
        raise bad(f"cache='{cache}' needs dtype='{cache}'", "cache")
    how = _quantization(source, quantize, group_size, embedding)
    made = skeleton(source.config, floats, length, source.weight, how, source.rope_factors)
    for names, shape in made.wanted:
        source.check(names, shape)
    decoder = Decoder(made.model, batch, length, rows).eval()
    weights = {f"model.{name}": read for name, read in made.weights.items()}
    program = lower_methods(decoder, methods(batch, length), ExportOptions(weights=weights))
    program.report.notes += _requantized(source, made, "f32" if floats is torch.float32 else "f16")
    sizes = {"max_seq": length, "batch": batch, "chunk": min(CHUNK, length), "scored": min(SCORED, length)}
    _add_facts(source, quantize=quantize or "none", **sizes)
    add_texts(program.ir, source.texts)
    if progress is not None:
        _watch(program, progress)
    if output is not None:
        program.save(output)
    return program


def _positive(**numbers: Any) -> None:
    for name, value in numbers.items():
        if type(value) is not int or value < 1:
            raise InvalidInputError(
                f"{name} must be a positive integer, got {value!r}", code="InvalidArgument", path=name
            )


def _floats(source: Source) -> torch.dtype:
    """What the checkpoint has: float32 stays, smaller floats are f16 on the device."""
    found = getattr(source.config, "dtype", None)
    return torch.float32 if found in (None, "float32", torch.float32) else torch.float16


def _length(source: Source, max_seq: int | None) -> int:
    most = getattr(source.config, "max_position_embeddings", None) or _MAX_SEQ
    if max_seq is None:
        return min(_MAX_SEQ, most)
    if max_seq > most:
        raise bad(f"max_seq is {max_seq}, the model was made for at most {most} positions", "max_seq")
    return max_seq


def _quantization(source: Source, quantize: str | None, group_size: int, embedding: str | None) -> Quantization:
    stored = None if source.stored is None else lambda names: source.stored(source.find(names))
    linear = stored if quantize is None else None if quantize == "none" else Scheme(quantize, group_size)
    if embedding is None:
        return Quantization(linear, stored, linear)
    table = Scheme(embedding, group_size) if embedding in ("int4", "int8") else None
    same_integers = table is not None and quantize == "8da4w" and embedding == "int4"
    return Quantization(linear, table, linear if same_integers else table)


def _requantized(source: Source, made: Skeleton, floats: str) -> list[str]:
    """A line for each type of the checkpoint and what its weights became, where that is not taken over exactly."""
    counts: dict[str, int] = {}
    names = {group[0]: group for group, _ in made.wanted}
    for name, chosen in made.chosen.items():
        kind = source.kind(source.find(names[name]))
        if kind is not None and not isinstance(chosen, Integers):
            what = f"{kind}: dequantized to {floats}" if chosen is None else f"{kind}: requantized to {chosen}"
            counts[what] = counts.get(what, 0) + 1
    return [f"{what} ({count} weight{'s' * (count > 1)})" for what, count in counts.items()]


def _add_facts(source: Source, **facts: Any) -> None:
    config = source.config
    source.texts.facts = {"architecture": config.model_type, "vocabulary": config.vocab_size, **facts}


def _watch(program: Program, progress: Progress) -> None:
    """Makes `progress` hear of every constant."""
    for constant in program.ir.constants:

        def data(name: str = constant.key, size: int = constant.size, read: Callable = constant.data) -> bytes:
            progress(name, size)
            return read()

        constant.data = data
