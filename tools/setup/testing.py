# SPDX-License-Identifier: Apache-2.0
"""`./dev test`, `fuzz`, `bench` and `lint`: run things, count what passed."""

from __future__ import annotations

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from setup import oldest, suite, variants
from setup.building import SANITIZED, build
from setup.paths import BUILD, JUNIT, LOGS, PREFIX, PYTHON, ROOT, VENV, environment, launcher
from setup.progress import StepFailed, show, side_by_side
from setup.report import Report

# fuzz_execute runs as each of these devices, by PUMICE_FEATURES: kernels for GPUs run on the CPU driver, too.
FUZZ_FEATURES = ("", "like_gpu,-coopmat", "none", "storage=textures", "max_storage=4096,max_groups=64")
CHECKED = {
    "PUMICE_SHADER_LOG": str(variants.LOG),
    "PUMICE_CHECK_HAZARDS": "1",  # the graph's own, independent look at every recorded barrier
    "PUMICE_VALIDATE": "1",  # Vulkan's validation layer, core and synchronization checks; a message fails the test
}
# A machine that others use may stall: of a limit of seconds, and of nothing else, one of three tries must hold.
RETRIED = ["--reruns", "2", "--only-rerun", "TooLate"]
RACE = "vulkan_test"  # the C++ tests that Python tests run, too: they begin with a planted race
WITH_THREADS = ["runtime_test", "vulkan_test"]  # the programs whose tests of threads ThreadSanitizer looks at
CASE_TABLES = "case_tables_test"  # too slow with sanitizers
STRICT = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allow_addr2line=1",
    # clang 14's leak check now and then crashes where it reads thread-local storage that a driver's threads have given
    # up ("Tracer caught signal 11", github.com/google/sanitizers/issues/1342 and 1353). use_tls=0: it does not read it,
    # so that memory which only a thread_local pointer holds counts as lost; lsan.supp has the one such place.
    "LSAN_OPTIONS": f"use_tls=0:suppressions={Path(__file__).with_name('lsan.supp')}:print_suppressions=0",
    # Drivers are not instrumented: what they do under locks of their own looks like a race.
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:second_deadlock_stack=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:allow_addr2line=1",
}

# CPU drivers other than the default one: the manifest in their folder of the prefix, and what the device is called.
DRIVERS = {"mesa25": ("lvp_icd.json", "llvmpipe"), "swiftshader": ("vk_swiftshader_icd.json", "SwiftShader")}
# Their kernels, one of a kind, as Mesa 25 compiles each for up to half a minute.
FEW = [
    w for kernel in ("gemv4x2", "tile32x64", "gemvr4", "dot2", "dotw4", "dot_tile32x64") for w in ("--kernel", kernel)
]
CASE = ["--case", "m=1|33,n=37,k=96,g=32,bias=1,zero=random", *FEW]
KERNELS = {"linear_q4gsw": CASE, "linear_q8csw": CASE, "linear_dq8ca_q4gsw": CASE, "q8ta_linear": CASE, "quantize": []}
PORTABLE = ["test/ops/test_features.py", "test/ops/test_embedding.py"]


@dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    report: Report = field(default_factory=Report)

    def add_junit(self, path: Path, status: int) -> None:
        """Count a JUnit file's test cases; a run that ended badly without saying why counts as one failure."""
        failed_before = self.failed
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            cases = []
        for case in cases:
            name = f"{path.stem}: {case.get('classname', '')}::{case.get('name', '')}"
            self.report.tests.append((float(case.get("time", 0)), name))
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
            elif skipped is not None and "Unable to find" in skipped.get("message", ""):
                self.failed += 1  # ctest's word for a test program that was not built
            elif skipped is not None or case.get("status") == "disabled":
                self.skipped += 1
            else:
                self.passed += 1
        if status and self.failed == failed_before:
            self.failed += 1

    def add(self, good: bool) -> None:
        self.passed += good
        self.failed += not good

    def add_rows(self, rows: list[dict]) -> None:
        """Of `kernel test`."""
        for row in rows:
            self.passed += row["status"] == "ok"
            self.skipped += row["status"] == "skipped"
            self.failed += row["status"] == "failed"
            if row["status"] == "failed":
                print(f"{row['title']}: {row['why']}\n  again: {row['repro']}", flush=True)

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def cpp_tests(preset: str, totals: Totals, only: str = "", targets: Sequence[str] = (), **more: str) -> None:
    print(f"== C++ tests, {preset}", flush=True)
    if "san" in preset and launcher():
        print("left out: a driver with its own C library does not go with sanitizers", flush=True)
        return
    with totals.report.phase(f"build, {preset}"):
        folder, report = build(preset, targets or ["cpp_tests"]), JUNIT / f"ctest-{preset}.xml"
    totals.report.add_build(preset, folder)
    JUNIT.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    jobs = str(len(os.sched_getaffinity(0)))
    command = [VENV / "bin/ctest", "--test-dir", folder, "--output-on-failure", "--output-junit", report]
    command += ["-j", jobs, "--timeout", "600", "--no-tests=error", "--progress"]
    if only:
        command += ["-R", only]
    more |= STRICT if "san" in preset else {}
    with totals.report.phase(f"C++ tests, {preset}"):
        status = show(command, check=False, cwd=ROOT, env=environment(**CHECKED, **more))
    totals.add_junit(report, status)


def python_tests(totals: Totals, arguments: list[str], few: bool = False, **more: str) -> None:
    if arguments:
        _pytest("Python tests", totals, arguments, **more)
        return
    # Everything: a process a core, one thread each; then those that look at the clock, by themselves.
    many = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal", "-m", "not large and not timed"]
    many += ["--few"] if few else []
    # All: samples of test/ops/test_operator_database.py, and shaders as Mesa's CPU driver optimizes them, which takes
    # an eighth of the tests' processor time.
    whole = {"GALLIVM_PERF": "nopt"} if few else {"PUMICE_SAMPLES": "all"}
    _pytest("Python tests", totals, many, **more, **whole, OMP_NUM_THREADS="1")
    timed = [str(path) for path in sorted((ROOT / "test").rglob("test_*.py")) if "mark.timed" in path.read_text()]
    _pytest("Python tests of times", totals, [*timed, "-m", "timed", *RETRIED], **more)


def _pytest(title: str, totals: Totals, arguments: list[str], **more: str) -> None:
    print(f"== {title}", flush=True)
    report = JUNIT / f"{title.lower().replace(' ', '-')}.xml"
    JUNIT.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [*launcher(), PYTHON, "-m", "pytest", f"--junitxml={report}", *arguments]
    with totals.report.phase(title):
        status = show(command, check=False, cwd=ROOT, env=environment(**CHECKED, **more))
    totals.add_junit(report, status)


def variants_ran(totals: Totals, log: Path = variants.LOG) -> None:
    """Small cases run what no test ran. A shader variant that the device can run and none of them runs is a failure."""
    print("== shader variants", flush=True)
    with totals.report.phase("shader variants"):
        names, rows = variants.left(log, partial(variants.kernel, **(CHECKED | {"PUMICE_SHADER_LOG": str(log)})))
    totals.add(not names)
    totals.add_rows(rows)


def driver_tests(name: str, totals: Totals) -> None:
    """Every kernel that runs there, quantize, embeddings, and each feature off in turn, on another CPU driver."""
    manifest, device = DRIVERS[name]
    more = {"VK_DRIVER_FILES": str(PREFIX / name / manifest), "PUMICE_DEVICE": device}
    tool = build() / "bin/pumice-rt"
    print(f"== {name}: kernels", flush=True)
    for op, case in KERNELS.items():
        command = [*launcher(), tool, "kernel", "test", "--op", op, *case, "--json"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(**CHECKED, **more), stdout=subprocess.PIPE, check=False
        )
        failed_before = totals.failed
        totals.add_rows(json.loads(done.stdout)["rows"] if done.stdout else [])
        if done.returncode and totals.failed == failed_before:
            totals.failed += 1
        print(f"{op}: {totals.line()} so far", flush=True)
    python_tests(totals, PORTABLE, **more)


