# SPDX-License-Identifier: Apache-2.0
"""A sweep of `./dev fleet` that was stopped goes on where it was: tools/setup/fleet_steps.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fleet(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from setup import fleet

    return fleet


def test_a_sweep_that_was_stopped_goes_on_where_it_was(fleet, tmp_path: Path, monkeypatch) -> None:
    """A tool that counts its calls and is stopped at the second operator of the first sweep."""
    from setup import progress

    tool, calls = tmp_path / "tool", tmp_path / "calls"
    tool.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"open({str(calls)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "variants = [{'variant': name + '[f32]', 'runs': True, 'needs': []} for name in 'ab']\n"
        "listed = {'operators': [{'op': 'a'}, {'op': 'b'}], 'shaders': [{'variants': variants}],\n"
        "          'device': {'features': []}}\n"
        "if sys.argv[1] == 'devices':\n"
        "    print(json.dumps({'devices': [{'name': 'GPU', 'driver_version': '1'}]}))\n"
        "elif sys.argv[2] == 'list':\n"
        "    print(json.dumps(listed))\n"
        "else:\n"
        "    line = {'shader': sys.argv[4] + '[f32]', 'spec': [8], 'subgroup_size': 0}\n"
        "    open(os.environ['PUMICE_PIPELINE_LOG'], 'a').write(json.dumps(line | {'ms': 50}) + '\\n')\n"
        "    print('{\"rows\": []}')\n"
    )
    tool.chmod(0o755)
    monkeypatch.setattr(fleet, "FOLDER", tmp_path)
    monkeypatch.setattr(fleet, "variables", lambda gpu: {})
    monkeypatch.setattr(fleet, "calls", list)

    def compiled() -> list[str]:
        return [line for line in calls.read_text().splitlines() if line.startswith("kernel compile")]

    def sweep():
        calls.write_text("")
        return fleet.compile_for(fleet.chosen(["m1"])[0], tool, [], spirv, progress.Progress("fleet"))

    operator, spirv = fleet.Compiler.operator, {"a[f32]": "1", "b[f32]": "2"}
    with monkeypatch.context() as stopping, pytest.raises(KeyboardInterrupt):

        def stop(self, name: str) -> dict[str, str]:
            if name == "b":
                raise KeyboardInterrupt
            return operator(self, name)

        stopping.setattr(fleet.Compiler, "operator", stop)
        sweep()
    assert compiled() == ["kernel compile --op a --json"]
    both = sweep()
    assert compiled() == ["kernel compile --op b --json"]
    assert [(each.shader, each.ms) for each in both.pipelines] == [("a[f32]", 50), ("b[f32]", 50)]
    sweep()
    assert len(compiled()) == 2, "the last one was whole, and begins anew"


def test_a_step_is_done_again_where_something_of_it_changed(fleet, tmp_path: Path) -> None:
    del fleet
    from setup.fleet_steps import Steps, digest

    path = tmp_path / "m1.steps"

    def taken(key: str, spirv: str, asked: str, answer: int) -> int:
        found = Steps(path, key, {"a[f32]": spirv}).take("a", asked, lambda: ({}, [{"shader": "a[f32]", "ms": answer}]))
        return found[1][0]["ms"]

    assert [taken("m1", "1", "row", answer) for answer in (1, 2)] == [1, 1]
    with path.open("a") as file:
        file.write('["b", [')  # stopped while it was written
    assert [taken("m1", "2", "row", answer) for answer in (3, 4)] == [3, 3]
    assert [taken("m1", "2", "other row", answer) for answer in (5, 6)] == [5, 5]
    assert [taken("g610", "2", "other row", answer) for answer in (7, 8)] == [7, 7]
    stamp = tmp_path / "stamp"
    before = digest("m1", files=[stamp])
    stamp.write_text("driver")
    assert before != digest("m1", files=[stamp])
