# SPDX-License-Identifier: Apache-2.0
"""`--few`, by which `./dev test` runs one in six cases of each test (test/conftest.py)."""

from __future__ import annotations

import functools
import re
import sys

from support.command_line import ROOT, run

FILES = ("ops/test_unary.py", "negative/test_attributes.py", "ops/test_split_operands.py")


@functools.cache
def collected(*more: str) -> dict[str, list[str]]:
    """The cases of each of FILES."""
    paths = [ROOT / "test" / file for file in FILES]
    out = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--co", "-q", *more, *paths).stdout
    return {file: re.findall(rf"^test/{file}::\S.*$", out, re.MULTILINE) for file in FILES}


def test_the_first_case_of_each_test_and_one_in_six_of_the_others() -> None:
    every, few = collected()[FILES[0]], collected("--few")[FILES[0]]
    firsts = {case.partition("[")[0]: case for case in reversed(every)}
    assert set(firsts.values()) <= set(few) < set(every)
    assert len(every) / 12 < len(few) - len(firsts) < len(every) / 3


def test_what_strangers_send_has_every_case_and_what_is_thorough_none() -> None:
    every, few = collected(), collected("--few")
    assert every[FILES[1]] == few[FILES[1]]
    left = set(every[FILES[2]]) - set(few[FILES[2]])
    assert any(case.endswith("::test_in_a_fused_linear") for case in left)