def browser_tests(totals: Totals, pictures: Path = BUILD / "pictures") -> None:
    """Reports, traces, graphs and the site in a headless browser; what it shows goes into `pictures`."""
    pictures.mkdir(parents=True, exist_ok=True)
    more = {"PUMICE_BROWSER": str(PREFIX / "browser/wrap/chromium"), "PUMICE_PICTURES": str(pictures)}
    _pytest("Tests in a browser", totals, ["test/browser"], **more, PYTHONPATH=str(suite.browser()))


def oldest_tests(totals: Totals, few: bool = False) -> None:
    """A short set with the oldest torch and torchao; everything else runs with the newest."""
    print("== Python tests with the oldest torch", flush=True)
    with totals.report.phase("Python tests with the oldest torch"):
        oldest.REPORT.unlink(missing_ok=True)
        status = oldest.run_tests([], few)
    totals.add_junit(oldest.REPORT, status)


def executorch_suite(arguments: list[str]) -> int:
    """The backend tests in ExecuTorch's wheel: a line for each test, then tables; 1 if one is wrong, failed or lost."""
    command = [*launcher(), PYTHON, "-W", "ignore", "-m", "support.executorch_suite", *arguments]
    path = os.pathsep.join(map(str, filter(None, [ROOT / "python", ROOT / "test", suite.install()])))
    return show(command, check=False, cwd=BUILD, env=environment(PYTHONPATH=path))


def large_models(arguments: list[str]) -> int:
    """What `./dev test` leaves out for its time; -s, because each test says how far off it was."""
    folders = ["test/models", "test/negative", "test/llm"]
    command = [*launcher(), PYTHON, "-m", "pytest", "-s", "-m", "large", "--durations=0", *folders, *arguments]
    return show(command, check=False, cwd=ROOT, env=environment())


def gpu_faults(small: bool) -> int:
    """Faults of a real GPU: a line for each part. The program needs no other file, and may be copied."""
    program = build(targets=["faults_gpu"]) / "bin/faults_gpu"
    return show([*launcher(), program, *(["--small"] if small else [])], check=False, cwd=ROOT, env=environment())


def long_forms(totals: Totals, arguments: list[str]) -> None:
    """What `./dev test` repeats a few times, as often as it should hold; without arguments the C++ part as well."""
    more = {"PUMICE_LONG": "1"}
    if not arguments:
        cpp_tests("release", totals, "Faults", **more)
    python_tests(totals, ["test/reliability", "-s", "--durations=0", "--timeout=3600", *arguments], **more)


def programs(folder: Path, pattern: str) -> list[Path]:
    """Executable files of a build folder, by name."""
    found = (p for p in folder.rglob(pattern) if p.is_file() and os.access(p, os.X_OK) and "CMakeFiles" not in p.parts)
    return sorted(p for p in found if p.suffix == "")


