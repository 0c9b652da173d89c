# SPDX-License-Identifier: Apache-2.0
"""What docs/executorch.md says of models handed to ExecuTorch with either partitioner."""

from __future__ import annotations

import re

import pytest
from support.delegates import BEGIN, END, MODELS, PAGE, Share, row, share

README = PAGE.parents[1] / "README.md"


def test_the_table_has_every_model() -> None:
    rows = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].splitlines()[2:]
    for who, column in (("10 | ExecuTorch", 1), ("ExecuTorch's Vulkan backend: 2 |", 2)):  # README.md's row
        assert who in README.read_text(encoding="utf-8")
        assert sum(line.strip("| ").split(" | ")[column] == "whole" for line in rows) == int(re.search(r"\d+", who)[0])
    assert [line.split(" | ")[0].removeprefix("| ") for line in rows] == list(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_one_part_for_pumice(name: str) -> None:
    assert share(name, "Pumice") == Share(1, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_the_table_is_of_this_executorch(name: str) -> None:
    assert row(name) in PAGE.read_text(encoding="utf-8"), "cd test && python -m support.delegates writes it again"
