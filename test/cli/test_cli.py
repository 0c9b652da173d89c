# SPDX-License-Identifier: Apache-2.0
"""The commands `pumice` and `pumice-rt`, as a user types them."""

from __future__ import annotations

import json
import re
import traceback
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.command_line import BIN, ROOT, run

import pumice
from pumice.cli import cli
from pumice.error_codes import CODES
from pumice.errors import InvalidFileError


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    path, report = folder / "mlp.pumice", folder / "report.json"
    words = ("export", "examples/mlp.py:build", "--quantize", "int4", "-o", path, "--report", report)
    done = run(BIN / "pumice", *words, anew=True)
    assert "linear_q4gsw" in done.stderr and done.stdout.endswith("/mlp.pumice: 93.5 kB\n")
    assert "up     Linear      1  int4    526.3 kB  88.1 kB" in done.stderr and "Failed to load" not in done.stderr
    facts = json.loads(report.read_text())
    assert "linear_q4gsw" in json.dumps(facts)
    return path


@pytest.fixture(params=["pumice", "pumice-rt"])
def tool(request) -> Path:
    return BIN / request.param


def test_run_writes_what_eager_computes(tool, model, tmp_path) -> None:
    import torch
    from mlp import build

    import pumice

    module = build()[0]
    pumice.quantize(module, "int4", group_size=32)
    x = np.random.default_rng(0).standard_normal((5, 256)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    run(tool, "run", model, "--inputs", tmp_path / "x.npy", "--outputs", tmp_path / "out", PUMICE_DEVICE="llvmpipe")
    (result,) = (tmp_path / "out").glob("*.npy")
    with torch.no_grad():
        np.testing.assert_allclose(np.load(result), module(torch.from_numpy(x)).numpy(), atol=1e-5)


def test_inspect_check_devices(tool, model) -> None:
    text = run(tool, "inspect", model).stdout
    assert "linear_q4gsw" in text and "precision split" in text
    facts = json.loads(run(tool, "inspect", model, "--json").stdout)
    assert (
        facts["methods"][0]["inputs"][0]["name"] == "x"
        and facts["constants"]
        and "arena_bytes" in facts["methods"][0]["plan"]
    )
    assert "ok" in run(tool, "check", model).stdout
    assert "llvmpipe" in run(tool, "devices").stdout
    assert any("llvmpipe" in device["name"] for device in json.loads(run(tool, "devices", "--json").stdout)["devices"])


def test_values_in_textures(tmp_path) -> None:
    path = tmp_path / "mlp.pumice"
    words = ("--quantize", "int4", "--storage", "texture", "-o", path)
    run(BIN / "pumice", "export", "examples/mlp.py:build", *words)
    text = run(BIN / "pumice", "inspect", path).stdout
    assert "texture3d" in text and "texture2d" in text and "images, shared by values in textures" in text
    device = ("--device", "llvmpipe", "--shape", "x=3x256")
    for tool in ("pumice", "pumice-rt"):
        rows = json.loads(run(BIN / tool, "profile", path, *device, "--json").stdout)["rows"]
        assert any("texture3d,texture2d" in row["kernel"] for row in rows)


def test_a_precision_is_kept_in_the_file(tmp_path) -> None:
    path = tmp_path / "mlp.pumice"
    words = "export", "examples/mlp.py:build", "-o", path, "--precision"
    assert "'split', 'fp32', 'fp16'" in run(BIN / "pumice", *words, "double", code=2).stderr
    run(BIN / "pumice", *words, "fp32")
    for tool in ("pumice", "pumice-rt"):
        assert "precision fp32" in run(BIN / tool, "inspect", path).stdout
    device = ("--device", "llvmpipe", "--shape", "x=70x256", "-r", "1")
    title = "precision {}, {} of them products by split operands"
    assert title.format("fp32", 0) in " ".join(run(BIN / "pumice", "profile", path, *device).stdout.split())
    run(BIN / "pumice", *words, "split")
    forced = run(BIN / "pumice", "profile", path, *device, "--features", "kernel=split_matrix32x32").stdout
    assert title.format("split", 2) in " ".join(forced.split())


def test_bench_and_profile(tool, model) -> None:
    device = ("--device", "llvmpipe", "--shape", "x=3x256", "-r", "3")
    row = json.loads(run(tool, "bench", model, *device, "--warmup", "0", "--json").stdout)
    assert row["shape"] == "x=3x256" and 0 < row["p10_ms"] <= row["median_ms"] <= row["p90_ms"] and row["load_ms"] > 0
    assert "median" in run(tool, "bench", model, *device, "--warmup", "0").stdout
    rows = json.loads(run(tool, "profile", model, *device, "--json").stdout)["rows"]
    assert any("linear" in json.dumps(row) for row in rows)
    assert "linear_q4gsw" in run(tool, "profile", model, *device).stdout


def test_help_and_version(tool) -> None:
    text = run(tool, "--help").stdout
    assert all(word in text for word in ("run", "bench", "profile", "inspect", "devices"))
    assert "..." not in text.partition("Commands")[2]  # no sentence is cut
    for command in ("run", "bench", "profile", "inspect", "devices"):
        assert "--" in run(tool, command, "--help").stdout
    assert pumice.__version__ in run(tool, "--version").stdout


def test_misuse(tool, model, tmp_path) -> None:
    run(tool, "run", tmp_path / "none.pumice", code=2 if tool.name == "pumice" else 3)
    assert "run" in run(tool, "rnu", model, code=2).stderr
    run(tool, "bench", model, "--shape", "y=1", "--device", "llvmpipe", code=2)
    run(tool, "bench", model, "--shape", "x=axb", "--device", "llvmpipe", code=2)
    run(tool, "bench", model, "--device", "GeForce 256", code=4)
    run(tool, "run", model, "--device", "llvmpipe", code=3)  # no inputs
    (tmp_path / "text.npy").write_text("hello")
    done = run(
        tool,
        "run",
        model,
        "--inputs",
        tmp_path / "text.npy",
        "--device",
        "llvmpipe",
        code=2 if tool.name == "pumice" else 3,
    )
    assert "npy" in done.stderr
    (tmp_path / "cut.pumice").write_bytes(model.read_bytes()[:1000])
    text = run(tool, "inspect", tmp_path / "cut.pumice", code=3).stderr
    assert "Truncated" in text and "pumice explain Truncated" in text


def test_every_code_is_explained_as_its_page_has_it() -> None:
    """By its name in any case and by its number, and every link to the page leads to an anchor."""
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    listed = CliRunner().invoke(cli, ["explain"]).output
    for name, code in CODES.items():
        text = CliRunner().invoke(cli, ["explain", name.lower()]).output
        assert text.startswith(f"{name}: ") and code.means in text and code.do in text
        anchor = re.search(r"docs/errors\.md#(\w+)$", text, re.MULTILINE)[1]
        (row,) = [line for line in page.splitlines() if f'<a id="{anchor}"></a>' in line]
        assert f"`{name}`" in row and code.means in row and code.do in row
        assert code.number is None or CliRunner().invoke(cli, ["explain", str(code.number)]).output == text
        assert f"{name} " in listed and code.means in listed
    assert "did you mean 'BadShape'" in run(BIN / "pumice", "explain", "BadShap", code=3).stderr


def test_a_traceback_ends_with_what_to_do() -> None:
    error = InvalidFileError("too short", code="Truncated")
    assert str(error) == "too short"
    assert traceback.format_exception(error)[-1] == "what to do: pumice explain Truncated\n"


def test_export_errors_name_the_line(tmp_path) -> None:
    (tmp_path / "bad.py").write_text(
        "import sys\nsys.path.insert(0, 'test')\nimport torch\nfrom support.missing import missing\n"
        "class M(torch.nn.Module):\n  def forward(self, x):\n    return missing(x)\n"
        "def build():\n  return M(), (torch.eye(3),)\n"
    )
    done = run(BIN / "pumice", "export", f"{tmp_path}/bad.py:build", "-o", tmp_path / "bad.pumice", code=3)
    assert "pumice_test.missing" in done.stderr and "bad.py:7" in done.stderr
    assert not (tmp_path / "bad.pumice").exists()
    for source in ("nothing.py:build", "examples/mlp.py", "examples/mlp.py:none", "none.pt2"):
        run(BIN / "pumice", "export", source, "-o", tmp_path / "x.pumice", code=2)


def test_an_exception_of_the_users_own_file(tmp_path) -> None:
    (tmp_path / "bad.py").write_text("def build():\n  return {}['weights']\n\ndef two(a):\n  pass\n")
    words = "-o", tmp_path / "x.pumice"
    text = run(BIN / "pumice", "export", f"{tmp_path}/bad.py:build", *words, code=1).stderr
    assert f"build() of '{tmp_path}/bad.py' raised KeyError" in text and 'bad.py", line 2, in build' in text
    assert "Traceback" not in text and "pumice/cli" not in text
    assert "two() missing 1 required" in run(BIN / "pumice", "export", f"{tmp_path}/bad.py:two", *words, code=1).stderr
    (tmp_path / "bad.py").write_text("import nothing_of_this_name\n")
    text = run(BIN / "pumice", "export", f"{tmp_path}/bad.py:build", *words, code=1).stderr
    assert "No module named 'nothing_of_this_name'" in text and "line 1" in text


def test_layers_that_are_quantized_and_layers_that_are_not(tmp_path) -> None:
    words = "examples/mlp.py:build", "-o", tmp_path / "m.pumice"
    text = run(BIN / "pumice", "export", *words, "--quantize", "8da4w", "--layers", "!up", "-v").stderr
    assert "left out by filter" in text and "linear_dq8ca_q4gsw" in text and "examples/mlp.py:14 (up)" in text
    run(BIN / "pumice", "export", *words, "--layers", "!up", code=2)  # without --quantize
    assert (
        "skip_unfit" in run(BIN / "pumice", "export", *words, "--quantize", "int4", "--group-size", "96", code=3).stderr
    )


def test_quantize_prints_what_export_makes_and_writes_nothing(tmp_path) -> None:
    words = ("--layers", "!down", "--group-size", "64")
    text = run(BIN / "pumice", "quantize", "examples/mlp.py:build", "int4", *words).stdout
    out = ("-o", tmp_path / "m.pumice")
    done = run(BIN / "pumice", "export", "examples/mlp.py:build", "--quantize", "int4", *words, *out)
    assert text.strip() and done.stderr.startswith(text)
    assert re.search(r"^up +Linear +1 +int4 ", text, re.MULTILINE) and re.search(r"^down .*float32", text, re.MULTILINE)
    done = run(BIN / "pumice", "quantize", tmp_path / "x.pt2", "int4", code=2)
    assert "name the function that makes the model" in done.stderr


def test_no_device_and_what_to_do(tmp_path) -> None:
    for command, stream in {"devices": "stderr", "doctor": "stdout"}.items():
        done = run(BIN / "pumice", command, code=4, PUMICE_VULKAN_LOADER=str(tmp_path / "none.so"))
        text = getattr(done, stream)
        assert "no Vulkan device: " in text and "libvulkan1" in text and "pumice explain DeviceUnsupported" in text
    text = run(BIN / "pumice", "doctor", code=4, PUMICE_FEATURES="none,no_such_feature").stdout
    assert "[InvalidArgument]\n  what to do: " in text and "pumice explain InvalidArgument" in text


def test_a_saved_pt2_file(tmp_path) -> None:
    import torch

    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(8, 3), (torch.ones(2, 8),)), path)
    run(BIN / "pumice", "export", path, "-o", tmp_path / "m.pumice")
    assert "linear" in run(BIN / "pumice", "inspect", tmp_path / "m.pumice", "--ops").stdout


