# SPDX-License-Identifier: Apache-2.0
"""What `./dev test` says at its end: where the time went, and which shader variants no test ran."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_slowest_tests_and_compilations(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup.report import SHOWN_TESTS
        from setup.testing import Totals
    finally:
        sys.path.pop(0)

    cases = "".join(f'<testcase classname="ops" name="t{i}" time="{i}.5"/>' for i in range(SHOWN_TESTS + 5))
    (tmp_path / "pytest.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    (tmp_path / ".ninja_log").write_text(
        "# ninja log v7\n0\t90000\t1\tbin/tool\t0\n0\t1500\t1\tCMakeFiles/a.dir/ops/slow.cpp.o\t0\n"
    )
    totals = Totals()
    totals.add_junit(tmp_path / "pytest.xml", 0)
    totals.report.add_build("release", tmp_path)
    with totals.report.phase("Python tests"):
        pass
    lines = totals.report.text().splitlines()
    assert lines[:2] == ["phases:", "     0.0 s  Python tests"]
    shown = [line for line in lines if "pytest: ops::" in line]
    assert len(shown) == SHOWN_TESTS and shown[0] == "    34.5 s  pytest: ops::t34"
    assert lines[-1] == "     1.5 s  release: ops/slow.cpp.o" and totals.passed == SHOWN_TESTS + 5


def test_variants_that_no_test_ran() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup.variants import never_made
    finally:
        sys.path.pop(0)

    variants = [{"variant": name, "runs": name != "a[bf16]"} for name in ("a[f32]", "a[f16]", "a[bf16]")]
    assert never_made([{"shader": "a", "variants": variants}], {"a[f32]", "b"}) == ["a[f16]"]
