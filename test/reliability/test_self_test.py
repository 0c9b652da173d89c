# SPDX-License-Identifier: Apache-2.0
"""Kernels are tested on the device before a model uses them: docs/decisions/0006-self-test.md. A lie is planted in each
family that this device has, and a driver lies at random."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from support.cached_attention import CachedAttention
from support.command_line import BIN, run
from support.played_driver import playing
from torch import nn

import pumice

DOT_PRODUCT = 6019  # SPIR-V's capability


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, tuple[Path, np.ndarray, np.ndarray]]:
    """By the family that is picked for it on a GPU: file, input, output of eager PyTorch."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 96).eval(), torch.randn(40, 64)
    conv, image = nn.Conv2d(3, 8, 3, padding=1).eval(), torch.randn(2, 3, 9, 8)
    cases = {
        "dot": (pumice.quantize(nn.Sequential(nn.Linear(64, 96)).eval(), "8da4w", group_size=32), x[:2]),
        "matrix": (linear.half(), x.half()),
        "portable": (conv, image),
    }
    found = {}
    for family, (module, given) in cases.items():
        pumice.export(module, (given,)).save(folder / f"{family}.pumice")
        found[family] = folder / f"{family}.pumice", given.numpy(), module(given).detach().numpy()
    return found


def load(path: Path, cache: Path, features: str = "") -> pumice.Session:
    return pumice.load(path, cache_dir=str(cache), features=f"like_gpu,{features}")


def is_right(session: pumice.Session, given: np.ndarray, want: np.ndarray) -> bool:
    return np.allclose(session(given), want, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("family", ["dot", "matrix"])
def test_a_family_that_lies_is_switched_off(family: str, models, tmp_path, capfd) -> None:
    path, given, want = models[family]
    honest = load(path, tmp_path)
    assert {each.result for each in honest.device.self_test} == {"right"}
    assert family in {each.family for each in honest.device.self_test} and is_right(honest, given, want)
    assert not is_right(load(path, tmp_path, f"lie={family},untested"), given, want)  # the lie is one
    capfd.readouterr()
    session = load(path, tmp_path, f"lie={family}")
    assert is_right(session, given, want)
    wrong = [each for each in session.device.self_test if each.result == "wrong"]
    assert wrong and {each.family for each in wrong} == {family} and all("output" in each.wrong for each in wrong)
    off = {"dot": "int_dot", "matrix": "coopmat"}[family]
    assert off in honest.device.features and off not in session.device.features
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(wrong) and f"family '{family}' are switched off" in lines[0]


def test_a_portable_kernel_that_lies_is_told(models, tmp_path, capfd) -> None:
    path, given, want = models["portable"]
    session = load(path, tmp_path, "lie=portable")
    assert not is_right(session, given, want) and "results may be wrong" in capfd.readouterr().err
    assert [each.result for each in session.device.self_test] == ["wrong"]


# A smaller image stands for one of these: windows that go beyond both edges, skip rows, or are larger than the image.
CONVS = {
    "steps": (nn.Conv2d(3, 40, 7, stride=2, padding=3), (1, 3, 61, 50)),
    "gaps": (nn.Conv2d(32, 40, (3, 5), stride=(3, 1), dilation=(2, 1), padding=(0, 2)), (2, 32, 53, 37)),
    "narrow": (nn.Conv2d(16, 40, (5, 1), padding=(4, 0)), (1, 16, 3, 70)),
    "groups": (nn.Conv2d(12, 24, 3, stride=2, groups=3), (1, 12, 45, 46)),
    "depthwise": (nn.Conv2d(16, 16, 3, padding=1, groups=16), (1, 16, 40, 33)),
    "transposed": (nn.ConvTranspose2d(8, 12, 3, stride=(2, 3), padding=1), (1, 8, 20, 21)),
}


@pytest.mark.parametrize("name", CONVS)
def test_convolutions_of_a_smaller_image(name: str, tmp_path) -> None:
    module, shape = CONVS[name]
    torch.manual_seed(0)
    image = torch.randn(shape)
    pumice.export(module.eval(), (image,)).save(tmp_path / "m.pumice")
    # Before an honest run, whose results memory may keep. Of a transposed one fp64 is not known.
    spoilt = load(tmp_path / "m.pumice", tmp_path, "lie=portable")
    if name != "transposed":
        assert {each.result for each in spoilt.device.self_test} == {"wrong"}
    session = load(tmp_path / "m.pumice", tmp_path)
    assert {each.result for each in session.device.self_test} == {"right"}
    assert is_right(session, image.numpy(), module(image).detach().numpy())


class Attention(nn.Module):
    """Of queries [batch, heads, rows, size], with keys of `kv_heads` and a mask or causal."""

    def __init__(self, causal: bool, masked: bool):
        super().__init__()
        self.causal, self.masked = causal, masked

    def forward(self, q, k, v, mask):
        mask = mask if self.masked else None
        grouped = q.shape[1] != k.shape[1]
        return nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal, enable_gqa=grouped)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "rows", "keys", "causal", "masked"),
    [
        (3, 3, 197, 197, False, False),
        (4, 2, 200, 200, True, False),
        (2, 2, 40, 260, False, True),
        (2, 2, 1, 300, False, False),
    ],
)
def test_attention_of_fewer_rows(heads, kv_heads, rows, keys, causal, masked, tmp_path) -> None:
    """16 queries, as many as a workgroup has, and 150 keys of one head of keys stand for all."""
    torch.manual_seed(0)
    q = torch.randn(2, heads, rows, 32)
    k, v, mask = torch.randn(2, kv_heads, keys, 32), torch.randn(2, kv_heads, keys, 32), torch.randn(1, 1, rows, keys)
    given = (q, k, v, mask)
    pumice.export(Attention(causal, masked).eval(), given).save(tmp_path / "m.pumice")
    spoilt = load(tmp_path / "m.pumice", tmp_path, "lie=portable")
    assert {each.result for each in spoilt.device.self_test} == {"wrong"}
    own = {"PUMICE_LOG": "debug", "PUMICE_CACHE_DIR": "off", "PUMICE_FEATURES": "like_gpu"}
    log = run(BIN / "pumice-rt", "warm", tmp_path / "m.pumice", **own).stderr
    size = f"[1, {heads // kv_heads}, {min(rows, 16)}, 32]"
    assert [line for line in log.splitlines() if "self test of sdpa, " in line and size in line], log
    session = load(tmp_path / "m.pumice", tmp_path)
    assert {each.result for each in session.device.self_test} == {"right"}
    want = Attention(causal, masked)(*given).numpy()
    assert np.allclose(session(*(each.numpy() for each in given)), want, rtol=0.001, atol=0.001)


