# SPDX-License-Identifier: Apache-2.0
"""`--few`, by which `./dev test` runs one in six cases of each test (test/conftest.py)."""

from __future__ import annotations

import re
import sys

from support.command_line import ROOT, run


def collected(file: str, *more: str) -> list[str]:
    out = run(
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--co", "-q", *more, ROOT / "test" / file
    ).stdout
    return re.findall(r"^\S+::\S.*$", out, re.MULTILINE)


def test_the_first_case_of_each_test_and_one_in_six_of_the_others() -> None:
    every, few = collected("ops/test_unary.py"), collected("ops/test_unary.py", "--few")
    firsts = {case.partition("[")[0]: case for case in reversed(every)}
    assert set(firsts.values()) <= set(few) < set(every)
    assert len(every) / 12 < len(few) - len(firsts) < len(every) / 3


def test_what_strangers_send_has_every_case_and_what_is_thorough_none() -> None:
    assert collected("negative/test_attributes.py") == collected("negative/test_attributes.py", "--few")
    left = set(collected("ops/test_split_operands.py")) - set(collected("ops/test_split_operands.py", "--few"))
    assert any(case.endswith("::test_in_a_fused_linear") for case in left)
