# SPDX-License-Identifier: Apache-2.0
"""`tune` of `pumice` and `pumice-rt`, and what a file of tuned kernels, right or wrong, does to a model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from support import command_line, tuned_file
from support.command_line import BIN
from torch import nn

import pumice

CASE = ("--op", "linear", "--case", "m=5,n=64,k=96,dtype=f32")
PRODUCT = "op=linear,n=64,k=96,g=0,dtype=f32,scale=f32,storage=buffer"
ROWS = 5


@pytest.fixture(params=["pumice", "pumice-rt"])
def tool(request) -> Path:
    return BIN / request.param


@pytest.fixture(scope="module")
def layer() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(96, 64).eval()


@pytest.fixture(scope="module")
def model(layer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "layer.pumice"
    rows = torch.export.Dim("rows", min=1, max=40)
    pumice.export(layer, (torch.ones(ROWS, 96),), dynamic_shapes=({0: rows},)).save(path)
    return path


def tune(
    program: Path, folder: Path, *words: object, code: int = 0, seconds: float = 0
) -> subprocess.CompletedProcess[str]:
    rotate = ("--rotate", "1MB") if program.name == "pumice-rt" else ("--rotate", "1")
    return command_line.run(
        program, "tune", *words, "--cache-dir", folder, "--seconds", seconds, *rotate, code=code, COLUMNS="200"
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Path:
    """A cache folder in which CASE was tuned, whatever the outcome."""
    folder = tmp_path_factory.mktemp("cache")
    tune(BIN / "pumice-rt", folder, *CASE, "--kernel", "gemv8", "--kernel", "tile32x64")
    return folder


@pytest.fixture
def folder(measured, tmp_path) -> Path:
    """A copy of it."""
    for each in measured.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
        (tmp_path / each.name).chmod(0o600)
    return tmp_path


RUN = """
import sys, numpy as np, pumice
session = pumice.load(sys.argv[1], cache_dir=sys.argv[2], features=sys.argv[3])
x = np.load(sys.argv[4])
np.save(sys.argv[5], session.run_flat([x])[0])
print(" ".join(row.kernel for row in session.profile_flat([x])))
"""


def kernel_and_result(model: Path, folder: Path, features: str = "", rows: int = ROWS) -> tuple[str, str, float]:
    """The kernels that ran, what was said on stderr, and how far the result is from eager PyTorch."""
    x = torch.linspace(-2, 3, rows * 96).reshape(rows, 96)
    given, got = folder / "x.npy", folder / "got.npy"
    np.save(given, x.numpy())
    done = command_line.run(sys.executable, "-c", RUN, model, folder, features, given, got)
    torch.manual_seed(1)
    want = nn.Linear(96, 64)(x).detach().numpy()
    return done.stdout.strip(), done.stderr, float(np.abs(np.load(got) - want).max())


def test_a_tuned_kernel_runs_is_marked_and_computes_the_same(model, folder) -> None:
    kernel, said, error = kernel_and_result(model, folder, "untuned")
    assert "linear_gemv_rows" in kernel and "tuned" not in kernel and not said and error < 1e-5
    version, *_ = tuned_file.lines(folder)
    for name, shader in (("tile32x64", "linear_tiled"), ("gemv8", "linear_gemv[")):
        tuned_file.rewrite(folder, f"{version}\n{PRODUCT} {ROWS} {name}\n")
        kernel, said, error = kernel_and_result(model, folder)
        assert shader in kernel and kernel.endswith(" (tuned)") and not said and error < 1e-5
        kernel, _, _ = kernel_and_result(model, folder, rows=8)  # the same power of two
        assert shader in kernel and "(tuned)" in kernel
        kernel, _, _ = kernel_and_result(model, folder, rows=9)
        assert "linear_gemv_rows" in kernel and "tuned" not in kernel
    kernel, _, error = kernel_and_result(model, folder, "kernel=gemv4")
    assert "linear_gemv[" in kernel and "tuned" not in kernel and error < 1e-5


WRONG = {
    "no text": "\x00\x01\x02",
    "no version": f"{PRODUCT} 5 gemv8\n",
    "another build": f"version 0000000000000001\n{PRODUCT} 5 gemv8\n",
    "unknown kernel": f"VERSION\n{PRODUCT} 5 gemv9\n",
    "kernel that cannot run": f"VERSION\n{PRODUCT} 5 int8_64x64\n",
    "split without its nodes": f"VERSION\n{PRODUCT} 5 split_matrix32x32\n",
    "absurd rows": f"VERSION\n{PRODUCT} 99999999999999999999 gemv8\n",
    "half a line": f"VERSION\n{PRODUCT} 5",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_hostile_table_leaves_the_choice_as_it_was(wrong, model, folder) -> None:
    version, *_ = tuned_file.lines(folder)
    tuned_file.rewrite(folder, WRONG[wrong].replace("VERSION", version))
    kernel, said, error = kernel_and_result(model, folder)
    assert "linear_gemv_rows" in kernel and "tuned" not in kernel and error < 1e-5
    silent = wrong in ("kernel that cannot run", "split without its nodes")
    assert said.count("warning: ") == (0 if silent else 1), said


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "folder", "no key", "large"])
def test_a_damaged_file_is_told_once(damage, model, folder) -> None:
    path = tuned_file.find(folder)
    good = path.read_bytes()
    if damage == "no key":
        (folder / "key").unlink()
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"cut": good[:-3], "flip": good[:-1] + b"?", "empty": b"", "large": good * 9999}[damage])
    kernel, said, error = kernel_and_result(model, folder)
    assert "linear_gemv_rows" in kernel and "tuned" not in kernel and error < 1e-5
    assert said.count("table of tuned kernels:") == 1, said


def test_the_faster_kernel_is_found_and_judged_in_another_run(tool, tmp_path) -> None:
    """A CPU driver that chooses as a GPU would: kernels made for CPUs take a part of the time."""
    case = (
        "--op", "linear_q4gsw", "--case", "m=1,n=1024,k=1024", "--features", "like_gpu",
        "--kernel", "gemv1", "--kernel", "gemvr1",
    )  # fmt: skip
    facts = json.loads(tune(tool, tmp_path, *case, "--json", seconds=0.3).stdout)
    (row,) = facts["rows"]
    assert row["table"].startswith("gemv1") and row["tuned"] == row["best"] == "gemvr1" and row["gain"] > 1.2
    assert facts["kept"]["entries"] == 1 and Path(facts["kept"]["path"]) == tuned_file.find(tmp_path)
    judge = (BIN / tool, "kernel", "bench", *case, "--kernel", "pick", "--kernel", "table", "--cache-dir", tmp_path)
    facts = json.loads(command_line.run(*judge, "--regret", *QUICK_BENCH, "--json").stdout)
    regret = facts["regret"]
    assert {row["kernel"]: row["is"] for row in facts["rows"]}["pick"] == "gemvr1"
    assert regret["table"]["worst"] > 1.2 and regret["worst"] < regret["table"]["worst"]
    assert "regret of what was tuned over 1 shapes" in command_line.run(*judge, "--regret", *QUICK_BENCH).stdout


QUICK_BENCH = ("--seconds", "0", "--no-ceilings")


def test_products_of_a_model_at_its_sizes(tool, model, tmp_path) -> None:
    few = ("--kernel", "gemvr4", "--json")
    facts = json.loads(tune(tool, tmp_path, model, *few).stdout)
    rows = [int(line.split()[1]) for line in tuned_file.lines(tmp_path)[1:]]
    assert rows == [1, 4, 5, 16, 40] and all(PRODUCT in line for line in tuned_file.lines(tmp_path)[1:])
    assert [row["title"].split("m=")[1].split()[0] for row in facts["rows"]] == ["40", "16", "5", "4", "1"]
    tune(tool, tmp_path, model, "--size", "rows=7", *few)  # beside those of before
    assert [int(line.split()[1]) for line in tuned_file.lines(tmp_path)[1:]] == [1, 4, 5, 7, 16, 40]
    assert "allows 1 to 40" in tune(tool, tmp_path, model, "--size", "rows=41", code=3).stderr
    assert "rows" in tune(tool, tmp_path, model, "--size", "row=4", code=3).stderr


def test_no_time_measures_nothing(tool, model, tmp_path) -> None:
    assert "0 of 5 products measured" in tune(tool, tmp_path, model, "--budget", "0").stdout
    assert not list(tmp_path.glob("tuned-*"))


def test_ctrl_c_keeps_what_was_measured(tool, tmp_path) -> None:
    many = "m=" + "|".join(map(str, range(1, 200)))
    command = (
        tool, "tune", "--op", "linear", "--case", f"{many},n=64,k=96", "--kernel", "gemv8", "--budget", "600",
        "--seconds", "0", "--cache-dir", tmp_path,
    )  # fmt: skip
    with command_line.start(*command) as running:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("tuned-*.bin")) and time.monotonic() < end:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        try:
            running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert 1 <= len(tuned_file.lines(tmp_path)) - 1 < 199
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--op", "softmax"), "no matrix product"),
        (("--op", "linear_q4"), "linear_q4gsw"),
        (("--grid", "unsene"), "unseen"),
        ((*CASE, "--kernel", "gemv9"), "gemv8"),
        (("--op", "linear", "--case", "m=0"), "whole number"),
        ((*CASE, "--features", "untuned"), "untuned"),
    ],
)
def test_what_cannot_be_tuned_says_why(tool, words, said, tmp_path) -> None:
    assert said in tune(tool, tmp_path, *words, code=3).stderr
    assert not list(tmp_path.glob("tuned-*"))


def test_there_must_be_a_folder(tool) -> None:
    assert "no folder to keep" in tune(tool, Path("off"), *CASE, code=3).stderr


def test_help_teaches(tool) -> None:
    text = command_line.run(tool, "tune", "--help").stdout
    assert all(word in text for word in ("--budget", "--size", "--grid", "Ctrl-C", "untuned", "spread"))
