# SPDX-License-Identifier: Apache-2.0
"""One shader file -> SPIR-V of all its variants, and a C++ header that names them.

    compile_shader.py --glslang PATH --spirv-val PATH --include DIR --out DIR SHADER.glsl

A line ``#pragma variant AXIS a b c`` in the shader makes one SPIR-V module for each value, compiled with -DAXIS=a and
-DAXIS_a=1; several axes make the full product, less those that no operator asks for: ``#pragma without AXIS=a OTHER=b``
leaves out every variant that has all of these values. Such a line must leave out some that no other one does, and each
value of an axis must be in a variant. ``#pragma choice NAME a b c`` names the values of a specialization
constant: it defines NAME_a 0, NAME_b 1, ... and makes the same enum in C++. What C++ must know besides (bindings, the
push-constant struct, the features a device must have) is read back from the SPIR-V, so that it is written once.

Writes, for a shader X: X.h (`pumice::engine::glsl::X`, see glsl/shader.h), X.bin (all modules, one after the other,
packed with --zstd), X.d (for ninja) and X.json (a hash of each variant's SPIR-V, for `./dev fleet`). Modules whose text
did not change, comments aside, are not compiled again.
Debug names are removed after they were read. spirv-opt does no more than to renumber ids: drivers optimise anyway, and
its inlining made 56 KB out of the 27 of binary[f32].
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from reflect_spirv import Module, ShaderError
from shader_pragmas import DTYPES, IDENTIFIER, Axis, Rule, read_axes, read_rules

FLAGS = ["-V", "--target-env", "vulkan1.1", "-S", "comp", "--quiet"]


@dataclass(frozen=True)
class Source:
    """A shader file as text: its axes, its choices, and every file it includes."""

    path: Path
    axes: list[Axis]
    choices: list[Axis]
    rules: list[Rule]
    files: list[Path]
    digest: str

    @property
    def product(self) -> list[tuple[str, ...]]:
        """All that the axes make, in order."""
        return list(itertools.product(*(axis.values for axis in self.axes)))

    @property
    def variants(self) -> list[tuple[str, ...]]:
        """Those that there are."""
        return [variant for variant in self.product if not any(rule.matches(self.axes, variant) for rule in self.rules)]

    def defines(self, variant: tuple[str, ...]) -> list[str]:
        made = [f"-D{choice.name}_{value}={i}" for choice in self.choices for i, value in enumerate(choice.values)]
        for axis, value in zip(self.axes, variant, strict=True):
            made += [f"-D{axis.name}={value}", f"-D{axis.name}_{value}=1"]
        return made

    def variant_name(self, variant: tuple[str, ...]) -> str:
        return f"{self.path.stem}[{','.join(variant)}]" if variant else self.path.stem


def read_source(path: Path, include: Path) -> Source:
    text = path.read_text()
    if not IDENTIFIER.fullmatch(path.stem):
        raise ShaderError(path, "the file's stem becomes a C++ namespace: letters, digits and _ only")
    axes, choices = read_axes(path, text)
    rules = read_rules(path, text, axes)
    files: dict[Path, str] = {}

    def add(file: Path, name: str, via: Path, line: int) -> None:
        if file in files:
            return
        if not file.exists():
            raise ShaderError(via, f"included file {name} is not in {include}", line)
        files[file] = file.read_text()
        for number, code in enumerate(files[file].splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', code)
            if match:
                beside = file.parent / match[1]
                add(beside if beside.exists() else include / match[1], match[1], file, number)

    add(path, path.name, path, 0)
    code = "\0".join(f"{file.name}\0{_code(body)}" for file, body in files.items())
    return Source(path, axes, choices, rules, list(files), hashlib.sha256(code.encode()).hexdigest())


def _code(text: str) -> str:
    """What decides the SPIR-V: no comments, and no pragmas, whose meaning is in the -D options."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|#\s*pragma[^\n]*", " ", text, flags=re.DOTALL)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _run(command: list[str], what: str, path: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ShaderError(path, f"{what} failed:\n{readable(done.stdout + done.stderr, path)}")


def readable(output: str, path: Path) -> str:
    """glslang's `ERROR: FILE:LINE: text` as `FILE:LINE: error: text`, which editors understand."""
    lines = []
    for line in output.splitlines():
        match = re.match(r"(ERROR|WARNING): (.+?):(\d+): (.*)", line)
        if match:
            file = path if match[2] in ("0", path.name) else match[2]
            line = f"{file}:{match[3]}: {match[1].lower()}: {match[4]}"
        if line.strip() and line.strip() != str(path) and "compilation errors" not in line:
            lines.append(line)
    return "\n".join(lines)


class Compiler:
    """glslang, spirv-val and spirv-opt, which lies next to it, with a cache of modules by what they are made from.

    It lies in PUMICE_SHADER_CACHE, which several builds may share at a time, or below `out`.
    """

    def __init__(self, glslang: Path, spirv_val: Path, include: Path, out: Path):
        self.glslang, self.spirv_val, self.include, self.out = glslang, spirv_val, include, out
        tools = [(tool.name, tool.stat().st_mtime_ns, tool.stat().st_size) for tool in (glslang, spirv_val)]
        self.tools = json.dumps([tools, FLAGS])

    def module(self, source: Source, variant: tuple[str, ...]) -> Module:
        defines = source.defines(variant)
        key = hashlib.sha256(json.dumps([self.tools, source.digest, defines]).encode()).hexdigest()
        folder = Path(os.environ.get("PUMICE_SHADER_CACHE") or self.out / "cache") / source.path.stem
        target = folder / f"{key}.spv"
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            what = f"glslang, variant {source.variant_name(variant)},"
            made = folder / f"{key}.{os.getpid()}.spv"
            command = [str(self.glslang), *FLAGS, f"-I{self.include}", *defines, "-o", str(made), str(source.path)]
            _run(command, what, source.path)
            _run([str(self.spirv_val), "--target-env", "vulkan1.1", str(made)], "spirv-val", source.path)
            made.replace(target)
        return Module(target.read_bytes(), source.path, source.variant_name(variant))

    def canonical(self, source: Source, modules: list[Module]) -> list[bytes]:
        """The same modules with ids that are alike in all variants, so that --zstd finds what they share."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda module: self._canonical(source, module.code.tobytes()), modules))

    def _canonical(self, source: Source, code: bytes) -> bytes:
        folder = Path(os.environ.get("PUMICE_SHADER_CACHE") or self.out / "cache") / source.path.stem
        target = folder / f"{hashlib.sha256(self.tools.encode() + code).hexdigest()}.ids"
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:  # two modules may be the same
                before, made = Path(scratch) / "before.spv", Path(scratch) / "made.spv"
                before.write_bytes(code)
                tool = str(self.spirv_val.with_name("spirv-opt"))
                _run([tool, "--canonicalize-ids", str(before), "-o", str(made)], "spirv-opt", source.path)
                made.replace(target)
        return target.read_bytes()

    def compile(self, source: Source) -> list[Module]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda variant: self.module(source, variant), source.variants))


def block(modules: list[Module]) -> bytes:
    """The SPIR-V of all variants, one after the other."""
    return b"".join(module.code.tobytes() for module in modules)


def packed(data: bytes) -> bytes:
    """`data` by zstd, as small as it gets: glsl/spirv.cpp unpacks it. The frame says how large the content is."""
    import zstandard

    return zstandard.ZstdCompressor(zstandard.MAX_COMPRESSION_LEVEL, write_checksum=True).compress(data)


def smallest(compiler: Compiler, source: Source, modules: list[Module]) -> bytes:
    """Packed with the ids that glslang gave or with canonical ones, whichever is smaller. Either way a module has the
    same words but for its ids: the header is the same."""
    plain = block(modules)
    if len(modules) == 1:
        return packed(plain)
    canonical = b"".join(compiler.canonical(source, modules))
    if len(canonical) != len(plain):
        raise ShaderError(source.path, f"spirv-opt made {len(canonical)} bytes of {len(plain)}")
    return min(packed(plain), packed(canonical), key=len)


def digests(source: Source, modules: list[Module]) -> dict[str, str]:
    codes = [module.code.tobytes() for module in modules]
    return {
        source.variant_name(variant): hashlib.sha256(code).hexdigest()[:16]
        for variant, code in zip(source.variants, codes, strict=True)
    }


def header(source: Source, modules: list[Module]) -> str:
    """The C++ header of a shader; `modules` in the order of source.variants."""
    return "\n".join(_header(source, modules)) + "\n"


def _header(source: Source, modules: list[Module]) -> Iterator[str]:
    stem = source.path.stem
    codes = [module.code for module in modules]
    yield "// SPDX-License-Identifier: Apache-2.0"
    yield f"// Generated by glsl/compile_shader.py from glsl/{stem}.glsl."
    yield "#pragma once\n"
    if any(axis.is_dtype for axis in source.axes):
        yield '#include "base/dtype.h"'
        yield '#include "base/error.h"'
    yield '#include "glsl/shader.h"'
    hidden = 'extern "C" __attribute__((visibility("hidden")))'
    yield f"\n{hidden} const uint8_t pumice_glsl_{stem}[], pumice_glsl_{stem}_end[];\n"
    yield f"namespace pumice::engine::glsl::{stem} {{\n"
    for axis in [*source.axes, *source.choices]:
        yield f"enum class {axis.name} : uint32_t {{ {', '.join(axis.enum(value) for value in axis.values)} }};"
    yield from _params(source, modules)

    for axis in source.axes:
        values = ", ".join(f'"{value}"' for value in axis.values)
        yield f"inline constexpr std::string_view k{axis.name}[] = {{{values}}};"
    if source.axes:
        rows = ", ".join(f'{{"{axis.name}", k{axis.name}}}' for axis in source.axes)
        yield f"inline constexpr Axis axes[] = {{{rows}}};\n"
    else:
        yield "inline constexpr std::span<const Axis> axes;\n"

    yield f"inline constexpr Spirv kBlock{{pumice_glsl_{stem}, pumice_glsl_{stem}_end, {sum(map(len, codes))}}};\n"
    yield "inline constexpr Shader kVariants[] = {"
    offset = 0
    for variant, module, code in zip(source.variants, modules, codes, strict=True):
        numbers = f"{len(code)}, {module.num_bindings}, {module.push_bytes}, {module.num_spec}, 0x{module.features:x}"
        numbers += f", 0x{module.kinds:x}" if module.kinds else ""
        yield f'    {{"{source.variant_name(variant)}", &kBlock, {offset}, {numbers}}},'
        offset += len(code)
    yield "};\n"

    yield from _variant(source)
    for axis in source.axes:
        if axis.is_dtype:
            yield from _dtype_function(stem, axis)
    yield f"\n}}  // namespace pumice::engine::glsl::{stem}"


def _variant(source: Source) -> Iterator[str]:
    """The function that gives a variant. Where some are left out, a table says where the others are."""
    index = "0"
    for axis in source.axes:
        value = f"static_cast<uint32_t>({axis.name.lower()}_value)"
        index = value if index == "0" else f"({index}) * {len(axis.values)} + {value}"
    arguments = ", ".join(f"{axis.name} {axis.name.lower()}_value{axis.default}" for axis in source.axes)
    if not source.rules:
        yield f"constexpr const Shader& variant({arguments}) {{ return kVariants[{index}]; }}"
        return
    places = {variant: str(i) for i, variant in enumerate(source.variants)}
    table = ", ".join(places.get(variant, "kLeftOut") for variant in source.product)
    yield f"inline constexpr uint16_t kPlaces[] = {{{table}}};"
    yield f"constexpr const Shader& variant({arguments}) {{"
    yield f"  const uint32_t index = {index};"
    yield f'  if (kPlaces[index] == kLeftOut) left_out("{source.path.stem}", axes, index);'
    yield "  return kVariants[kPlaces[index]];"
    yield "}"


def _params(source: Source, modules: list[Module]) -> Iterator[str]:
    """The push-constant struct; the same in every variant, since a launch fills it before it knows which one runs."""
    first = modules[0]
    for module in modules[1:]:
        if module.params != first.params:
            raise ShaderError(
                source.path,
                f"{first.name} and {module.name} declare different push constants: {first.params} and {module.params}; "
                "Params must be the same in all variants",
            )
    if first.params:
        types = {"uint": "uint32_t", "int": "int32_t", "float": "float"}
        yield "\nstruct Params {"
        for kind, name, count in first.params:
            yield f"  {types[kind]} {name}{f'[{count}] = {{}}' if count else ' = 0'};"
        yield "};"
        yield f"static_assert(sizeof(Params) == {first.push_bytes});\n"


def _dtype_function(stem: str, axis: Axis) -> Iterator[str]:
    """The value of a dtype axis at run time; i64 is i32 on the device, bool a byte, unless the axis lists them."""
    yield f"\ninline {axis.name} {axis.name.lower()}(DType type) {{"
    yield "  switch (type) {"
    for value in axis.values:
        extra = "case DType::i64: " if value == "i32" and "i64" not in axis.values else ""
        if value == "u8" and "boolean" not in axis.values:
            extra = "case DType::boolean: "
        yield f"    case DType::{DTYPES[value]}: {extra}return {axis.name}::{value};"
    yield "    default:"
    known = f"{stem}: no kernel for %s; {axis.name} is one of {', '.join(axis.values)}"
    yield f'      fail(Code::BadDtype, Stage::plan, "", "{known}", name(type));'
    yield "  }"
    yield "}"


def depfile(source: Source, out: Path) -> str:
    def escaped(path: Path) -> str:
        return str(path.resolve()).replace(" ", "\\ ").replace("$", "$$")

    targets = " ".join(escaped(out / f"{source.path.stem}{end}") for end in (".h", ".bin"))
    return f"{targets}: {' '.join(escaped(file) for file in source.files)}\n"


def write_if_changed(path: Path, data: bytes) -> None:
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--glslang", "--spirv-val", "--include", "--out"):
        parser.add_argument(option, required=True, type=Path)
    parser.add_argument("--zstd", action="store_true", help="pack the SPIR-V")
    parser.add_argument("shader", type=Path)
    options = parser.parse_args(argv)
    try:
        source = read_source(options.shader, options.include)
        options.out.mkdir(parents=True, exist_ok=True)
        compiler = Compiler(options.glslang, options.spirv_val, options.include, options.out)
        modules = compiler.compile(source)
        binary = smallest(compiler, source, modules) if options.zstd else block(modules)
        text = header(source, modules)
    except ShaderError as error:
        print(error, file=sys.stderr)
        return 1
    stem = options.shader.stem
    write_if_changed(options.out / f"{stem}.bin", binary)
    write_if_changed(options.out / f"{stem}.h", text.encode())
    (options.out / f"{stem}.json").write_text(json.dumps(digests(source, modules), indent=1) + "\n")
    (options.out / f"{stem}.d").write_text(depfile(source, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
