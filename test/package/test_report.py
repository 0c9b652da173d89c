# SPDX-License-Identifier: Apache-2.0
"""What `./dev test` says at its end: where the time went, and which shader variants no test ran."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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


def test_a_variant_that_no_test_ran_is_run_or_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Planted: a log without a variant that an operator's case launches, and without one that only a chain has."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup.testing import Totals, variants_ran
        from setup.variants import known, listed, made_by
    finally:
        sys.path.pop(0)

    rows = [row for shader in listed() for row in shader["variants"]]
    assert known() <= {row["variant"] for row in rows}, "there is no such variant any more"
    runs = [row["variant"] for row in rows if row["runs"]]
    elsewhere = known() & set(runs)
    tested = [name for name in runs if name not in elsewhere]
    assert 300 < len(tested) < len(runs) < len(rows)
    log, totals, alone, chained = tmp_path / "shaders.log", Totals(), "softmax[f32]", "conv2d_to_nchw[i8]"
    ends = f" of {len(runs)}, and {len(elsewhere)} that another device runs"
    head = "shader variants that no test ran: "
    for absent, passed, failed in ((alone, 2, 0), (chained, 2, 1)):  # a case, and that nothing is left
        log.write_text("\n".join(["probe", *(name for name in tested if name != absent)]) + "\n")
        variants_ran(totals, log)
        assert (totals.passed, totals.failed) == (passed, failed), absent
        assert (absent in made_by(log)) == (absent == alone)
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("==")]
    assert said == [f"{head}0{ends}", f"{head}1{ends}", f"    {chained}"]
    log.write_text("\n".join(runs))
    variants_ran(totals, log)
    said = capsys.readouterr().out
    assert totals.passed == 3 and "strike them" in said and all(f"    {name}\n" in said for name in elsewhere)


@pytest.mark.parametrize(("name", "count"), [("Device.ListsWhatIsThere", 1), ("NoSuchTest", 0)])
def test_cpp_tests_by_name(name: str, count: int) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup.testing import RACE, Totals, cpp_tests
    finally:
        sys.path.pop(0)

    totals = Totals()
    cpp_tests("release", totals, name, [RACE], PUMICE_VALIDATE_LOG="/dev/null")
    assert (totals.passed, totals.failed) == (count, 1 - count)
