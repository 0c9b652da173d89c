# SPDX-License-Identifier: Apache-2.0
"""Every shader header compiles alone, or says in its first error which macro it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "glsl/include"
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.glslh"))
EXTENSIONS = [
    "GL_GOOGLE_include_directive",
    "GL_EXT_samplerless_texture_functions",
    "GL_EXT_control_flow_attributes",
    "GL_EXT_integer_dot_product",
    "GL_EXT_shader_explicit_arithmetic_types_float16",
    "GL_EXT_shader_explicit_arithmetic_types_int8",
    "GL_KHR_cooperative_matrix",
    "GL_KHR_memory_scope_semantics",
    "GL_KHR_shader_subgroup_arithmetic",
]


def compile_alone(folder: Path, header: str, include: Path = INCLUDE) -> str:
    """The first error of a shader that includes `header` and nothing else; empty if there is none."""
    private = ROOT / "build/prefix/tools/bin/glslang"
    glslang = private if private.exists() else shutil.which("glslang")
    if glslang is None:
        pytest.skip("glslang is not installed (./dev setup installs it)")
    shader = folder / "alone.comp"
    lines = ["#version 450", *(f"#extension {name} : require" for name in EXTENSIONS)]
    shader.write_text("\n".join([*lines, f'#include "{header}"', "void main() {}", ""]))
    command = [glslang, "-V", "--target-env", "vulkan1.1", f"-I{include}", "-o", folder / "alone.spv", shader]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = re.findall(r"ERROR: [^\n]*", done.stdout + done.stderr)
    assert bool(errors) == bool(done.returncode)
    return errors[0] if errors else ""


def names_what_it_needs(error: str) -> bool:
    return re.search(r"'#error' : .*\.glslh needs \w", error) is not None


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_stands_alone_or_names_what_it_needs(tmp_path: Path, header: str) -> None:
    error = compile_alone(tmp_path, header)
    assert not error or names_what_it_needs(error), error


def test_a_missing_check_is_found(tmp_path: Path) -> None:
    include = tmp_path / "include"
    shutil.copytree(INCLUDE, include)
    gemm = include / "linear/gemm.glslh"
    text, count = re.subn(r"#ifndef GEMM_\w+\n#error [^\n]*\n#endif\n", "", gemm.read_text())
    assert count == 2
    gemm.write_text(text)
    error = compile_alone(tmp_path, "linear/gemm.glslh", include)
    assert error and not names_what_it_needs(error), error


def test_an_include_says_its_folder() -> None:
    shaders = [*ROOT.glob("glsl/*.glsl"), *INCLUDE.rglob("*.glslh")]
    named = {name for path in shaders for name in re.findall(r'#\s*include\s+"([^"]+)"', path.read_text())}
    assert named and named <= set(HEADERS), named - set(HEADERS)