# Attention of one new row over caches, all of whose shares are read: plain, of bytes, with everything.
CACHES = {
    "plain": {"heads": 4, "kv_heads": 2, "size": 16, "rotated": 16},
    "int8": {"heads": 4, "kv_heads": 2, "size": 16, "rotated": 16, "int8": True},
    "all": {"heads": 6, "kv_heads": 3, "size": 32, "rotated": 16, "norm": "before", "sinks": True, "softcap": 5.0},
}


@pytest.mark.parametrize("name", CACHES)
def test_attention_over_caches_that_lies_is_switched_off(name: str, tmp_path, capfd) -> None:
    torch.manual_seed(0)
    module = CachedAttention(capacity=600, **CACHES[name]).eval()
    given = torch.randn(1, 1, 32), torch.full((1,), 599)
    with torch.no_grad():
        pumice.export(module, given).save(tmp_path / "m.pumice")
        want = module(*given).numpy()

    def is_near(session: pumice.Session) -> bool:
        return np.allclose(session(*(each.numpy() for each in given)), want, rtol=0.03, atol=0.03)

    def loaded(features: str) -> pumice.Session:
        for _ in range(8):  # a load has only so much time for tests
            session = load(tmp_path / "m.pumice", tmp_path / "cache", features)
            if any(each.family == "subgroups" and each.result != "untested" for each in session.device.self_test):
                break
        return session

    honest = loaded("")
    (tested,) = (each for each in honest.device.self_test if each.family == "subgroups")
    assert tested.result == "right" and {each.result for each in honest.device.self_test} == {"right"}
    assert is_near(honest) and not is_near(load(tmp_path / "m.pumice", tmp_path, "lie=subgroups,untested"))
    capfd.readouterr()
    session = loaded("lie=subgroups")
    (wrong,) = (each for each in session.device.self_test if each.result == "wrong")
    assert (wrong.kernel, wrong.family) == (tested.kernel, "subgroups") and "outputs" in wrong.wrong
    assert "subgroup_arithmetic" in honest.device.features and "subgroup_arithmetic" not in session.device.features
    assert is_near(session)
    (line,) = capfd.readouterr().err.splitlines()
    assert wrong.kernel in line and "kernels of the family 'subgroups' are switched off" in line


