# SPDX-License-Identifier: Apache-2.0
"""`run` writes files named after outputs, and the names come from a model file: none leaves the folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command_line import BIN, run
from support.make_seeds import ROWS, Builder

import pumice
from pumice.cli.run import file_names
from pumice.format.ir import DType, ValueId, ValueKind
from pumice.format.writer import to_bytes


def program(names: list[str]) -> bytes:
    """Output i is x + i."""
    b = Builder()
    b.method.in_spec = b.method.out_spec = ""
    x = b.input(DType.f32, [ROWS, 8])
    for index, name in enumerate(names):
        out = b.value(ValueKind.output, DType.f32, [ROWS, 8], name=name)
        b.call("add", [ValueId(x), index, 1.0], [out])
    return to_bytes(b.program)


def hostile(folder: Path) -> dict[str, str]:
    """Names, and the files that both tools write for them."""
    absolute = str(folder / "absolute")
    return {
        "logits": "logits.npy",
        "output.0": "output.0.npy",
        "../evil": "%2E.%2Fevil.npy",
        "a/../../evil": "a%2F..%2F..%2Fevil.npy",
        "..\\evil": "%2E.%5Cevil.npy",
        absolute: absolute.replace("/", "%2F") + ".npy",
        "C:evil": "C%3Aevil.npy",
        "..": "%2E..npy",
        ".": "%2E.npy",
        ".bashrc": "%2Ebashrc.npy",
        "-rf": "%2Drf.npy",
        "": "~11.npy",
        "con": "%63on.npy",
        "NUL.txt": "%4EUL.txt.npy",
        "LPT1": "%4CPT1.npy",
        "console": "console.npy",
        "größe $HOME": "gr%C3%B6%C3%9Fe%20%24HOME.npy",
        "\u202egnp": "%E2%80%AEgnp.npy",
        "%2E": "%252E.npy",
        "Same": "Same.npy",
        "same": "same~20.npy",
        "~20": "%7E20.npy",
        "x" * 4000: "x" * 200 + "~22.npy",
        "x" * 3999: "x" * 200 + "~23.npy",
    }


@pytest.mark.parametrize("tool", ["pumice", "pumice-rt"])
def test_no_output_leaves_the_folder(tool, tmp_path) -> None:
    wanted = hostile(tmp_path)
    (tmp_path / "m.pumice").write_bytes(program(list(wanted)))
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    np.save(tmp_path / "x.npy", x)
    folder = tmp_path / "a" / "out"
    run(
        BIN / tool, "run", tmp_path / "m.pumice", "--inputs", tmp_path / "x.npy", "--outputs", folder,
        PUMICE_DEVICE="llvmpipe",
    )  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"m.pumice", "x.npy", "a"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(wanted.values())
    for index, name in enumerate(wanted.values()):
        np.testing.assert_array_equal(np.load(folder / name), x + index)


def test_file_names_never_meet_without_case() -> None:
    names = file_names(["a", "A", "a~1", "%41", "con", "CON", "", "~6", "é" * 100, "é" * 99])
    assert len({name.lower() for name in names}) == len(names)
    assert all(len(name) < 255 and name.isascii() and "/" not in name for name in names)


def test_two_outputs_of_one_name_are_refused() -> None:
    with pytest.raises(pumice.InvalidFileError, match=r"another output is named 'y', too") as caught:
        pumice.check(program(["y", "z", "y"]))
    assert (caught.value.code, caught.value.path) == ("BadSchema", "methods[0].outputs[2]")
    pumice.check(program(["", "z", ""]))  # without a name there is nothing to mix up
