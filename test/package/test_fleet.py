# SPDX-License-Identifier: Apache-2.0
"""`./dev fleet`: the page that it writes, and the line of a pipeline that it reads."""

from __future__ import annotations

import json
import sys
import threading
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


def pipeline(fleet, shader: str, ms: float, models: tuple[str, ...] = (), **statistics: float):
    line = {"shader": shader, "spec": [64], "subgroup_size": 0, "ms": ms, "statistics": statistics}
    made = fleet.pipeline(line)
    made.models.extend(models)
    return made


@pytest.fixture
def results(fleet) -> list:
    """An AMD GPU of which one model's pipeline spills, and an Adreno that lacks matrices and whose compiler died."""
    amd = fleet.Result("navi31", "RADV", "abc", 3)
    counts = {"Instructions": 2200.0, "VGPRs": 96.0, "Subgroups per SIMD": 8.0, "Spilled VGPRs": 7.0}
    amd.add([pipeline(fleet, "softmax[f16]", 5), pipeline(fleet, "conv2d[f32]", 1500, ("resnet",), **counts)])
    amd.add([pipeline(fleet, "conv2d[f32]", 1400, ("bert",), **counts)])
    adreno = fleet.Result("adreno740", "Turnip", "abc", 3)
    adreno.gated, adreno.failed = {"matmul[f16]": ["coopmat", "int8"]}, {"gelu": "status -11: dead"}
    adreno.add([pipeline(fleet, "conv2d[f16]", 20, **{"Instruction Count": 30.0, "STP Count": 4.0, "LDP Count": 5.0})])
    return [amd, adreno]


@pytest.fixture
def summaries(results, tmp_path: Path) -> list:
    """As they are read again."""
    from setup import fleet_summary

    for result in results:
        fleet_summary.Summary.of(result).write(tmp_path)
    return fleet_summary.kept(tmp_path)


def test_the_page_says_what_is_lacking_what_spills_what_is_slow_and_what_failed(summaries) -> None:
    from setup import fleet_page

    lines = fleet_page.page(summaries).splitlines()
    assert "| navi31: AMD RDNA 3 | RADV | 3 | 0 | 0 | 2 | 1 | 1 | 1.50 s conv2d[f32] | 2 s | abc |" in lines
    assert (
        "| adreno740: Qualcomm Adreno 740 | Turnip | 2 | 1 | 1 | 1 | 1 | 0 | 0.02 s conv2d[f16] | 0 s | abc |" in lines
    )
    assert "| adreno740 | gelu | status -11: dead |" in lines
    assert "| coopmat, int8 |  | 1 | matmul |" in lines
    assert "| navi31 | 1 | 1 | 1 | 1.50 s conv2d[f32] |" in lines and "| adreno740 | 0 | 0 | 0 | - |" in lines
    assert [line for line in lines if line.startswith("| conv2d |")] == [
        "| conv2d | 1 (7) |  |",  # of models, which only the first GPU has
        "| conv2d | 1.5 |  |",
        "| conv2d | 2200 | 30 |",
        "| conv2d | 96 |  |",
        "| conv2d | 8 |  |",
        "| conv2d | 1500 | 20 |",
        "| conv2d | 1 (7) | 1 (9) |",
    ]
    assert not any(line.startswith("| softmax |") for line in lines), "nothing of note, and yet a row"


def test_what_is_slower_than_it_should_be_is_a_line_a_gpu(fleet) -> None:
    from setup import fleet_page, fleet_slow, fleet_summary

    ampere = fleet.Result("ampere", "NVK", "abc", 3)
    ampere.gated = {"sdpa[f16]": ["coopmat", "float16"], "dot[f16]": ["int_dot"]}
    most, few = {"Max Warps/SM": 48.0}, {"Max Warps/SM": 6.0, "Spills to memory": 3.0, "Fills from memory": 2.0}
    ampere.add([pipeline(fleet, "copy[f32]", 5, **most), pipeline(fleet, "conv2d[f32]", 700, ("resnet",), **few)])
    ampere.add([pipeline(fleet, "linear[f32]", 9000, **few)])  # of no model
    said = fleet_slow.slower(fleet_summary.Summary.of(ampere))
    assert said == (
        "1 spill: conv2d (5). few waves, where others have 48: conv2d 6. long to compile: conv2d 0.7 s. "
        "matrix units that the driver does not offer; no packed dot products"
    )
    ampere.gated = {"gemv[f16]": ["fragments"]}
    assert fleet_slow.slower(fleet_summary.Summary.of(ampere)).endswith(
        ". no kernels that know where elements of matrices lie"
    )
    fine = fleet.Result("m1", "Honeykrisp", "abc", 3)
    fine.add([pipeline(fleet, "conv2d[f32]", 7, ("resnet",))])
    assert "| m1 | Nothing |" in fleet_page.page([fleet_summary.Summary.of(fine)])


