# SPDX-License-Identifier: Apache-2.0
"""Seeds of fuzz_execute: the smallest file for each operator among those of call_seeds.py and those that tests load.

python -m support.op_seeds [TESTS...]   writes test/fuzz/corpus/execute/OPERATOR.pumice"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pumice
from support import call_seeds

SEEDS = Path(__file__).parents[1] / "fuzz/corpus/execute"
MOST_BYTES = 8000


class Collect:
    """A plug-in of pytest that keeps what pumice.load gets."""

    def __init__(self) -> None:
        self.smallest = call_seeds.seeds()
        self.load = pumice.load

    def pytest_configure(self) -> None:
        pumice.load = self.keep

    def keep(self, source, **options):
        session = self.load(source, **options)
        if isinstance(source, bytes | bytearray) and len(source) <= MOST_BYTES:
            for name in operators(bytes(source)):
                if len(source) < len(self.smallest.get(name, b"?" * (MOST_BYTES + 1))):
                    self.smallest[name] = bytes(source)
        return session


def operators(file: bytes) -> set[str]:
    return {call["name"] for method in pumice.inspect(file)["methods"] for call in method["ops"]}


def main() -> None:
    collect = Collect()
    if sys.argv[1:]:
        pytest.main(["-q", "-x", *sys.argv[1:]], plugins=[collect])
    SEEDS.mkdir(parents=True, exist_ok=True)
    for name, file in collect.smallest.items():
        path = SEEDS / f"{name}.pumice"
        if not path.exists() or path.stat().st_size > len(file):
            path.write_bytes(file)
    print(f"{len(collect.smallest)} operators")


if __name__ == "__main__":
    main()
