# SPDX-License-Identifier: Apache-2.0
"""`./dev fleet`: the page that it writes, and the line of a pipeline that it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import BIN, run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fleet(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from setup import fleet

    return fleet


def test_every_gpu_has_a_name_of_its_own(fleet) -> None:
    assert len({gpu.name for gpu in fleet.GPUS}) == len(fleet.GPUS)
    assert all(gpu.variable is None or gpu.variable[1] for gpu in fleet.GPUS)


def test_the_page_says_what_spills_what_is_slow_and_what_failed(fleet) -> None:
    def pipeline(shader: str, ms: float, **statistics: float) -> dict:
        return {"shader": shader, "ms": ms, "statistics": statistics}

    amd, adreno = (gpu for gpu in fleet.GPUS if gpu.name in ("navi31", "adreno740"))
    results = [
        fleet.Result(amd, "RADV", [pipeline("softmax[f16]", 5), pipeline("conv2d[f32]", 1500)], {}, "abc"),
        fleet.Result(
            adreno,
            "Turnip",
            [pipeline("conv2d[f16]", 20, **{"STP Count": 4.0}), pipeline("conv2d[f32]", 7, **{"LDP Count": 0.0})],
            {"gelu": "status -11: dead"},
            "abc",
        ),
    ]
    lines = fleet.page(results).splitlines()
    assert any(line.endswith("| RADV | abc | 2 | 0 | 0 | 1 | 1.50 s conv2d[f32] | 2 s |") for line in lines)
    assert any("| Turnip | abc | 2 | 1 | 1 | 0 | 0.02 s conv2d[f16] |" in line for line in lines)
    assert "| shader | navi31 | adreno740 |" in lines and "| conv2d |  | 1 |" in lines
    assert "| conv2d | navi31 1.5 |" in lines
    assert "| adreno740 | gelu | status -11: dead |" in lines


def test_a_name_that_is_not_there(fleet) -> None:
    from setup.progress import StepFailed

    with pytest.raises(StepFailed, match="no GPU voodoo2; there are polaris10"):
        fleet.run(["voodoo2"], [])


def test_pipelines_are_logged_and_not_run(tmp_path: Path) -> None:
    """On the driver of the tests: a line for each pipeline of the kernels that were asked for."""
    log = tmp_path / "pipelines.jsonl"
    done = run(BIN / "pumice-rt", "kernel", "compile", "--op", "softmax", "--json", PUMICE_PIPELINE_LOG=str(log))
    rows = json.loads(done.stdout)["rows"]
    assert rows and all(row["status"] == "ok" for row in rows)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    softmax = [line for line in lines if line["shader"].startswith("softmax[")]
    assert softmax and all(line["ms"] > 0 and line["spec"][0] > 0 for line in softmax)
    assert len({(line["shader"], *line["spec"]) for line in lines}) == len(lines), "a pipeline was made twice"


def test_a_kernel_that_the_device_cannot_run_is_not_compiled() -> None:
    done = run(
        BIN / "pumice-rt",
        "kernel",
        "compile",
        "--op",
        "linear_q4gsw",
        "--kernel",
        "gemvf8",
        "--case",
        "m=1,n=32,k=64",
        code=4,
    )
    assert "0 compiled" in done.stdout
