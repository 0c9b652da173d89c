# SPDX-License-Identifier: Apache-2.0
"""What a host may have set for its process: limits, locale, time zone, floating point, small stacks (ids E05, E07,
E08). Each case runs in a process of its own; support/hosts.py has what runs there."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import ROOT
from support.long_form import times

# Threads of this library fail to start; the driver and Python make theirs by other functions.
NO_THREADS = """
#include <cerrno>
#include <dlfcn.h>
#include <pthread.h>
#include <cstring>
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*start)(void*), void* arg) {
  Dl_info caller{};
  if (dladdr(__builtin_return_address(0), &caller) != 0 && std::strstr(caller.dli_fname, "libstdc++") != nullptr) {
    static const char kSaid[] = "a thread was refused\\n";
    (void)!write(2, kSaid, sizeof kSaid - 1);
    return EAGAIN;
  }
  return reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"))(thread, attr, start, arg);
}
"""


def host(way: str, *args: object, **more: str) -> dict[str, object]:
    """What `way` of support/hosts.py prints."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "support.hosts", way, *map(str, args)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["test", "python"])} | more,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout) | {"stderr": done.stderr}


def test_without_file_descriptors() -> None:
    """E05"""
    facts = host("files")
    assert facts["check"] == ["IoError", True]
    assert facts["load"][0] in ("IoError", "DeviceUnsupported"), facts
    assert facts["after"] == "right"


@pytest.mark.parametrize("megabytes", [24, 96])
def test_without_memory(megabytes: int, tmp_path: Path) -> None:
    """E05. Files of 24 MiB are read, those of 96 MiB mapped. Only what is large finds no room: the CPU driver does not
    look at what its small allocations return."""
    facts = host("memory", tmp_path / "large.pumice", megabytes)
    assert facts["check"] in (["OutOfHostMemory", True], ["IoError", True]), facts
    assert facts["load"][0] in ("OutOfHostMemory", "OutOfDeviceMemory", "IoError"), facts
    assert facts["before"] == facts["after"] == "right"


def test_without_threads(tmp_path: Path) -> None:
    """E05"""
    shim = tmp_path / "no_threads.so"
    flags = ["-x", "c++", "-", "-Wall", "-D_GNU_SOURCE", "-include", "unistd.h", "-shared", "-fPIC", "-o", str(shim)]
    subprocess.run(["g++", *flags], input=NO_THREADS, text=True, check=True)
    facts = host("threads", LD_PRELOAD=str(shim), PUMICE_VALIDATE="0")  # the layer has threads of its own
    assert facts["answer"] == "right" and facts["damaged"] == "ChecksumMismatch"
    assert "a thread was refused" in facts["stderr"]


@pytest.fixture(scope="module")
def plain() -> dict[str, object]:
    return host("numbers")


def test_another_locale_and_time_zone(plain, tmp_path: Path) -> None:
    """E07: the same bytes exported, the same numbers, and a dot in them."""
    made = tmp_path / "de_DE.UTF-8"
    done = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(made)], capture_output=True)
    if not made.exists():
        pytest.skip(f"no German locale can be made: {done.stderr}")
    german = {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"}
    facts = host("numbers", **german)
    assert facts.pop("half") == "0,5" and facts.pop("stderr") == ""
    assert facts == {key: value for key, value in plain.items() if key in facts}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets MXCSR, which x86-64 has")
@pytest.mark.parametrize("way", ["up", "down", "to zero", "denormals are zero", "exceptions"])
def test_the_hosts_floating_point(way: str, plain) -> None:
    """E07: the same bytes written and the same numbers, and the host keeps its settings."""
    facts = host("numbers", way)
    assert facts["kept"] and not plain["stderr"]
    assert [facts[key] for key in ("file", "output")] == [plain[key] for key in ("file", "output")]


def test_a_stack_of_256_kib() -> None:
    """E08: loads and runs in new threads with small stacks, of files as deep and as long as they may be."""
    assert host("stacks", times(30, 1000)) == {"loads": times(30, 1000), "stderr": ""}