def test_doctor() -> None:
    text = run(BIN / "pumice", "doctor", PUMICE_DEVICE="llvmpipe").stdout
    assert "llvmpipe" in text and "self test" in text and "is right" in text


NETWORK = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)).eval()
    return model, (torch.rand(2, 3, 8, 8),)
"""


def test_convolutions_are_quantized_with_calibration(tmp_path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    path, batch = tmp_path / "net.pumice", tmp_path / "batch.npy"
    images = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)
    np.save(batch, images)
    np.savez(tmp_path / "second.npz", 2 * images)
    words = "export", f"{tmp_path / 'net.py'}:build", "-o", path
    files = "--calibration", batch, "--calibration", tmp_path / "second.npz"
    text = run(BIN / "pumice", *words, "--quantize", "static8", *files).stderr
    assert "Conv2d" in text and "Linear" in text and text.count("static8") == 2
    operators = [op["name"] for op in pumice.inspect(path)["methods"][0]["ops"]]
    assert operators[0] == "quantize" and "q8ta_conv2d" in operators
    assert "needs calibration" in run(BIN / "pumice", *words, "--quantize", "static8", code=3).stderr
    assert "for 'static8'" in run(BIN / "pumice", *words, "--quantize", "int8", *files, code=3).stderr
    run(BIN / "pumice", *words, *files, code=2)
    batch.write_bytes(b"no array")
    assert "not a .npy" in run(BIN / "pumice", *words, "--quantize", "static8", *files, code=2).stderr
