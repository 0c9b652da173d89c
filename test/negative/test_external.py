# SPDX-License-Identifier: Apache-2.0
"""Keys of constants outside of the file that look like paths (id F20): a key is a name, and nothing is opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.hostile import builder, resealed

import pumice
from pumice.format.ir import DType, ValueId
from pumice.format.writer import to_bytes

WEIGHT = np.arange(6, dtype="<f4").reshape(2, 3)
KEYS = ["../x", "a/../../b", "/etc/passwd", "/dev/zero", "C:\\x", "~/x", "file:///etc/passwd", "x", "%s%n", "."]

# A pipe that nobody writes stands wherever a key may lead: to open it would take for ever.
CHILD = """
import os, sys
import pumice
os.makedirs("here/a")
for name in ("x", "b", "here/x", "here/b", "here/C:\\\\x", "here/~", "here/file:"):
    os.mkfifo(name)
os.chdir("here")
try:
    pumice.load(sys.argv[1], device="llvmpipe", cache_dir="off")
except pumice.Error as error:
    print(error.code, error)
"""


def file(key: str) -> bytes:
    b = builder()
    weight = b.constant("key", DType.f32, [2, 3], WEIGHT.tobytes())
    b.program.constants[0].key, b.program.constants[0].external = key, True
    b.call(
        "linear", [ValueId(b.input(DType.f32, [1, 3])), ValueId(weight), None, 0, None], [b.output(DType.f32, [1, 2])]
    )
    return to_bytes(b.program)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_only_a_name(key: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pumice"
    path.write_bytes(file(key))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    escaped = key.replace("\\", "\\\\")
    assert done.stdout.startswith("WeightsMismatch") and f"the bytes of '{escaped}'" in done.stdout
    x = np.ones((1, 3), np.float32)
    (got,) = pumice.load(path, external={key: WEIGHT.tobytes()}).run_flat([x])
    assert np.array_equal(got, x @ WEIGHT.T)


@pytest.mark.parametrize(("key", "part"), [(b"", "is empty"), (b"x\0y", "control"), (b"x\ny", "control")])
def test_what_is_no_name(key: bytes, part: str) -> None:
    data = file("x#y" if key else "").replace(b"x#y", key or b"x#y")
    with pytest.raises(pumice.InvalidFileError, match=part) as caught:
        pumice.check(resealed(data))
    assert (caught.value.code, caught.value.path) == ("BadSchema", "constants[0].key")