def test_a_run_for_one_gpu_keeps_what_the_page_says_of_others(fleet, summaries, tmp_path: Path) -> None:
    from setup import fleet_page, fleet_summary

    amd = fleet.Result("navi31", "RADV", "def", 3)
    amd.add([pipeline(fleet, "conv2d[f32]", 1500, Instructions=2100.0)])
    fleet_summary.Summary.of(amd).write(tmp_path)
    before, after = (fleet_page.page(each).splitlines() for each in (summaries, fleet_summary.kept(tmp_path)))
    assert "| conv2d | 2100 | 30 |" in after and "| conv2d | 2200 | 30 |" in before
    rows = [[line for line in lines if line.startswith("| adreno740")] for lines in (before, after)]
    assert rows[0] == rows[1] and len(rows[0]) == 5
    commits = [line.split(" | ")[-1] for line in after if line.startswith(("| navi31:", "| adreno740:"))]
    assert commits == ["def |", "abc |"]


def test_a_family_is_the_worst_of_its_pipelines(fleet) -> None:
    from setup import fleet_summary

    counts = ("Instructions", "VGPRs", "Subgroups per SIMD", "Spills")
    first = pipeline(fleet, "conv2d[f32]", 9, **dict(zip(counts, (50.0, 96.0, 8.0, 0.0), strict=True)))
    second = pipeline(fleet, "conv2d[f16]", 7, **dict(zip(counts, (60.0, 24.0, 16.0, 3.0), strict=True)))
    assert fleet_summary.Family.of([first, second]) == (60, 96, 8, 9, 1, 3)


@pytest.mark.usefixtures("fleet")
def test_the_page_is_that_of_the_summaries() -> None:
    """Of those in test/fleet, as they are in the repository: nothing fails there or is slow to compile, nothing that
    models make or that is picked for operators spills."""
    from setup import fleet_page, fleet_summary

    kept = fleet_summary.kept()
    assert {each.gpu for each in kept} >= {"navi31", "adreno740", "tgl", "m1", "ampere", "g610"}, "one a vendor"
    assert fleet_page.PAGE.read_text() == fleet_page.page(kept), "./dev fleet writes both"
    assert [(each.gpu, what) for each in kept for what in each.failed] == []
    assert [(each.gpu, each.all.slow, each.all.slowest) for each in kept if each.all.slow] == []
    assert [(each.gpu, each.models.spilling) for each in kept if each.models.spilling] == []
    assert [(each.gpu, each.picked.spilling, each.of_picked) for each in kept if each.picked.spilling] == []


def test_what_is_picked_for_operators_is_counted(fleet, results, tmp_path: Path, monkeypatch) -> None:
    """The tool says which pipelines the picks of a step make; their statistics are in the log."""
    from setup import fleet_page, fleet_summary

    tool, made = tmp_path / "tool", {"shader": "conv2d[f32]", "spec": [64], "subgroup_size": 0}
    lines = [made | {"ms": 3, "statistics": {"Spilled VGPRs": 2.0}}, made | {"spec": [32], "ms": 4}]
    rows = [{"kernel": kernel, "status": "ok", "made": [made]} for kernel in ("pick", "gemv4")]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    tool.write_text(
        f"#!{sys.executable}\nimport json, os\n"
        f"open(os.environ['PUMICE_PIPELINE_LOG'], 'a').write({text!r})\n"
        f"print({json.dumps({'rows': rows})!r})\n"
    )
    tool.chmod(0o755)
    monkeypatch.setattr(fleet, "FOLDER", tmp_path)
    monkeypatch.setattr(fleet, "variables", lambda gpu: {})
    compiler = fleet.Compiler(fleet.chosen(["m1"])[0], tool)
    failed, found = compiler.found(lambda: compiler.operator("conv2d"))
    assert not failed and [(each["spec"], each["picked"]) for each in found] == [([64], True), ([32], False)]
    assert [each["picked"] for each in compiler.found(dict)[1]] == [], "of another step"
    result = fleet.Result("m1", "Honeykrisp", "abc", 3)
    for more in ([], found):  # also where a model made it first
        result.add([fleet.Pipeline(**made, ms=1)] + [fleet.Pipeline(**each) for each in more])
    summary = fleet_summary.Summary.of(result)
    assert (summary.picked.pipelines, summary.all.pipelines) == (1, 2)
    page = fleet_page.page([summary])
    picked = page[page.index("## What is picked for operators") : page.index("## What is still slower")]
    assert "| m1 | 1 | 0 | 0 | 0.00 s conv2d[f32] |" in picked


