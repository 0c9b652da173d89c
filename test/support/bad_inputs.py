# SPDX-License-Identifier: Apache-2.0
"""The ids of bad inputs that tests name, in a word or two; python -m support.bad_inputs prints which test has which."""

from __future__ import annotations

import re
from pathlib import Path

TEST = Path(__file__).parents[1]
WORDS = {
    "F": "tiny file|every prefix|foreign format|version|header size|section past the end|sections overlap|alignment|"
    "flipped bit|flipped bit, hashes right|offset outside|depth and sharing|lengths and text|unknown tag|missing field|"
    "enum beyond its values|many values|constant larger than the file|duplicate keys|external path|external link|"
    "external bytes differ|file changes during the load|code in the file",
    "G": "index out of range|unknown operator|argument count|argument kind|read before write|written twice|"
    "odd outputs|bad lists|rank 0 and empty|huge sizes|declared shape is wrong|window attributes|view arguments|"
    "wrong dtype|memory plan|symbols|attention arguments|axis and vocabulary|equal names",
    "W": "group sizes|packed bytes|scale count|bad scale|tiny scale|zero point|padding|extreme values|empty weight|"
    "large weight|shared constant|stored sums|bias",
    "R": "number and kind of inputs|shape of inputs|special values|index in data|shape walks|order of calls|"
    "two threads|cancel and time limit|output over input|C structs|callbacks|arrays and exit of Python|fork|cache full",
    "D": "no device|small limits|many rows|large tensors|features off|no memory|device lost|fence never comes|"
    "long kernel|unknown result|wrong numbers",
    "E": "damaged cache|cache folder|killed while writing|many writers|limits of the process|short and failing I/O|"
    "locale and rounding|small stack",
}
IDS = {f"{letter}{n:02}": what for letter, text in WORDS.items() for n, what in enumerate(text.split("|"), 1)}
# No test can name these: why not.
OPEN = {
    "G15": "a file holds no memory plan; the engine makes it, and test/graph/plan_test.cpp checks each pair of values"
}


def named() -> dict[str, list[str]]:
    """The test files that name each id, also within a range such as D01-D05."""
    found: dict[str, list[str]] = {name: [] for name in IDS}
    for path in sorted(TEST.rglob("*_test.cpp")) + sorted(TEST.rglob("test_*.py")):
        text = path.read_text()
        names = set(re.findall(r"\b[FGWRDE]\d\d(?=_|\b)", text))  # F12_ begins the name of a C++ test
        for letter, first, last in re.findall(r"\b([FGWRDE])(\d\d)-[FGWRDE]?(\d\d)\b", text):
            names |= {f"{letter}{n:02}" for n in range(int(first), int(last) + 1)}
        for name in names & found.keys():
            found[name].append(str(path.relative_to(TEST.parent)))
    return found


if __name__ == "__main__":
    for name, files in named().items():
        print(f"{name}  {IDS[name]}: {', '.join(files) or OPEN.get(name, 'open')}")
