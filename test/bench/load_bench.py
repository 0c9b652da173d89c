# SPDX-License-Identifier: Apache-2.0
"""Prints how long loads of 10^2 to 10^5 operator calls take: the seconds for each call must not grow.

PYTHONPATH=python:test PUMICE_DEVICE=llvmpipe .venv/bin/python test/bench/load_bench.py
"""

from __future__ import annotations

import time

from support import hostile
from support.hostile import Storage

import pumice

FILES = {
    "linears": hostile.linears,
    "relus": hostile.relus,
    "relus, all alive": hostile.fan,
    "relus in textures, all alive": lambda calls: hostile.fan(calls, Storage.texture3d),
    "slice_scatter": hostile.scatters,
}


def main() -> None:
    pumice.load(hostile.relus(1))
    for name, make in FILES.items():
        for calls in (100, 1000, 10_000, 30_000, 100_000):
            data = make(calls if "alive" not in name else calls // 2)
            start = time.process_time()
            try:
                pumice.load(data, max_seconds=1e6)
            except pumice.InvalidFileError as error:  # docs/format.md: a program may not take much more than its size
                print(f"{name}: {calls} calls, {len(data) / 1e6:.1f} MB, refused: {error}")
                break
            spent = time.process_time() - start
            print(
                f"{name}: {calls} calls, {len(data) / 1e6:.1f} MB, {spent:.3f} s, {spent / calls * 1e6:.1f} us a call"
            )


if __name__ == "__main__":
    main()