def test_a_pipeline_of_several_models_counts_once(results) -> None:
    assert [(each.shader, each.ms, each.models) for each in results[0].pipelines] == [
        ("softmax[f16]", 5, []),
        ("conv2d[f32]", 1500, ["bert", "resnet"]),
    ]


@pytest.fixture
def known(fleet, results, tmp_path: Path):
    """What a run of both GPUs has left, read again."""
    from setup import fleet_known

    spirv = {"softmax[f16]": "11", "conv2d[f32]": "22", "conv2d[f16]": "33", "matmul[f16]": "44"}
    for result in results:
        result.spirv = spirv
    fleet_known.Known.of(results, spirv).write(tmp_path / "known.txt")
    return fleet_known.Known.read(tmp_path / "known.txt")


def test_only_what_changed_is_compiled_again(known, monkeypatch) -> None:
    from setup import fleet_known

    assert known.stale(dict(known.spirv)) == []
    assert known.stale(known.spirv | {"conv2d[f32]": "23", "new[f32]": "55"}) == ["conv2d[f32]", "new[f32]"]
    found = known.pipelines("navi31", ["conv2d[f32]", "new[f32]"], set())
    assert [(each.shader, each.spec) for each in found] == [("conv2d[f32]", [64]), ("new[f32]", [])]
    monkeypatch.setattr(fleet_known, "drivers", lambda: "other")
    assert known.stale(dict(known.spirv)) == list(known.spirv)


def test_a_variant_that_is_gone_is_forgotten(known, tmp_path: Path) -> None:
    now = dict(known.spirv)
    assert not known.take(dict(now)), "nothing to write"
    assert not known.take(now | {"softmax[f16]": "66"}), "it must be compiled first"
    known.spirv, gone = dict(now), "conv2d[f32]"
    del now[gone]
    assert known.take(now) and known.spirv == now and gone not in known.letters
    known.write(tmp_path / "fewer.txt")
    assert gone not in (tmp_path / "fewer.txt").read_text()


def test_matrices_that_nothing_makes_get_the_constants_of_another_variant(fleet, known) -> None:
    """The shader's own may be of a matrix that the device does not have."""
    variants = ["conv2d[u8]", "conv2d[i8]", "tri[b8]"]
    found = known.pipelines("navi31", variants, {"conv2d[u8]", "tri[b8]"})
    assert [(each.shader, each.spec) for each in found] == [("conv2d[u8]", [64]), ("conv2d[i8]", []), ("tri[b8]", [])]
    made = [fleet.Pipeline("conv2d[f32]", spec, 0, 0) for spec in ([], [64, 16], [32, 8])]
    assert [each.spec for each in fleet.unmade(["conv2d[u8]"], made, {"conv2d[u8]"})] == [[64, 16]]
    shaders = [{"variants": [{"variant": "a[f16]", "needs": ["coopmat"]}, {"variant": "a[f32]", "needs": []}]}]
    assert fleet.matrices({"shaders": shaders}) == {"a[f16]"}


