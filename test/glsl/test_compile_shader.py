# SPDX-License-Identifier: Apache-2.0
"""glsl/compile_shader.py: pragmas, what it reads back from SPIR-V, the C++ header, and that a mistake is refused."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "glsl"))

import compile_shader  # noqa: E402
from reflect_spirv import FEATURES, ShaderError  # noqa: E402


def _tool(name: str) -> Path:
    private = ROOT / "build/prefix/tools/bin" / name
    found = private if private.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (./dev setup installs it)")
    return Path(found)


BODY = """
void main() { if (item() < params.count) out_[item()] = params.scale > 0.0 ? x_[item()] : 0u; }
"""
HEAD = """#version 450
#extension GL_GOOGLE_include_directive : require
"""
PARTS = """#include "core/launch.glslh"
layout(constant_id = 1) const bool FLAG = false;
layout(binding = 0) writeonly buffer Out { uint out_[]; };
layout(binding = 1) readonly buffer X { uint x_[]; };
layout(push_constant) uniform Params { uint count; float scale; int sizes[3]; } params;
"""


class Work:
    """A shader in a folder of its own, compiled as the build compiles it."""

    def __init__(self, folder: Path):
        self.path, self.out, self.include = folder / "toy.glsl", folder / "out", folder / "include"
        shutil.copytree(ROOT / "glsl/include", self.include)

    def main(self, text: str, *options: str) -> int:
        self.path.write_text(text)
        tools = ["--glslang", str(_tool("glslang")), "--spirv-val", str(_tool("spirv-val"))]
        return compile_shader.main(
            [*tools, "--include", str(self.include), "--out", str(self.out), *options, str(self.path)]
        )

    def header(self, text: str) -> str:
        assert self.main(text) == 0
        return (self.out / "toy.h").read_text()

    def cplusplus(self, text: str, *code: str) -> subprocess.CompletedProcess:
        """Compiles C++ against the header; nothing is linked."""
        self.header(text)
        source = self.out / "use.cpp"
        source.write_text('#include "toy.h"\nusing namespace pumice::engine::glsl::toy;\n' + "\n".join(code))
        flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}", f"-I{self.out}"]
        return subprocess.run(["g++", *flags, str(source)], capture_output=True, text=True, check=False)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setenv("PUMICE_SHADER_CACHE", str(tmp_path / "shaders"))
    return Work(tmp_path)


def test_without_axes(work: Work) -> None:
    text = work.header(HEAD + PARTS + BODY)
    assert re.search(r'\{"toy", &kBlock, 0, \d+, 2, 20, 2, 0x0\}', text), text
    assert "variant() { return kVariants[0]; }" in text
    assert re.findall(r"^  (\w+) (.*);$", text, re.MULTILINE)[:3] == [
        ("uint32_t", "count = 0"), ("float", "scale = 0"), ("int32_t", "sizes[3] = {}")]  # fmt: skip


def test_axes_make_the_full_product_in_order(work: Work) -> None:
    pragmas = "#pragma variant DTYPE f32 i32\n#pragma variant BITS 4 8  // a comment\n"
    text = work.header(HEAD + pragmas + PARTS + BODY)
    assert re.findall(r'\{"(toy\[.*?\])"', text) == ["toy[f32,4]", "toy[f32,8]", "toy[i32,4]", "toy[i32,8]"]
    assert "enum class BITS : uint32_t { _4, _8 };" in text
    offsets = [(int(a), int(b)) for a, b in re.findall(r"&kBlock, (\d+), (\d+),", text)]
    assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(offsets))
    assert (work.out / "toy.bin").stat().st_size == 4 * sum(offsets[-1])


def test_a_value_outside_an_axis_is_a_compile_error(work: Work) -> None:
    shader = HEAD + "#pragma variant DTYPE f32 i32 u8\n" + PARTS + BODY
    checks = "static_assert(variant(DTYPE::i32).num_spec == 2 && sizeof(Params) == 20 && axes[0].values.size() == 3);"
    good = work.cplusplus(shader, checks, "DTYPE f() { return dtype(pumice::engine::DType::boolean); }")
    assert good.returncode == 0, good.stderr
    assert "case DType::boolean: return DTYPE::u8;" in (work.out / "toy.h").read_text()
    bad = work.cplusplus(shader, "const auto& shader = variant(DTYPE::f16);")
    assert bad.returncode != 0 and "f16" in bad.stderr


WITHOUT = "#pragma variant DTYPE f32 i32\n#pragma variant BITS 4 8 16\n"
WITHOUT += "#pragma without DTYPE=f32 BITS=4\n#pragma without DTYPE=i32 BITS=8  // why\n"


def test_what_is_left_out_is_in_no_table(work: Work) -> None:
    text = work.header(HEAD + WITHOUT + PARTS + BODY)
    names = ["toy[f32,8]", "toy[f32,16]", "toy[i32,4]", "toy[i32,16]"]
    assert re.findall(r'\{"(toy\[.*?\])"', text) == names
    assert "kPlaces[] = {kLeftOut, 0, 1, 2, kLeftOut, 3};" in text
    offsets = [(int(a), int(b)) for a, b in re.findall(r"&kBlock, (\d+), (\d+),", text)]
    assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(offsets))
    assert (work.out / "toy.bin").stat().st_size == 4 * sum(offsets[-1])
    assert list(json.loads((work.out / "toy.json").read_text())) == names


def test_a_variant_that_is_left_out_is_a_compile_error_where_it_is_known(work: Work) -> None:
    shader = HEAD + WITHOUT + PARTS + BODY
    good = work.cplusplus(shader, "static_assert(&variant(DTYPE::i32, BITS::_16) == &kVariants[3]);")
    assert good.returncode == 0, good.stderr
    bad = work.cplusplus(shader, "constexpr const auto& shader = variant(DTYPE::i32, BITS::_8);")
    assert bad.returncode != 0 and "left_out" in bad.stderr


def test_choices_number_the_values_of_a_spec_constant(work: Work) -> None:
    use = "void main() { out_[item()] = params.count + x_[0] + uint(HOW_second) + uint(FLAG); }"
    text = work.header(HEAD + "#pragma choice HOW first second\n" + PARTS + use)
    assert "enum class HOW : uint32_t { first, second };" in text
    assert "variant()" in text


def test_features_come_from_capabilities(work: Work) -> None:
    extension = "#extension GL_KHR_shader_subgroup_arithmetic : require\n"
    body = "void main() { out_[item()] = subgroupAdd(x_[item()] + params.count); }"
    text = work.header(HEAD + extension + PARTS + body)
    assert f"0x{1 << FEATURES.index('subgroup_arithmetic'):x}}}" in text


TEXTURES = """#extension GL_EXT_samplerless_texture_functions : require
#pragma variant STORAGE buffer texture3d
#include "core/texture.glslh"
#include "core/launch.glslh"
#if defined(STORAGE_texture3d)
layout(binding = 0, FORMAT(f16)) writeonly uniform IMAGE(f16) out_;
layout(binding = 2) uniform TEXTURE(f16) x_;
#else
layout(binding = 0) buffer Out { uvec2 out_[]; };
layout(binding = 2) buffer X { uvec2 x_[]; };
#endif
layout(binding = 1) readonly buffer Y { uint y_[]; };
void main() {
#if defined(STORAGE_texture3d)
  PUT4(f16, out_, ivec3(item()), FETCH4(f16, x_, ivec3(y_[0])));
#else
  out_[item()] = x_[y_[0]];
#endif
}
"""


def test_kinds_of_bindings_are_read_back(work: Work) -> None:
    text = work.header(HEAD + TEXTURES)
    rows = re.findall(r'{"toy\[(\w+)\]", [^}]*}', text)
    assert rows == ["buffer", "texture3d"]
    assert re.search(r'"toy\[texture3d\]".*, 0x0, 0x12}', text)  # an image, a buffer, a texture
    assert re.search(r'"toy\[buffer\]".*, 0x0}', text)
    assert "STORAGE storage_value = STORAGE::buffer" in text


def test_blocks_that_only_read_may_share_a_binding(work: Work) -> None:
    both = PARTS + "layout(binding = 1) readonly buffer Y { uvec4 y_[]; };" + BODY.replace("0u;", "y_[0].x;")
    assert re.search(r'{"toy", [^}]*}', work.header(HEAD + both))


VOTE = "#extension GL_KHR_shader_subgroup_vote : require\n"
MISTAKES = [
    (PARTS.replace("binding = 1", "binding = 2") + BODY, "binding 1 is not declared, but 2 is"),
    (PARTS.replace("binding = 1", "binding = 0") + BODY, "both have binding 0"),
    (
        PARTS + "layout(binding = 1) buffer Y { uvec4 y_[]; };" + BODY.replace("0u;", "y_[0].x;"),
        "both have binding 1",  # one of them writes
    ),
    (PARTS.replace("binding = 1", "set = 1, binding = 1") + BODY, "set 1; everything is in set 0"),
    (PARTS.replace("int sizes[3]", "ivec4 sizes") + BODY, "'sizes' is not a uint, int or float"),
    (PARTS.replace("int sizes[3]", "int sizes[40]") + BODY, "168 bytes of push constants; every device has 128"),
    (PARTS.replace("constant_id = 1", "constant_id = 2") + BODY, "constant_id 1 is not declared"),
    (
        PARTS.replace('#include "core/launch.glslh"', "uint item() { return 0u; }") + BODY,
        "not specialization constant 0",
    ),
    (PARTS + "layout(binding = 2) uniform U { uint u; };" + BODY.replace("0u;", "u;"), "is a uniform block"),
    (
        PARTS + "layout(binding = 2) uniform sampler2D s;" + BODY.replace("0u;", "uint(texelFetch(s, ivec2(0), 0).x);"),
        "or a sampler",
    ),
    (
        PARTS
        + "layout(binding = 2) uniform writeonly image2D s;"
        + BODY.replace("}", "imageStore(s, ivec2(0), vec4(1)); }"),
        "capability 56 has no",
    ),
    (
        VOTE + PARTS + "void main() { if (subgroupAll(params.count > 1u)) out_[item()] = x_[0]; }",
        "capability 62 has no",
    ),
    ("#pragma variant DTYPE\n" + PARTS + BODY, "toy.glsl:3: error: axis DTYPE needs one or more different values"),
    ("#pragma variant DTYPE f32 f32\n" + PARTS + BODY, "needs one or more different values"),
    ("#pragma variant A x\n#pragma variant A y\n" + PARTS + BODY, "toy.glsl:4: error: axis A is named twice"),
    ("#pragma variants A x\n" + PARTS + BODY, "unknown pragma 'variants A x'; known: variant, choice, without"),
    (WITHOUT + "#pragma without BIT=4\n" + PARTS + BODY, "toy.glsl:7: error: 'BIT=4': there is no axis 'BIT'"),
    (WITHOUT + "#pragma without DTYPE=u8\n" + PARTS + BODY, "'DTYPE=u8': axis DTYPE has the values f32, i32"),
    (WITHOUT + "#pragma without BITS=4 BITS=8\n" + PARTS + BODY, "one value of each of some axes"),
    (WITHOUT + "#pragma without\n" + PARTS + BODY, "one value of each of some axes"),
    (WITHOUT + "#pragma without BITS=4 DTYPE=f32\n" + PARTS + BODY, "leaves out nothing that is not left out already"),
    (WITHOUT + "#pragma without BITS=8 DTYPE=f32\n" + PARTS + BODY, "no variant is left with BITS=8; strike it"),
    ("#pragma without A=x\n" + PARTS + BODY, "there is no axis 'A'; there are none"),
    (
        PARTS.replace("core/launch.glslh", "core/lunch.glslh") + BODY,
        "toy.glsl:3: error: included file core/lunch.glslh",
    ),
    (PARTS + "\nvoid main() { out_[0] = missing; }", "toy.glsl:9: error: 'missing' : undeclared identifier"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_is_refused(work: Work, capsys: pytest.CaptureFixture, text: str, message: str) -> None:
    assert work.main(HEAD + text) == 1
    assert message in capsys.readouterr().err
    assert not (work.out / "toy.h").exists()


def test_variants_must_agree_on_the_push_constants(work: Work, capsys: pytest.CaptureFixture) -> None:
    parts = PARTS.replace("float scale", "\n#ifdef DTYPE_f32\nuint other;\n#endif\nfloat scale")
    assert work.main(HEAD + "#pragma variant DTYPE f32 i32\n" + parts + BODY) == 1
    assert "toy[f32] and toy[i32] declare different push constants" in capsys.readouterr().err


def test_only_what_changed_is_compiled_again(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    shader = HEAD + "#pragma variant DTYPE f32 i32\n" + PARTS + BODY
    work.header(shader)
    ran: list[str] = []
    run = compile_shader._run
    monkeypatch.setattr(compile_shader, "_run", lambda *args: (ran.append(args[1]), run(*args)))
    stamp = (work.out / "toy.h").stat().st_mtime_ns
    work.header("// said differently\n" + shader)
    assert ran == [] and (work.out / "toy.h").stat().st_mtime_ns == stamp
    work.header(shader.replace("f32 i32", "f32 i32 u8"))
    assert len(ran) == 2 and "u8" in ran[0]  # glslang and spirv-val
    include = work.include / "core/launch.glslh"
    include.write_text(include.read_text().replace("128", "64"))
    work.header(shader)
    assert len(ran) == 6
    assert str(include.resolve()) in (work.out / "toy.d").read_text()
    monkeypatch.delenv("PUMICE_SHADER_CACHE")  # then the modules are below the output
    work.header(shader)
    assert len(ran) == 10 and len(list((work.out / "cache").rglob("*.spv"))) == 2


def test_canonical_modules_differ_in_their_ids_only(work: Work) -> None:
    shader = HEAD + "#pragma variant DTYPE f32 i32\n" + PARTS + BODY
    assert work.main(shader, "--zstd") == 0
    source = compile_shader.read_source(work.path, work.include)
    compiler = compile_shader.Compiler(_tool("glslang"), _tool("spirv-val"), work.include, work.out)
    modules = compiler.compile(source)
    plain, canonical = compile_shader.block(modules), b"".join(compiler.canonical(source, modules))
    assert len(plain) == len(canonical) and plain != canonical
    assert zstandard.decompress((work.out / "toy.bin").read_bytes()) in (plain, canonical)
    for module, code in zip(modules, compiler.canonical(source, modules), strict=True):
        again = compile_shader.Module(code, work.path, "toy")
        assert (again.kinds, again.features, again.push_bytes) == (module.kinds, module.features, module.push_bytes)
        (work.out / "one.spv").write_bytes(code)
        subprocess.run([_tool("spirv-val"), "--target-env", "vulkan1.1", work.out / "one.spv"], check=True)


def test_a_module_that_is_none(work: Work) -> None:
    with pytest.raises(ShaderError, match="not a SPIR-V module"):
        compile_shader.Module(b"\0" * 20, work.path, "toy")


def test_features_are_those_of_the_runtime() -> None:
    text = (ROOT / "glsl/shader.h").read_text()
    declared = re.search(r"enum class Feature : uint8_t \{(.*?)\}", text, re.DOTALL)
    assert declared and tuple(re.findall(r"\w+", declared[1])) == FEATURES