def test_compiling_takes_no_time_of_tests(models) -> None:
    """A CPU driver compiles a kernel when it first runs, which the model's first run then need not wait for."""
    own = {"PUMICE_LOG": "debug", "PUMICE_CACHE_DIR": "off", "MESA_SHADER_CACHE_DISABLE": "true"}
    log = run(BIN / "pumice-rt", "warm", models["portable"][0], **own).stderr
    line = r"self test of conv2d, .*: ([\d.]+) ms, and ([\d.]+) ms until its kernels were compiled"
    ((counted, compiling),) = re.findall(line, log)
    assert float(counted) < float(compiling) / 2, log


def test_the_first_call_tests_what_a_load_from_a_file_left_to_it(models, tmp_path, capfd) -> None:
    path, given, want = models["dot"]
    session = load(path, tmp_path, "lie=dot")
    assert capfd.readouterr().err == "" and not list(tmp_path.glob("tested-*"))
    assert is_right(session, given, want) and "family 'dot' are switched off" in capfd.readouterr().err
    assert list(tmp_path.glob("tested-*"))
    # Of bytes, which are gone when it returns, the load does it.
    session = pumice.load(path.read_bytes(), cache_dir="off", features="like_gpu,lie=dot")
    assert "family 'dot' are switched off" in capfd.readouterr().err and is_right(session, given, want)


def test_quantized_constants_tell(tmp_path) -> None:
    """Of a layer whose steps are coarse, numbers made up at random would be quantized to either of two."""
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 96).eval(), 40 * torch.randn(40, 64)
    quantized = pumice.quantize(nn.Sequential(linear).eval(), "static8", calibration=[(x,)])
    pumice.export(quantized, (x,)).save(tmp_path / "m.pumice")
    tested = load(tmp_path / "m.pumice", tmp_path).device.self_test
    assert tested and {each.result for each in tested} == {"right"}


def test_tests_stay_within_max_memory(models, tmp_path) -> None:
    path, given, want = models["matrix"]
    needs = load(path, tmp_path / "1").needs
    most = max(needs["loading"], sum(needs.values()) - needs["loading"])
    session = pumice.load(path, cache_dir=str(tmp_path / "2"), features="like_gpu", max_memory=most)
    # With the portable kernel beside it a test takes twice as much.
    assert {each.result for each in session.device.self_test} == {"untested"} and is_right(session, given, want)


def test_what_was_found_is_kept(models, tmp_path, capfd) -> None:
    path, _, _ = models["dot"]
    first = load(path, tmp_path).device.self_test
    (file,) = tmp_path.glob("tested-*")
    written, kept = file.stat().st_mtime_ns, file.read_bytes()
    assert load(path, tmp_path).device.self_test == first and file.stat().st_mtime_ns == written
    file.write_bytes(kept[:-3] + b"xyz")  # nobody else's word is taken
    capfd.readouterr()
    assert load(path, tmp_path).device.self_test == first
    assert "self tests" in capfd.readouterr().err and file.read_bytes() == kept
    assert load(path, "off").device.self_test == first and load(path, tmp_path, "untested").device.self_test == ()


