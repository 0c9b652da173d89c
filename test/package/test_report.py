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


def test_a_variant_that_no_test_ran_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Planted: a log without one of the variants that the device runs and nobody knows as left out."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup.testing import Totals, variants_ran
        from setup.variants import known, listed
    finally:
        sys.path.pop(0)

    rows = [row for shader in listed() for row in shader["variants"]]
    assert known() <= {row["variant"] for row in rows}, "there is no such variant any more"
    runs = [row["variant"] for row in rows if row["runs"]]
    left_out = known() & set(runs)
    tested = [name for name in runs if name not in left_out]
    assert 300 < len(tested) < len(runs) < len(rows)
    log, totals = tmp_path / "shaders.log", Totals()
    for made in (tested, tested[:-1]):
        log.write_text("\n".join([*made, "probe"]))
        variants_ran(totals, log)
    assert (totals.passed, totals.failed) == (1, 1)
    ends = f" of {len(runs)}, and {len(left_out)} that are known"
    head = "shader variants that no test ran: "
    assert capsys.readouterr().out.splitlines() == [f"{head}0{ends}", f"{head}1{ends}", f"    {tested[-1]}"]
    variants_ran(totals, tmp_path / "none")  # a run that wrote no log
    assert totals.failed == 2
    capsys.readouterr()
    log.write_text("\n".join(runs))
    variants_ran(totals, log)
    said = capsys.readouterr().out
    assert totals.passed == 2 and "strike them" in said and all(f"    {name}\n" in said for name in left_out)


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
