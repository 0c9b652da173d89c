# SPDX-License-Identifier: Apache-2.0
"""Writes the page of operators, from the native operator table and the lowerings: docs/ops.md, by ./dev build.

generate_ops.py FILE
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import core_aten

import pumice.ops  # noqa: F401 (fills the table of lowerings)
from pumice._pumice import op_table
from pumice.lowering.registry import lowering_for, targets

INTRODUCTION = """# Which operators are there?

Written by `./dev build` from the shaders and the lowerings: what is here loads and runs. Not in git.

## What the exporter accepts

| lowering | overloads |
|---|---|"""
RUNTIME = """
## What the runtime runs

`operand`: a tensor or a number. `size`: a number or an expression over dynamic dimensions. A `?` admits none.
Tensors: the dtypes of the first one that it reads; results: of its first result, where those of the tensors do not say
it. `test/ops/test_closure.py` runs each. What `kernel test` calls an operator with: `pumice kernel list`.

| operator | parameters | tensors | results | in textures | quantized |
|---|---|---|---|---|---|"""
TEXTURES = {"storage": "x", "result_storage": "results", "weight_storage": "weight"}


def page() -> str:
    """The page as Markdown."""
    lines = [INTRODUCTION]
    by_module = defaultdict(list)
    for target in targets():
        by_module[lowering_for(target).__module__.rsplit(".", 1)[-1]].append(str(target))
    for module in sorted(by_module):
        lines.append(f"| `{module}` | {', '.join(f'`{name}`' for name in sorted(by_module[module]))} |")
    lines += ["", "## Core ATen", "", *core_aten.table(), RUNTIME]
    for name, version, parameters, accepts in sorted(op_table()):
        textures = ", ".join(word for what, word in TEXTURES.items() if len(accepts.get(what, ())) > 1)
        words = [" ".join(accepts.get(what, ())) for what in ("tensors", "results")]
        cells = [f"`{name}`{'' if version == 1 else f' v{version}'}", f"`{parameters}`", *words, textures]
        lines.append(f"| {' | '.join(cells)} | {''.join(accepts.get('scheme', ()))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
