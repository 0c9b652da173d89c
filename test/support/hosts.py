# SPDX-License-Identifier: Apache-2.0
"""Hosts that have set something for their process: python -m support.hosts WAY ...; prints JSON. No torch."""

from __future__ import annotations

import ctypes
import hashlib
import json
import locale
import resource
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pumice
from pumice.format.ir import DType, ValueId
from pumice.format.writer import to_bytes
from support import hostile


def answer(session: pumice.Session, size: int = 8) -> str:
    x = np.ones((1, size), np.float32)
    return "right" if np.array_equal(session.run_flat([x])[0], x) else "wrong"


def refusal(work: Callable[[], object]) -> list[object]:
    """The code of its error, and whether the text names something."""
    try:
        work()
    except pumice.Error as error:
        return [error.code, len(str(error)) > 8]
    return ["none", False]


def files() -> dict[str, object]:
    """No file can be opened any more."""
    path = Path(sys.executable).with_name("python")  # any file: it is not opened
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    data = hostile.relus(2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
    facts = {"check": refusal(lambda: pumice.check(path)), "load": refusal(lambda: pumice.load(data))}
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    return facts | {"after": answer(pumice.load(data))}


def memory(where: str, megabytes: str) -> dict[str, object]:
    """Less address space is left than the file takes."""
    size = int(megabytes) << 18
    Path(where).write_bytes(hostile.linears(1, 1, size))
    small = pumice.load(hostile.relus(2))
    facts: dict[str, object] = {"before": answer(small)}
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), resource.RLIM_INFINITY))
    facts |= {"check": refusal(lambda: pumice.check(where)), "load": refusal(lambda: pumice.load(where))}
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return facts | {"after": answer(small)}


def threads() -> dict[str, object]:
    """24 MiB of weights, which threads would share out; and the same with the last one damaged."""
    n = 1024
    data = hostile.linears(6, n, n)
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    got = pumice.load(data).run_flat([np.ones((1, n), np.float32)])[0]
    return {
        "answer": "right" if np.array_equal(got, np.zeros((1, n), np.float32)) else "wrong",
        "damaged": refusal(lambda: pumice.check(damaged))[0],
    }


# Of glibc on x86-64: fenv_t has 32 bytes, the last 4 are MXCSR.
MODES = {"down": 1 << 13, "up": 2 << 13, "to zero": 3 << 13, "denormals are zero": 0x8040}
TRAPS = 0x680  # invalid operations, divisions by zero and overflow raise signals


def set_floats(way: str) -> Callable[[], bytes]:
    libm = ctypes.CDLL("libm.so.6")
    environment = ctypes.create_string_buffer(64)
    libm.fegetenv(environment)
    (mxcsr,) = struct.unpack_from("<I", environment, 28)
    mxcsr = mxcsr | MODES[way] if way in MODES else mxcsr & ~TRAPS
    struct.pack_into("<I", environment, 28, mxcsr)
    libm.fesetenv(environment)

    def get() -> bytes:
        libm.fegetenv(environment)
        return environment.raw[28:32]

    return get


def numbers(way: str = "") -> dict[str, object]:
    """Constants that are rounded by the engine (of float16), denormal ones, and a model's numbers."""
    locale.setlocale(locale.LC_ALL, "")
    b = hostile.builder()
    x, y = b.input(DType.f32, [1, 64]), b.scratch(DType.f32, [1, 64])
    weight = (np.arange(64 * 64, dtype="<f4").reshape(64, 64) - 1111) / 777
    b.call("linear", [ValueId(x), ValueId(b.constant("w", DType.f32, [64, 64], weight.tobytes())), None, 0, None], [y])
    b.call("softmax", [ValueId(y), -1], [b.output(DType.f32, [1, 64])])
    for index, number in enumerate((0.1, 1 / 3, 3e-6, 65519.0, 1e-7, 1e-40, 1e39)):
        for dtype in (DType.f16, DType.f32):
            out = b.output(dtype, [4])
            b.method.values[out].name = f"y{index}{dtype.name}"
            b.call("full", [number, [4]], [out])
    data = to_bytes(b.program)
    inputs = [np.linspace(-1, 1, 64, dtype=np.float32)[None] / 3]
    get = set_floats(way) if way else bytes
    before = get()
    outputs = pumice.load(data).run_flat(inputs)
    text = json.dumps(pumice.inspect(data), sort_keys=True)
    return {
        "kept": get() == before,
        "half": locale.str(0.5),
        "file": hashlib.sha256(data).hexdigest(),
        "inspect": hashlib.sha256(text.encode()).hexdigest(),
        "output": hashlib.sha256(b"".join(array.tobytes() for array in outputs)).hexdigest(),
    }


def stacks(count: str) -> dict[str, object]:
    """Each load in a thread of its own, with 256 KiB for its stack."""
    threading.stack_size(256 << 10)
    deep = [hostile.doubling(24), hostile.expressions(50_000), hostile.relus(2000), hostile.nested("[" * 4000)]
    small, done, failed = hostile.relus(3), [], []

    def one(index: int) -> None:
        try:
            if index < len(deep):
                pumice.check(deep[index])
            assert answer(pumice.load(small)) == "right"
            done.append(index)
        except BaseException as error:
            failed.append(repr(error))

    for index in range(int(count)):
        thread = threading.Thread(target=one, args=(index,))
        thread.start()
        thread.join()
    assert not failed, failed
    return {"loads": len(done)}


if __name__ == "__main__":
    ways = {way.__name__: way for way in (files, memory, threads, numbers, stacks)}
    print(json.dumps(ways[sys.argv[1]](*sys.argv[2:])))
