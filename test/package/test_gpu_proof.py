# SPDX-License-Identifier: Apache-2.0
"""`./dev test-gpu`: what it counts, the page that it writes, and what is left of it when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.command_line import BIN, start

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from setup import gpu

    return gpu


def proof(gpu, *only: str, one_of: int = 1):
    return gpu.Proof(BIN / "pumice-rt", Path(sys.executable), 2, one_of, 1, list(only))


def test_the_page_has_what_ran(gpu, tmp_path) -> None:
    found = proof(gpu, "softmax", "tril")
    found.log = tmp_path / "shaders.log"
    with closing(gpu.Progress("test")) as progress:
        found.kernels(progress)
    counts = found.operators["softmax"].counts
    assert counts["ok"] == found.passed() - found.operators["tril"].counts["ok"] > 0 and found.failed() == 0
    unseen, _ = found.variants()
    assert "softmax[f32]" not in unseen and "sort[f32]" in unseen
    lines = found.page().splitlines()
    assert lines[0].startswith(f"# {found.device['name']}, driver")
    worst = found.operators["softmax"].worst
    assert f"| softmax | {counts['ok']} | 0 | 0 | {worst:.2f} |" in lines and 0 < worst < 1
    assert gpu.path_of(found.device, ".md").name.startswith("llvmpipe")


def test_what_nothing_made_is_run_at_last(gpu, tmp_path) -> None:
    found = proof(gpu)
    found.log = tmp_path / "shaders.log"
    names = ["softmax[f16]", "linear_tiled[f16,q4,buffer,texture2d]", "linear_dot_gemv[f16,q8,texture2d]"]
    found.shaders = [{"shader": "some", "variants": [{"variant": name, "runs": True} for name in names]}]
    found.log.write_text(names[0] + "\n")
    with closing(gpu.Progress("test")) as progress:
        found.rest(progress)
    assert found.variants() == ([], 3) and found.failed() == 0
    assert "softmax" not in found.operators and found.passed() == 2


def test_a_failure_is_counted_and_named(gpu) -> None:
    found = proof(gpu)
    found.device = {"name": "GPU 9000", "driver": "1.2"}
    row = {"status": "failed", "kernel": "gemv1", "title": "linear m=1", "why": "3 are wrong", "repro": "pumice-rt x"}
    found.operators["linear"] = gpu.Operator()
    found.operators["linear"].add(row)
    assert (found.passed(), found.failed()) == (0, 1)
    assert "gemv1 linear m=1: 3 are wrong\n  again: pumice-rt x" in found.page()


def test_an_operator_that_is_not_there(gpu) -> None:
    from setup.progress import StepFailed

    with closing(gpu.Progress("test")) as progress, pytest.raises(StepFailed, match="no operator softmin"):
        proof(gpu, "softmin").kernels(progress)


def test_a_machine_without_git(gpu, monkeypatch, tmp_path) -> None:
    assert gpu.commit() != "unknown" or not (ROOT / ".git").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.commit() == "unknown"


def test_one_of_n_draws_others_with_another_seed() -> None:
    def rows(*more: str) -> set[tuple[str, str]]:
        case = "m=1|3,n=16|35|40|48|51|67,k=64,values=random|high,dtype=f32"
        command = [BIN / "pumice-rt", "kernel", "test", "--op", "linear_q8csw", "--case", case, "--replays", "1", *more]
        command += ["--kernel", "pick", "--kernel", "gemv1", "--kernel", "gemvr1"]  # each is compiled
        text = subprocess.run([*command, "--json"], capture_output=True, check=False, env=os.environ).stdout
        return {(row["case"], row["kernel"]) for row in json.loads(text)["rows"]}

    all_rows = rows("--jobs", "2")
    some, others = rows("--one-of", "8"), rows("--one-of", "8", "--seed", "2")
    assert some < all_rows and others < all_rows and some != others
    assert 0.02 < len(some) / len(all_rows) < 0.3


def test_a_stopped_test_says_how_far_it_came() -> None:
    command = [BIN / "pumice-rt", "kernel", "test", "--op", "linear_q4gsw", "--case", "m=1|2|3|4|5|6|7|8,k=512,n=512"]
    with start(*command, "--replays", "100") as child:
        child.stdout.readline()  # the device: rows are under way
        child.send_signal(signal.SIGINT)
        try:
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert said.startswith("stopped after ") and said.rstrip().endswith("failed")