def fuzz(totals: Totals, seconds: int, only: str = "", shared: bool = False) -> None:
    """Run every fuzz target (fuzz_*), as each of its devices, for its share of the time, from the seeds in
    test/fuzz/corpus/NAME; one a core at the same time, as each has one thread. With `shared` each device reads its
    share of the seeds in place of all: reading takes four times as long as the minute after it."""
    with totals.report.phase("build, fuzz targets"):
        folder = build(SANITIZED, ["fuzz"])
    targets = [p for p in programs(folder, "fuzz_*") if only in p.name]
    if not targets:
        raise StepFailed(f"no fuzz target has {only!r} in its name" if only else "no fuzz target was built")
    share = max(1, seconds // len(targets))
    jobs = [(target, max(1, share // len(devices(target))), each) for target in targets for each in devices(target)]
    jobs.sort(key=lambda job: len(seeds(job[0], job[2], shared)))  # from the end: first those that read the most
    good: list[bool] = []

    def work() -> None:
        while jobs:
            target, seconds, features = jobs.pop()
            corpus = BUILD / "fuzz-corpus" / target.name
            good.append(fuzz_target(target, seconds, corpus, features, seeds(target, features, shared)))

    with totals.report.phase("fuzzing"):
        side_by_side(*[work] * len(os.sched_getaffinity(0)))
    for each in good:
        totals.add(each)


def devices(target: Path) -> tuple[str, ...]:
    """What PUMICE_FEATURES is in turn."""
    return FUZZ_FEATURES if target.name == "fuzz_execute" else FUZZ_FEATURES[:1]


def seeds(target: Path, features: str = "", shared: bool = False) -> list[Path]:
    """All seeds of a target, or the share of one of its devices."""
    paths = sorted((ROOT / "test/fuzz/corpus" / target.name.removeprefix("fuzz_")).glob("*"))
    named = devices(target)
    return paths[named.index(features) :: len(named)] if shared else paths


def fuzz_target(target: Path, seconds: int, corpus: Path, features: str, given: Sequence[Path], **more: str) -> bool:
    """Run one fuzz target as one device from the seeds `given` and from `corpus`, into which it puts what reaches
    something new. What it says goes to build/logs; a failure is shown whole."""
    found, number = BUILD / "fuzz-found" / target.name, FUZZ_FEATURES.index(features)
    for path in (found, corpus, LOGS):
        path.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{target.name}{f'-{number}' if number else ''}.log"
    names = log.with_suffix(".seeds")  # libFuzzer's list: too long for a command line
    names.write_text(",".join(map(str, given)))
    command = [*launcher(), target, f"-max_total_time={seconds}", "-timeout=60", "-rss_limit_mb=4096"]
    command += ["-print_final_stats=1", f"-artifact_prefix={found}/", corpus]
    command += [f"-seed_inputs=@{names}"] if given else []
    with log.open("w") as file:
        status = show(
            command,
            check=False,
            cwd=BUILD,
            env=environment(PUMICE_FEATURES=features, PUMICE_CHECK_HAZARDS="1", **STRICT, **more),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    said = log.read_text(errors="replace").splitlines()
    runs = next((line.split()[-1] for line in said if "number_of_executed_units" in line), "no")
    device = f", PUMICE_FEATURES={features}" if features else ""
    print(f"== {target.name}{device}: {runs} runs in {seconds} s", flush=True)
    if status:
        where = found.relative_to(ROOT)
        print(*said, f"{target.name} failed; its input is in {where}/", sep="\n", flush=True)
    return status == 0


def bench(arguments: list[str]) -> int:
    """Time every operator's kernels, or what the arguments of `pumice-rt kernel bench` say."""
    command = [*launcher(), build() / "bin/pumice-rt", "kernel", "bench", *arguments]
    return show(command, check=False, cwd=ROOT, env=environment())


# -- style -------------------------------------------------------------------------------------------------------------


def _sources(*patterns: str) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StepFailed(f"git cannot list the sources: {done.stderr.strip()}")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def _without_licence() -> list[str]:
    """Source files whose first lines do not name their licence."""
    patterns = [f"*.{end}" for end in ("py", "cpp", "hpp", "h", "c", "glsl", "glslh", "fbs", "cmake")]
    patterns += ["*CMakeLists.txt", "dev"]
    names = []
    for name in _sources(*patterns):
        with (ROOT / name).open(errors="replace") as file:
            if "SPDX-License-Identifier: Apache-2.0" not in file.read(300):
                names.append(name)
    return names


def style(change: bool) -> int:
    """Check the form of Python and C++ sources and the imports of the package, or with `change` format them."""
    ruff, clang_format = VENV / "bin/ruff", VENV / "bin/clang-format"
    python, cpp = _sources("*.py", "dev"), _sources("*.cpp", "*.hpp", "*.h", "*.c")
    checks = [
        ([ruff, "check", "--fix"] if change else [ruff, "check"], python),
        ([ruff, "format"] if change else [ruff, "format", "--check"], python),
        ([clang_format, "-i"] if change else [clang_format, "--dry-run", "-Werror"], cpp),
    ]
    status = 0
    for command, files in checks:
        if files:
            status |= show([*command, *files], check=False, cwd=ROOT, env=environment())
    if not change:  # the contracts of pyproject.toml
        command = [VENV / "bin/lint-imports", "--no-cache"]
        status |= show(command, check=False, cwd=ROOT, env=environment(PYTHONPATH=str(ROOT / "python")))
    for name in _without_licence():
        print(f"{name}: no 'SPDX-License-Identifier: Apache-2.0' in its first lines")
        status = 1
    names = "\n".join(_sources("*"))
    done = subprocess.run([PYTHON, ROOT / "tools/setup/sizes.py", ROOT], input=names, text=True, cwd=ROOT, check=False)
    return status | done.returncode