def test_what_becomes_worse_is_named_once(fleet, known) -> None:
    spilling, fine = pipeline(fleet, "conv2d[f32]", 9, Spills=3.0), pipeline(fleet, "softmax[f16]", 9)
    assert known.put("navi31", [spilling, fine], set()) == [], "it spilled before"
    dead = pipeline(fleet, "softmax[f16]", 0)
    assert known.put("navi31", [dead], {dead.name}) == ["navi31: softmax[f16] [64] does not compile; 0 ms, 0 spills"]
    assert known.put("navi31", [dead], {dead.name}) == []
    slow = pipeline(fleet, "conv2d[f16]", 2500)
    assert "takes more than 2000 ms" in known.put("navi31", [slow], set())[0]


def test_gpus_are_compiled_for_on_all_cores(fleet, monkeypatch) -> None:
    from setup import fleet_known, progress

    monkeypatch.setattr(fleet_known.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(progress, "_stopping", threading.Event())  # which a failure sets for the rest of the process
    together, begun = threading.Barrier(2, timeout=60), []

    def compile_for(gpu) -> str:
        begun.append(gpu.name)
        together.wait()  # for another GPU
        return gpu.title

    gpus = fleet.chosen(["navi31", "m1", "tgl", "ampere"])
    assert fleet_known.at_once(gpus, compile_for) == {gpu.name: gpu.title for gpu in gpus}
    assert begun[0] == "ampere", "the one that takes longest"

    def fails(gpu) -> None:
        raise IndexError(gpu.name)

    with pytest.raises(IndexError):
        fleet_known.at_once(gpus[:1], fails)


def test_of_slow_pipelines_the_shorter_time_counts(fleet, tmp_path: Path) -> None:
    class Compiler:
        log = tmp_path / "again.jsonl"

        def listed(self, wanted: list, failed: dict) -> None:
            assert [each.shader for each in wanted] == ["conv2d[f32]", "scan[f32]"]
            times = zip(wanted, (900, 1700), strict=True)
            rows = [{"shader": each.shader, "spec": each.spec, "subgroup_size": 0, "ms": ms} for each, ms in times]
            self.log.write_text("".join(json.dumps(row) + "\n" for row in rows))

        def made(self) -> list:
            return fleet.read_log(self.log)

    result = fleet.Result("m1", "Honeykrisp", "abc", 3)
    result.add([pipeline(fleet, name, ms) for name, ms in (("conv2d[f32]", 1100), ("scan[f32]", 1600), ("tri[b8]", 9))])
    fleet.again(Compiler(), result)
    assert [each.ms for each in result.pipelines] == [900, 1600, 9]


def test_a_pipeline_that_takes_too_long_is_named_and_the_others_are_made(fleet, tmp_path: Path, monkeypatch) -> None:
    """A tool that never gets done with every second pipeline, and does not die of its parent's death either."""
    tool = tmp_path / "tool"
    tool.write_text(
        f"#!{sys.executable}\nimport json, os, sys, time\n"
        "wanted = [json.loads(line) for line in open(sys.argv[sys.argv.index('--pipelines') + 1])]\n"
        "log = open(os.environ['PUMICE_PIPELINE_LOG'], 'a', buffering=1)\n"
        "for each in wanted:\n"
        "    print(json.dumps(each), file=log)\n"
        "    time.sleep(1000 * (each['shader'] in 'bd'))\n"
        "    print(json.dumps(each | {'ms': 50}), file=log)\n"
        "print('{\"rows\": []}')\n"
    )
    tool.chmod(0o755)
    monkeypatch.setattr(fleet, "FOLDER", tmp_path)
    monkeypatch.setattr(fleet, "PIPELINE_SECONDS", 2)
    monkeypatch.setattr(fleet, "variables", lambda gpu: {})
    compiler, failed = fleet.Compiler(fleet.chosen(["m1"])[0], tool), {}
    compiler.listed([fleet.Pipeline(name, [8], 0, 0) for name in "abcde"], failed)
    assert failed == {f"{name} [8]": f"{name} [8]: not finished in 2 s" for name in "bd"}
    assert [each.shader for each in compiler.made()] == ["a", "c", "e"]


def test_an_emulated_compilers_times_are_not_those_of_the_emulator(fleet, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(fleet, "FOLDER", tmp_path)
    monkeypatch.setattr(fleet, "variables", lambda gpu: {})
    for name, ms in (("m1", 1000), ("g610", 1000 / fleet.EMULATION)):
        compiler = fleet.Compiler(fleet.chosen([name])[0], Path("tool"))
        compiler.log.write_text('{"shader": "a", "spec": [], "subgroup_size": 0, "ms": 1000}\n')
        assert [each.ms for each in compiler.made()] == [ms]


def test_only_what_a_gpu_needs_is_installed(fleet) -> None:
    from setup import fleet_gpus

    of = {name: fleet_gpus.sets(fleet.chosen([name])) for name in ("m1", "g610")}
    assert of == {"m1": ["gpus", "intel-shim"], "g610": ["cross", "drv-arm64"]}
    assert fleet_gpus.sets(fleet.chosen([])) == of["m1"] + of["g610"]


def test_a_result_of_older_spirv_is_not_known(fleet, results) -> None:
    from setup import fleet_known

    results[0].spirv, results[1].spirv = {"a": "1", "b": "2"}, {"a": "1", "b": "old"}
    assert fleet_known.Known.of(results, {"a": "1", "b": "2"}).spirv == {"a": "1"}


def test_the_build_says_the_spirv_of_every_variant(fleet) -> None:
    from setup import building, fleet_known, paths

    listed = json.loads(run(BIN / "pumice-rt", "kernel", "list", "--json").stdout)["shaders"]
    names = {row["variant"] for shader in listed for row in shader["variants"]}
    assert set(fleet_known.digests(paths.BUILD / building.IN_PLACE / "generated/glsl")) == names


def done_lines(log: Path) -> list[dict]:
    """Of the pipelines that are done. Each of them was begun before, and said so."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    done = [line for line in lines if "ms" in line]
    begun = [line for line in lines if "ms" not in line]
    assert begun == [{key: line[key] for key in ("shader", "spec", "subgroup_size")} for line in done]
    return done


def test_the_pipelines_of_a_file_are_made(tmp_path: Path) -> None:
    """Also with the constants of the shader itself; what the device cannot run is left out."""
    listed, log = tmp_path / "listed.jsonl", tmp_path / "log.jsonl"
    rows = [
        {"shader": "softmax[f32]", "spec": [32, 1], "subgroup_size": 0},
        {"shader": "tri[b32]", "spec": [], "subgroup_size": 0},
        {"shader": "no_such[f32]", "spec": [], "subgroup_size": 0},
    ]
    listed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(BIN / "pumice-rt", "kernel", "compile", "--pipelines", listed, "--json", PUMICE_PIPELINE_LOG=str(log))
    assert [row["status"] for row in json.loads(done.stdout)["rows"]] == ["ok", "ok", "skipped"]
    made = done_lines(log)
    assert [(line["shader"], line["spec"]) for line in made] == [(row["shader"], row["spec"]) for row in rows[:2]]


def test_a_name_that_is_not_there(fleet) -> None:
    from setup.progress import StepFailed

    with pytest.raises(StepFailed, match="no GPU voodoo2; there are polaris10"):
        fleet.run(["voodoo2"], [])


@pytest.mark.parametrize("line", ["{", "[]", '{"shader": 3}', '{"shader": "softmax[f32]", "spec": "x"}'])
def test_what_is_no_pipeline_is_said(tmp_path: Path, line: str) -> None:
    listed = tmp_path / "pipelines.jsonl"
    listed.write_text(line + "\n")
    words = ("kernel", "compile", "--device", "llvmpipe", "--pipelines")
    said = run(BIN / "pumice-rt", *words, listed, code=3).stderr
    assert "InvalidArgument" in said and str(listed) in said and "subgroup_size" in said
    assert "none.jsonl cannot be read" in run(BIN / "pumice-rt", *words, tmp_path / "none.jsonl", code=3).stderr


def test_pipelines_are_logged_and_not_run(tmp_path: Path) -> None:
    """On the driver of the tests: a line for each pipeline of the kernels that were asked for."""
    log = tmp_path / "pipelines.jsonl"
    done = run(BIN / "pumice-rt", "kernel", "compile", "--op", "softmax", "--json", PUMICE_PIPELINE_LOG=str(log))
    rows = json.loads(done.stdout)["rows"]
    assert rows and all(row["status"] == "ok" for row in rows)
    lines = done_lines(log)
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
