# SPDX-License-Identifier: Apache-2.0
"""Writes what docs have from the code: docs/errors.md, docs/python_api.md, the table of refusals in docs/limits.md, and
the table of picks in docs/devices.md. A test holds all four.

generate_pages.py [FOLDER]    the folder of the pages, docs/ itself by default
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pumice
from pumice import _pumice
from pumice.error_codes import CODES
from pumice.lowering.instead import ELSE, INSTEAD

PROFILES = Path(__file__).parents[1] / "test/profiles"
PICKS = {  # what the page calls it: an operator and a case, as for `kernel list`
    "int4, 1 row, fp16": ("linear_q4gsw", "m=1,n=2048,k=2048,g=32,dtype=f16"),
    "int4, 128 rows, fp16": ("linear_q4gsw", "m=128,n=2048,k=2048,g=32,dtype=f16"),
    "int4, 512 rows, fp32": ("linear_q4gsw", "m=512,n=2048,k=2048,g=32,dtype=f32"),
    "8da4w, 512 rows, fp16": ("linear_dq8ca_q4gsw", "m=512,n=2048,k=2048,g=32,dtype=f16"),
    "conv 3 x 3, fp16": ("conv2d", "b=1,c=64,o=64,h=56,w=56,dtype=f16"),
    "conv 3 x 3, int8": ("q8ta_conv2d", "b=1,c=64,o=64,h=56,w=56"),
}
PICKS_BEGIN = "<!-- from test/profiles by docs/generate_pages.py -->\n"
BEGIN, END = "<!-- from python/pumice/lowering/instead.py -->\n", "<!-- end -->\n"

ERRORS = """# What does this error mean, and what do I do?

An error has a code, a stage, the object that it is about, and a text: `pumice: TEXT [CODE]` on the command line,
`error.code`, `.stage` and `.path` in Python, `pumice_last_error()` in C, `pumice::Error` in C++. `pumice-rt` prints the
code first. Below a message stands what to do; `pumice explain CODE` prints a row of this page, also without a network:

```bash
pumice explain BadShape
pumice explain           # all codes
```

This page is written from `python/pumice/error_codes.py` by `python docs/generate_pages.py`.

| code | in C | in Python | means | what to do |
|---|---|---|---|---|
"""


API = """# The functions and classes of Python

Written from the docstrings by `python docs/generate_pages.py`. `import pumice` touches no GPU and does not import
torch: what needs torch is loaded when it is first used. Errors: [errors.md](errors.md).
"""


def api_page() -> str:
    """docs/python_api.md: every public name, with its signature and docstring, and the public members of classes."""
    return API + "".join(_entry(f"pumice.{name}", getattr(pumice, name), "##") for name in pumice.__all__)


def _entry(name: str, item: Any, level: str) -> str:
    item = item.fget if isinstance(item, property) else item
    text = f"\n{level} {name}\n\n"
    if inspect.isfunction(item) and level == "##":
        text += f"```text\n{name}{_signature(item)}\n```\n\n"
    doc = inspect.getdoc(item)
    text += f"```text\n{doc}\n```\n" if doc else ""
    if not inspect.isclass(item):
        return text
    members = [(each, member) for each, member in vars(item).items() if not each.startswith("_") and _is_public(member)]
    for each, member in members:
        call = "" if isinstance(member, property) else _signature(getattr(item, each))
        text += _entry(f"{name}.{each}{call}", member, "###")
    return text


def _is_public(member: Any) -> bool:
    return isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def errors_page() -> str:
    """docs/errors.md."""
    rows = []
    for name, code in CODES.items():
        number = "" if code.number is None else str(code.number)
        rows.append(f'| <a id="{name.lower()}"></a>`{name}` | {number} | `{code.error}` | {code.means} | {code.do} |\n')
    return ERRORS + "".join(rows)


def refusals_table() -> str:
    """The table of docs/limits.md: operators by what to do instead."""
    by_advice = defaultdict(list)
    for name, advice in INSTEAD.items():
        by_advice[advice].append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {advice} |\n" for advice, names in by_advice.items()]
    return "| operator of PyTorch | what to do |\n|---|---|\n" + "".join(rows) + f"| any other | {ELSE} |\n"


def picks_table() -> str:
    """The table of docs/devices.md: which kernel would run on each device of test/profiles."""
    rows = [f"| profile | {' | '.join(PICKS)} |\n|{'---|' * (len(PICKS) + 1)}\n"]
    for path in sorted(PROFILES.glob("*.json")):
        picks = []
        for operator, case in PICKS.values():
            facts = json.loads(_pumice.kernel_list(profile=str(path), ops=[operator], cases=[case]))
            picks += [row["is"] for row in facts["operators"][0]["kernels"] if row["kernel"] == "pick"]
        rows.append(f"| {path.stem} | {' | '.join(picks)} |\n")
    return "".join(rows)


def _replace(page: Path, begin: str, text: str) -> None:
    start, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(start + begin + text + END + rest.partition(END)[2], encoding="utf-8")


def main(folder: Path) -> None:
    (folder / "errors.md").write_text(errors_page(), encoding="utf-8")
    (folder / "python_api.md").write_text(api_page(), encoding="utf-8")
    _replace(folder / "limits.md", BEGIN, refusals_table())
    _replace(folder / "devices.md", PICKS_BEGIN, picks_table())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
