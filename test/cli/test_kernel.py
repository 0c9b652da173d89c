# SPDX-License-Identifier: Apache-2.0
"""`kernel list`, `test` and `bench` of `pumice` and `pumice-rt`, as a kernel's author types them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support import command_line
from support.command_line import BIN

SMALL = "m=1|5,n=37,k=96,g=32"
WIDE = {"PUMICE_DEVICE": "llvmpipe", "COLUMNS": "160"}


def run(*command: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """As command_line.run, on the CPU driver, in a wide terminal."""
    return command_line.run(*command, code=code, **(WIDE | environment))


@pytest.fixture(params=["pumice", "pumice-rt"])
def tool(request) -> tuple[Path, str]:
    return BIN / request.param, "kernel"


def test_list(tool) -> None:
    text = run(*tool, "list").stdout
    assert all(word in text for word in ("linear_q4gsw", "gemv1", "softmax", "plain"))
    facts = json.loads(run(*tool, "list", "--op", "linear_q4gsw", "--case", "m=128", "--json").stdout)
    (row,) = facts["operators"]
    kernels = {kernel["kernel"]: kernel for kernel in row["kernels"]}
    assert kernels["pick"]["is"] in kernels and kernels["gemv1"]["unsupported_reason"] == ""
    assert (
        kernels["gemv1"]["not_recommended_reason"] == "is made for GPUs"
        and kernels["gemvr8"]["not_recommended_reason"] == ""
    )
    assert any(shader["shader"] == "softmax" for shader in facts["shaders"])


def test_list_has_the_time_that_the_driver_compiles(tool, tmp_path) -> None:
    asked = (*tool, "list", "--compile", "--op", "linear_q4gsw", "--case", "m=5,n=37,k=96,g=32")
    (row,) = json.loads(run(*asked, "--json").stdout)["operators"]
    times = {kernel["kernel"]: kernel["compile_ms"] for kernel in row["kernels"] if "compile_ms" in kernel}
    runnable = {kernel["kernel"] for kernel in row["kernels"] if not kernel["unsupported_reason"]}
    assert times.keys() == runnable and len(set(times.values())) > len(times) / 2
    assert all(0 < time < 60_000 for time in times.values())
    slowest = max(row["kernels"], key=lambda kernel: kernel.get("compile_ms", 0))
    pipelines = tmp_path / "slowest"
    pipelines.write_text(
        json.dumps({"shader": slowest["compiled"], **{key: slowest[key] for key in ("spec", "subgroup_size")}})
    )
    again = run(BIN / "pumice-rt", "kernel", "compile", "--pipelines", pipelines, "--cache-dir", "off", "--json").stdout
    assert [0 < each["compile_ms"] < 60_000 for each in json.loads(again)["rows"]] == [True]
    said = next(line for line in run(*asked).stdout.splitlines() if line.split()[:1] == ["gemv1"])
    assert said.split()[1].isdigit()
    assert "a profile has no compiler" in run(*asked, "--profile", "navi31", code=3).stderr


def test_list_says_what_a_device_lacks(tool) -> None:
    facts = json.loads(run(*tool, "list", "--op", "linear_q4gsw", "--features", "none", "--json").stdout)
    plain = next(kernel for kernel in facts["operators"][0]["kernels"] if kernel["kernel"] == "plain")
    assert "storage8" in plain["unsupported_reason"]


def test_a_profile_stands_for_its_device(tool, tmp_path) -> None:
    profile = tmp_path / "mine.json"
    profile.write_text(run(tool[0], "devices", "--profile").stdout)
    asked = (*tool, "list", "--op", "linear_dq8ca_q4gsw", "--op", "sdpa", "--json")
    here, there = (json.loads(run(*asked, *more).stdout) for more in ((), ("--profile", profile)))
    assert there["operators"] == here["operators"] and there["device"] == here["device"]
    assert there["selection"]["compute_units"] == here["selection"]["compute_units"]
    assert there["selection"]["compute_units_from"] == "profile"
    case = ("--op", "linear_q4gsw", "--case", "m=128,n=2048,k=256,g=32,dtype=f16")
    for name, units, kernel in (("navi21", "profile", "tile"), ("ampere", "default", "matrix")):
        facts = json.loads(run(*tool, "list", *case, "--profile", name, "--json").stdout)
        (row,) = facts["operators"]
        (pick,) = (each["is"] for each in row["kernels"] if each["kernel"] == "pick")
        shaders = [each["shader"].partition("[")[0] for each in row["dispatches"]]
        assert facts["selection"]["compute_units_from"] == units
        assert pick.startswith(kernel) and shaders[0].startswith(f"linear_{kernel}")


def test_what_is_no_profile(tmp_path) -> None:
    facts = json.loads(run(BIN / "pumice-rt", "devices", "--profile").stdout)
    profile = tmp_path / "mine.json"
    profile.write_text(json.dumps(facts | {"max_shared_bytes": 1}))
    command = (BIN / "pumice-rt", "kernel", "list", "--profile")
    assert "a whole number from 16384" in run(*command, profile, code=3).stderr
    assert "test/profiles" in run(*command, "adreno74", code=3).stderr


def test_test_passes_and_counts(tool) -> None:
    command = (*tool, "test", "--op", "linear_q4gsw", "--case", SMALL, "--kernel", "gemv1", "--kernel", "pick")
    facts = json.loads(run(*command, "--replays", "2", "--json").stdout)
    assert [row["status"] for row in facts["rows"]] == ["ok"] * 4
    assert {row["kernel"] for row in facts["rows"]} == {"gemv1", "pick"}
    assert all(0 < row["worst"] < 1 and row["replays"] == 2 and row["checked"] > 0 for row in facts["rows"])
    assert "4 run, 0 skipped, 0 failed" in run(*command, "--replays", "2").stdout


def test_the_log_names_the_variants_that_ran(tmp_path) -> None:
    log = tmp_path / "shaders.log"
    case = ("--op", "softmax", "--case", "T=f16 x=T[3,37] dim=1")
    run(BIN / "pumice-rt", "kernel", "test", *case, "--replays", "1", PUMICE_SHADER_LOG=str(log))
    facts = json.loads(run(BIN / "pumice-rt", "kernel", "list", "--json").stdout)
    listed = {row["variant"] for shader in facts["shaders"] for row in shader["variants"]}
    made = set(log.read_text().splitlines())
    assert {name.partition("[")[0] for name in made & listed} == {"softmax"} and "f16" in " ".join(made & listed)


def test_a_small_case_for_each_variant(tmp_path) -> None:
    """In any storage, by any kernel; also those that pack weights."""
    log, tool = tmp_path / "shaders.log", (BIN / "pumice-rt", "kernel", "test", "--replays", "1", "--json")
    names = {
        "choose_qparams[f16,f32]", "conv2d_depthwise_int8[u8,i8]", "conv2d_direct_int8[i8,u8,texture3d]",
        "linear_pack_sums[q4,texture2d]", "linear_tiled[f16,q4,texture3d,buffer]",
    }  # fmt: skip
    chained = "conv2d_to_nchw[i8]"  # only a sum after a convolution has it
    words = [f"--variant={name}" for name in (*names, chained)]
    rows = json.loads(run(*tool, *words, PUMICE_SHADER_LOG=str(log)).stdout)["rows"]
    made = set(log.read_text().splitlines())
    assert names <= made and chained not in made
    assert [(row["title"], row["why"]) for row in rows if row["status"] == "skipped"] == [
        (chained, "no case of an operator launches it here")
    ]
    assert {row["status"] for row in rows} == {"ok", "skipped"} and len(rows) <= len(names) + 1
    assert "did you mean 'conv2d_dot[u8]'" in run(*tool, "--variant", "conv2d_dot[u9]", code=3).stderr


@pytest.mark.parametrize(
    "op", ["linear_dq8ca_q4gsw", "linear_dq8ca_q8gsw", "linear_q8ta_q8csw", "q8ta_linear", "linear_qta8a_qga4w_qta8o"]
)
def test_integers(op) -> None:
    forced = ["--kernel", "gemv1", "--kernel", "dot2", "--kernel", "dotw4", "--kernel", "dot_tile32x64"]
    case = ["--case", "m=1|5,n=37,k=96,g=32,bias=1,zero=random"]
    facts = json.loads(run(BIN / "pumice-rt", "kernel", "test", "--op", op, *case, *forced, "--json").stdout)
    assert [row["status"] for row in facts["rows"]] == ["ok"] * 8, facts
    forced = [word.replace("dot2", "tile32x64") for word in forced]  # it reads x from a buffer
    case[1] += ",storage=texture3d|texture2d|textures"
    facts = json.loads(run(BIN / "pumice-rt", "kernel", "test", "--op", op, *case, *forced, "--json").stdout)
    assert [row["status"] for row in facts["rows"]] == ["ok"] * 24, facts


@pytest.mark.parametrize(
    ("op", "kernel"),
    [("conv2d", "conv_tiled"), ("conv2d_q8csw", "pick"), ("conv2d_q8ta_q8csw", "conv_dot32x32")],
)
def test_convolutions(op, kernel) -> None:
    case = ("--case", "b=1|3,c=33,o=20,h=9,w=8,k=3,s=2,bias=1,act=relu6", "--replays", "2")
    command = (BIN / "pumice-rt", "kernel", "test", "--op", op, *case, "--kernel", kernel, "--json")
    facts = json.loads(run(*command).stdout)
    assert [(row["status"], row["checked"]) for row in facts["rows"]] == [("ok", 400), ("ok", 1200)], facts
    done = run(*command, "--plant", "value", code=1)
    assert "first at [0, 0, 0, 0]" in done.stdout and "b=1,c=33,o=20,h=9,w=8,k=3,s=2,p=1,d=1,g=1" in done.stdout


def test_convolutions_of_few_channels() -> None:
    tool = (BIN / "pumice-rt", "kernel")
    case = ("--op", "q8ta_conv2d", "--case", "b=2,c=6,o=6,g=6,h=7,w=8")
    forced = ("--kernel", "conv_direct", "--kernel", "conv_depthwise", "--kernel", "conv_tiled")
    rows = json.loads(run(*tool, "test", *case, *forced, "--replays", "2", "--json").stdout)["rows"]
    ran = {row["kernel"]: row.get("shader", row.get("why")) for row in rows}
    assert "direct" in ran["conv_direct"] and "depthwise" in ran["conv_depthwise"], rows
    assert "more output channels" in ran["conv_tiled"]
    rows = json.loads(run(*tool, "bench", *case, "--seconds", "0", "--no-ceilings", "--json").stdout)["rows"]
    assert {row["is"] for row in rows if row["status"] == "ok"} == {"conv_direct"}


@pytest.mark.parametrize("op", ["softmax", "permute", "choose_qparams"])
def test_calls(tool, op) -> None:
    rows = json.loads(run(*tool, "test", "--op", op, "--json").stdout)["rows"]
    assert len(rows) >= 3 and all(row["status"] == "ok" and row["checked"] > 0 for row in rows)
    assert all(row["compared"] == "fp64 reference" for row in rows)
    (listed,) = json.loads(run(*tool, "list", "--op", op, "--json").stdout)["operators"]
    assert [row["title"] for row in rows] == listed["cases"]
    assert op in run(*tool, "list", "--op", op).stdout


PRODUCT = ("--case", "m=1|5|33,n=37,k=96,bias=1", "--kernel", "pick", "--kernel", "tile32x64")
CONVOLUTION = ("--case", "b=1|3,c=33,o=20,h=9,w=8,k=3,s=2,bias=1")


PARTS = 16  # of the operators
LINEARS = [
    "linear", "linear_q4gsw", "linear_q8csw", "linear_q8gsw", "linear_dq8ca_q4gsw", "linear_dq8ca_q8csw",
    "linear_dq8ca_q8gsw", "linear_q8ta_q8csw", "q8ta_linear", "linear_qta8a_qga4w_qta8o",
]  # fmt: skip


def operators() -> list[tuple[str, bool]]:
    """The name of each operator, and whether it has kernels to choose from: a linear layer or a convolution."""
    listed = json.loads(run(BIN / "pumice-rt", "kernel", "list", "--json").stdout)["operators"]
    return [(row["op"], len(row["kernels"]) > 1) for row in listed]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_operator_between_guards(part: int) -> None:
    """All cases in memory of two fill patterns, each tensor between guard bands: docs/testing.md."""
    tool = (BIN / "pumice-rt", "kernel", "test", "--replays", "1", "--json")
    mine = operators()[part::PARTS]
    calls = [op for op, has_kernels in mine if not has_kernels]
    rows = json.loads(run(*tool, *(word for op in calls for word in ("--op", op))).stdout)["rows"]
    for op in (op for op, has_kernels in mine if has_kernels):
        rows += json.loads(run(*tool, "--op", op, *(CONVOLUTION if "conv" in op else PRODUCT)).stdout)["rows"]
    assert {row["status"] for row in rows} <= {"ok", "skipped"}
    ran = {row["title"].split()[0] for row in rows if row["status"] == "ok"}
    assert ran == {op for op, _ in mine}


@pytest.mark.parametrize("op", LINEARS)
def test_long_sums_have_no_room(op) -> None:
    """As long as in the models that are timed; one column and one group alone have no other terms to hide behind."""
    zero = "none" if op == "linear" else "random"
    case = f"m=9,n=37,k=4096|14336|16384,g=32,zero={zero},values=random|one|group|equal|alternate"
    command = (BIN / "pumice-rt", "kernel", "test", "--op", op, "--case", case, "--kernel", "pick", "--replays", "1")
    rows = json.loads(run(*command, "--json").stdout)["rows"]
    assert len(rows) == 15 and {row["status"] for row in rows} == {"ok"}


@pytest.mark.parametrize("op", ["softmax", "permute", "exp"])  # exp: in place of its input
@pytest.mark.parametrize("mistake", ["value", "unwritten", "guard", "replay"])
def test_a_planted_mistake_of_a_call_is_found(op, mistake) -> None:
    tool = (BIN / "pumice-rt", "kernel")
    done = run(*tool, "test", "--op", op, "--plant", mistake, "--dtype", "f16", code=1)
    again = next(line for line in done.stdout.splitlines() if "again: " in line).split("again: ")[1]
    subprocess.run(again, shell=True, check=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})


@pytest.mark.parametrize("op", ["scatter_add", "index_add"])
def test_kernels_that_add_in_any_order(op) -> None:
    """Each run is compared with the bound, in place of the bits of the first one."""
    tool = (BIN / "pumice-rt", "kernel", "test", "--op", op, "--dtype", "f32", "--replays", "3")
    rows = json.loads(run(*tool, "--features=+float_atomics", "--json").stdout)["rows"]
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["repeats"] for row in rows if "atomic" in row["shader"]} == {False}
    assert {row["repeats"] for row in rows if "atomic" not in row["shader"]} <= {True}
    assert all(row["repeats"] for row in json.loads(run(*tool, "--json").stdout)["rows"])
    for mistake, found in (("replay", "outputs are wrong"), ("value", "outputs are wrong"), ("guard", "was written")):
        assert found in run(*tool, "--features=+float_atomics", "--plant", mistake, code=1).stdout.replace("\n", " ")


def test_bench_of_a_call() -> None:
    case = ("--case", "T=f16 x=T[64,256] dim=-1")
    command = (BIN / "pumice-rt", "kernel", "bench", "--op", "softmax", *case, "--seconds", "0.01", "--no-ceilings")
    (row,) = json.loads(run(*command, "--json").stdout)["rows"]
    assert row["status"] == "ok" and row["median_us"] > 0 and row["bytes"] == 2 * 2 * 64 * 256


@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        ("value", "outputs are wrong"),
        ("unwritten", "outputs are wrong"),
        ("guard", "was written"),
        ("replay", "other bits"),
    ],
)
def test_a_planted_mistake_is_found(tool, mistake, found) -> None:
    command = (*tool, "test", "--case", "m=3,n=37,k=96", "--kernel", "gemv1", "--replays", "2", "--seed", "5")
    done = run(*command, "--plant", mistake, code=1)
    assert found in done.stdout.replace("\n", " ") and "1 failed" in done.stdout
    again = next(line for line in done.stdout.splitlines() if "again: " in line).split("again: ")[1]
    assert again.startswith("pumice-rt kernel test --kernel gemv1 --case 'op=linear_q4gsw,m=3,n=37,k=96")
    assert "--seed 5" in again
    subprocess.run(again, shell=True, check=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})


@pytest.mark.parametrize("storage", ["texture3d", "texture2d", "textures"])
def test_storages(storage) -> None:
    """Activations with tails of texels, weights with tails of tiles."""
    case = ("--storage", storage, "--case", "m=1|5,n=37,k=90,g=0,bias=1")
    command = (BIN / "pumice-rt", "kernel", "test", *case, "--replays", "3", "--kernel", "gemv1")
    facts = json.loads(run(*command, "--kernel", "tile32x64", "--kernel", "pick", "--json").stdout)
    assert [row["status"] for row in facts["rows"]] == ["ok"] * 6
    assert all(storage in row["title"] and storage.rstrip("s") in row["shader"] for row in facts["rows"])
    for mistake, found in (("guard", "was written"), ("unwritten", "outputs are wrong")):
        done = run(*command, "--plant", mistake, code=1)
        assert found in done.stdout and f"storage={storage}" in done.stdout
        assert mistake != "guard" or ("texel" in done.stdout) == (storage != "texture2d")


def test_storages_of_other_commands() -> None:
    tool = (BIN / "pumice-rt", "kernel")
    done = run(*tool, "test", "--op", "quantize", "--storage", "texture3d", "--kernel", "pick")
    (listed,) = json.loads(run(*tool, "list", "--op", "quantize", "--json").stdout)["operators"]
    cases = {case.removesuffix(" texture3d") for case in listed["cases"]}  # each of them is put into textures
    assert f"{len(cases)} run, 0 skipped, 0 failed" in done.stdout
    facts = json.loads(run(*tool, "list", "--op", "linear_q4gsw", "--storage", "textures", "--json").stdout)
    kernels = {kernel["kernel"]: kernel["unsupported_reason"] for kernel in facts["operators"][0]["kernels"]}
    assert kernels["gemv1"] == kernels["pick"] == "" and "textures" in kernels["matrix64x64"]
    case = ("--case", "m=2,n=64,k=64,storage=textures", "--kernel", "pick", "--seconds", "0.01", "--no-ceilings")
    (row,) = json.loads(run(*tool, "bench", *case, "--json").stdout)["rows"]
    assert row["status"] == "ok" and row["slots"] > 1 and "texture3d,texture2d" in row["shader"]


def test_a_kernel_the_device_lacks_says_so(tool) -> None:
    done = run(*tool, "test", "--kernel", "plain", "--case", SMALL, "--features=-storage8", code=4)
    assert "storage8" in done.stdout and "skipped" in done.stdout


def test_bench() -> None:
    words = "kernel bench --case m=1|8,n=64,k=64 --kernel pick --kernel plain --seconds 0.01"
    command = (BIN / "pumice-rt", *words.split())
    facts = json.loads(run(*command, "--json").stdout)
    assert {fact["name"] for fact in facts["ceilings"]} >= {"read", "copy", "f32", "dot", "f16 matrix", "s8 matrix"}
    assert all(fact["per_second"] > 0 or fact["why"] for fact in facts["ceilings"])
    assert len(facts["rows"]) == 4
    rates = {fact["name"]: fact["per_second"] for fact in facts["ceilings"] + facts["rates"]}
    for row in facts["rows"]:
        assert 0 < row["p10_us"] <= row["median_us"] <= row["p90_us"] and row["cpu_us"] > 0
        assert row["gb_s"] > 0 and row["tflop_s"] > 0 and row["slots"] > 1
        least = {"memory": row["bytes"] / rates["read"], "arithmetic": row["flops"] / rates[row["arithmetic"]]}
        assert row["bound"] == max(least, key=least.get)
        assert row["roof_us"] == pytest.approx(1e6 * least[row["bound"]], rel=1e-6)
        assert row["of_roof"] == pytest.approx(row["roof_us"] / row["cpu_us"], rel=1e-6)
    text = run(*command, "--no-ceilings", "--no-barrier").stdout
    assert "pick: gemvr1" in text and "plain" in text


def test_bench_takes_the_kernels_that_are_meant_for_a_case() -> None:
    words = "kernel bench --op linear_q8csw --case m=1,n=64,k=64 --no-ceilings --seconds 0"
    command = (BIN / "pumice-rt", *words.split())
    facts = json.loads(run(*command, "--json").stdout)
    assert {row["kernel"] for row in facts["rows"] if row["status"] == "ok"} == {"pick", "gemvr1", "gemvr1x2"}
    assert any(row["kernel"] == "gemv1" and row["why"] == "it is made for GPUs" for row in facts["rows"])
    lines = [line.strip() for line in run(*command).stdout.splitlines()]
    skipped = [line for line in lines if line.startswith("skipped: ")]
    whys = {row["why"] for row in facts["rows"] if row["status"] == "skipped"}
    assert len(skipped) == len(whys) and {line.rpartition(": ")[2] for line in skipped} == whys


def test_bench_regret() -> None:
    kernels = [word for kernel in ("pick", "gemvr1", "gemv4", "tile32x64") for word in ("--kernel", kernel)]
    options = ("--regret", "--case", "m=1|8,n=64,k=64", "--seconds", "0", "--no-ceilings", *kernels)
    command = (BIN / "pumice-rt", "kernel", "bench", *options)
    facts = json.loads(run(*command, "--json").stdout)
    assert facts["regret"]["shapes"] == 2 and facts["regret"]["worst"] >= facts["regret"]["median"] > 0
    assert "regret of the pick over 2 shapes" in run(*command).stdout


@pytest.mark.parametrize("name", ["roof.svg", "roof.png"])
def test_bench_draws(tmp_path, name) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / name
    command = (BIN / "pumice", "kernel", "bench", "--case", "m=1|8,n=64,k=64", "--kernel", "pick", "--seconds", "0.01")
    run(*command, "--plot", picture)
    assert picture.read_bytes().startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")
    run(*command, "--plot", tmp_path / "roof.txt", code=2)
    run(*command, "--plot", picture, "--no-ceilings", code=2)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["test", "--kernel", "gemv9"], "gemv1"),
        (["test", "--op", "linear_q4"], "linear_q4gsw"),
        (["test", "--case", "dtyp=f16"], "dtype"),
        (["test", "--case", "k=30,g=7"], "divide"),
        (["test", "--op", "conv2d", "--case", "c=3,o=4,g=2"], "divide"),
        (["test", "--op", "conv2d", "--case", "m=1"], "unknown key"),
        (["bench", "--features=-coopmt"], "coopmat"),
        (["test", "--storage", "bufer"], "buffer"),
        (["test", "--plant", "valeu"], "value"),
        (["list", "--op", "sofmax"], "softmax"),
        (["test", "--op", "softmax", "--case", "x=T[3,37] dm=1"], "dim"),
        (["test", "--op", "softmax", "--case", "x=T[3,37]"], "dim is missing"),
        (["test", "--op", "softmax", "--case", "x=T[3,37]{1,x} dim=1"], "numbers in turn are"),
    ],
)
def test_misspelt_names_get_the_nearest(tool, arguments, hint) -> None:
    assert hint in run(*tool, *arguments, code=3).stderr


def test_help_teaches(tool) -> None:
    text = run(*tool, "--help").stdout
    assert "pumice" in text and "--case" in text and all(word in text for word in ("list", "test", "bench"))
    for command in ("list", "test", "bench"):
        assert "--op" in run(*tool, command, "--help").stdout
    assert "zero" in run(*tool, "test", "--help").stdout and "barrier" in run(*tool, "bench", "--help").stdout
    run(*tool, code=2)
