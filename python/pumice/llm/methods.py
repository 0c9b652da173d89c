# SPDX-License-Identifier: Apache-2.0
"""The methods of a language model's file, as data: each is lowered by itself, and format/join.py joins them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from pumice import ExportOptions, Program
from pumice import export as export_method
from pumice.format import ir
from pumice.format.join import join
from pumice.llm.decoder import Decoder
from pumice.llm.prompt_lookup import CHECKED
from pumice.llm.steps import Check, Copy, Steps
from pumice.lowering.report import Report

CHUNK = 2048  # tokens of a prompt that one run takes
SCORED = 512  # of a text to score, whose logits come to the host
_MODULES = {"sample": Steps, "check": Check, "copy": Copy}  # by Method.rows


@dataclass(frozen=True)
class Method:
    """What is lowered under `name`: the module is set up by `rows` and called with `args`."""

    name: str
    rows: str
    args: tuple[Any, ...]
    dynamic_shapes: Any = None


def methods(batch: int, max_seq: int) -> list[Method]:
    """prefill takes up to CHUNK tokens of each sequence, score up to SCORED, decode and sample one, check CHECKED.

    prefill, decode: logits [B, V] of the last token. score: logits [B, n, V] of all. sample, check: tokens drawn.
    copy: from row to row, where there are several.
    """
    first = torch.zeros(batch, dtype=torch.int64)
    one = torch.zeros(batch, 1, dtype=torch.int64), first
    drawn = (
        torch.zeros(batch, max_seq, dtype=torch.int64),
        torch.ones(batch, 4, dtype=torch.float32),
        torch.zeros(batch, 4, dtype=torch.int32),
    )
    sample = Method("sample", "sample", (*one, torch.zeros(1, dtype=torch.int64), *drawn))
    if max_seq < 2:
        return [Method("prefill", "last", one), Method("decode", "last", one), Method("score", "all", one), sample]
    some = torch.zeros(batch, min(8, max_seq), dtype=torch.int64), first

    def up_to(most: int) -> dict[str, Any]:
        return {"tokens": {1: torch.export.Dim("n", min=1, max=min(most, max_seq))}, "first": None}

    guessed = torch.zeros(batch, CHECKED, dtype=torch.int64), first, *drawn
    check = [Method("check", "check", guessed)] if max_seq > CHECKED else []
    return [
        Method("prefill", "last", some, up_to(CHUNK)),
        Method("decode", "last", one),
        Method("score", "all", some, up_to(SCORED)),
        sample,
        *check,
        *([Method("copy", "copy", (torch.arange(batch),))] if batch > 1 else []),
    ]


def lower_methods(decoder: Decoder, listed: Sequence[Method], options: ExportOptions) -> Program:
    """One program with all methods. Raises UnsupportedError as pumice.export does."""
    programs: dict[str, ir.Program] = {}
    report = Report([], {})
    for method in listed:
        if method.rows in _MODULES:
            module: Decoder = _MODULES[method.rows](decoder)
        else:
            module, decoder.rows = decoder, method.rows
        of_method = replace(options, input_updates=method.rows == "sample")
        made = export_method(module, method.args, dynamic_shapes=method.dynamic_shapes, options=of_method)
        programs[method.name] = made.ir
        report.rows += made.report.rows
        report.notes = list(dict.fromkeys([*report.notes, *made.report.notes]))
    return Program(join(programs), report)