def test_a_driver_that_lies_at_random(models, tmp_path) -> None:
    path, given, want = models["dot"]
    np.save(tmp_path / "x.npy", given)
    # By turns with another input: a run that did nothing leaves the answer to that.
    wanted = np.stack([want, load(path, tmp_path)(-given)] * 20)
    code = """if True:
        import sys, numpy as np, pumice
        x, out = np.load(sys.argv[2]), sys.argv[3]
        session = pumice.load(sys.argv[1], features="like_gpu," + sys.argv[4], cache_dir="off")
        np.save(out, np.stack([session((-1) ** i * x) for i in range(40)]))
        print([(each.family, each.wrong) for each in session.device.self_test if each.result == "wrong"])
    """
    lying = playing("lying_driver.cpp", tmp_path) | {
        "LIE_CAPABILITY": str(DOT_PRODUCT), "LIE_PERCENT": "23", "LIE_COUNT": str(tmp_path / "count"),
    }  # fmt: skip
    answers = {}
    for features in ("untested", ""):
        words = [sys.executable, "-c", code, path, tmp_path / "x.npy", tmp_path / "out.npy", features]
        done = subprocess.run(words, env=os.environ | lying, capture_output=True, text=True, check=True, timeout=120)
        answers[features] = np.allclose(np.load(tmp_path / "out.npy"), wanted, rtol=0.02, atol=0.02), done.stdout
    assert answers["untested"] == (False, "[]\n") and (tmp_path / "count").stat().st_size > 0
    assert answers[""][0] and "'dot'" in answers[""][1]


def test_fragments_that_lie_are_switched_off(tmp_path) -> None:
    """No CPU driver has such matrices: one is made to say so (test/support/fragments_driver.cpp), and they lie."""
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 96).eval().half(), torch.randn(8, 64).half()
    pumice.export(linear, (x,)).save(tmp_path / "m.pumice")
    np.save(tmp_path / "x.npy", x.numpy())
    code = """if True:
        import json, sys, numpy as np, pumice
        session = pumice.load(sys.argv[1], features="like_gpu," + sys.argv[4], cache_dir="off")
        np.save(sys.argv[3], session(np.load(sys.argv[2])))
        tested = [(each.family, each.kernel, each.result) for each in session.device.self_test]
        print(json.dumps({"features": session.device.features, "tested": tested}))
    """
    lying = os.environ | playing("fragments_driver.cpp", tmp_path)
    right, said = {}, {}
    for features in ("untested", ""):
        words = [sys.executable, "-c", code, tmp_path / "m.pumice", tmp_path / "x.npy", tmp_path / "y.npy", features]
        done = subprocess.run(words, env=lying, capture_output=True, text=True, check=True, timeout=120)
        right[features] = np.allclose(np.load(tmp_path / "y.npy"), linear(x).detach().numpy(), rtol=0.02, atol=0.02)
        said[features] = json.loads(done.stdout), [line for line in done.stderr.splitlines() if "is wrong" in line]
    trusting, testing = said["untested"][0], said[""][0]
    assert not right["untested"] and "fragments" in trusting["features"] and not trusting["tested"]
    assert right[""] and "fragments" not in testing["features"] and "coopmat" in testing["features"]
    (wrong,) = (each for each in testing["tested"] if each[2] == "wrong")
    assert wrong[0] == "fragments" and {each[2] for each in testing["tested"]} == {"wrong", "right"}
    (line,) = said[""][1]
    assert wrong[1] in line and "kernels of the family 'fragments' are switched off" in line
    own = {"PUMICE_FEATURES": "like_gpu", "PUMICE_CACHE_DIR": "off"}
    report = [BIN / "pumice", "report", tmp_path / "m.pumice", "-o", tmp_path / "r.html", "--profile", "-r", "1"]
    subprocess.run(report, env=lying | own, check=True, timeout=120)
    (row,) = (row for row in (tmp_path / "r.html").read_text().split("<tr>") if wrong[1] in row and "wrong" in row)
    assert "fragments" in row and "output" in row


def test_constants_that_tell_nothing_are_no_verdict(tmp_path) -> None:
    """A file of zeros does not make a kernel right for other files."""
    linear = nn.Linear(64, 96).eval()
    nn.init.zeros_(linear.weight), nn.init.zeros_(linear.bias)
    pumice.export(linear, (torch.randn(40, 64),)).save(tmp_path / "m.pumice")
    assert load(tmp_path / "m.pumice", tmp_path / "cache").device
    kept = b"".join(file.read_bytes() for file in (tmp_path / "cache").glob("tested-*"))
    assert b"linear" not in kept


def test_the_doctor_tests_a_device(tmp_path) -> None:
    text = run(BIN / "pumice", "doctor", "--device", "llvmpipe", "-o", tmp_path / "doctor.txt").stdout
    assert "kernels of sdpa" in text and ", 0 failed" in text and (tmp_path / "doctor.txt").read_text() == text
