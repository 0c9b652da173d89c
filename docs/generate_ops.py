# SPDX-License-Identifier: Apache-2.0
"""Prints docs/ops.md from the native operator table and the Python records. A test holds the page against this.

.venv/bin/python docs/generate_ops.py > docs/ops.md
"""

from __future__ import annotations

from collections import defaultdict

import pumice.ops  # noqa: F401 (fills the table of records)
from pumice._pumice import op_table
from pumice.lowering.registry import lowering_for, targets


def main() -> None:
    print("# Which operators are there?\n")
    print("Made by `docs/generate_ops.py` from the shaders and the Python records: what is here loads and runs.\n")
    print("## What the exporter accepts\n")
    print("| record | overloads |\n|---|---|")
    by_module = defaultdict(list)
    for target in targets():
        by_module[lowering_for(target).__module__.rsplit(".", 1)[-1]].append(str(target))
    for module in sorted(by_module):
        print(f"| `{module}` | {', '.join(f'`{name}`' for name in sorted(by_module[module]))} |")
    print("\n## What the runtime runs\n")
    print(
        "`operand`: a tensor or a number. `size`: a number or an expression over dynamic dimensions. A `?` admits none."
    )
    print("Variants are those of the main shader; i64 runs as i32 where it is not listed.")
    print("b8/b16/b32 move elements of that width.\n")
    print("| operator | parameters | variants |\n|---|---|---|")
    for name, version, parameters, axes in sorted(op_table()):
        variants = "; ".join(f"{axis}: {' '.join(values)}" for axis, values in axes.items()) or "any"
        print(f"| `{name}`{'' if version == 1 else f' v{version}'} | `{parameters}` | {variants} |")


if __name__ == "__main__":
    main()
