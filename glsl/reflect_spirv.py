# SPDX-License-Identifier: Apache-2.0
"""What compile_shader.py reads out of a SPIR-V module; numbers are those of the SPIR-V specification."""

from __future__ import annotations

import array
from collections.abc import Iterator
from pathlib import Path

MAGIC = 0x07230203
MAX_PUSH_BYTES = 128  # what every Vulkan device has, and so below
MAX_TEXTURES, MAX_IMAGES, MAX_BINDINGS = 16, 4, 32  # of one shader

# pumice::engine::Feature, in its order (glsl/shader.h).
FEATURES = (
    "float16", "int8", "int16", "int64", "storage16", "storage8", "int_dot", "coopmat", "memory_model", "bfloat16",
    "subgroup_arithmetic", "subgroup_shuffle", "subgroup_clustered", "subgroup_size_control", "fragments", "robust",
    "split", "addresses", "atomic64", "persistent", "float_atomics", "fragments_int8",
)  # fmt: skip

# SPIR-V capability -> the Feature it needs; None: every Vulkan 1.1 device has it in compute shaders.
CAPABILITIES = {
    0: None,  # Matrix
    1: None,  # Shader
    61: None,  # GroupNonUniform
    9: "float16",
    39: "int8",
    22: "int16",
    11: "int64",
    12: "atomic64",  # Int64Atomics
    4433: "storage16",  # StorageBuffer16BitAccess
    4434: "storage16",  # UniformAndStorageBuffer16BitAccess
    4448: "storage8",  # StorageBuffer8BitAccess
    4449: "storage8",  # UniformAndStorageBuffer8BitAccess
    6016: "int_dot",  # DotProductInputAll
    6017: "int_dot",  # DotProductInput4x8Bit
    6018: "int_dot",  # DotProductInput4x8BitPacked
    6019: "int_dot",  # DotProduct
    6022: "coopmat",  # CooperativeMatrixKHR
    5345: "memory_model",  # VulkanMemoryModel
    5346: "memory_model",  # VulkanMemoryModelDeviceScope
    5347: "addresses",  # PhysicalStorageBufferAddresses
    6033: "float_atomics",  # AtomicFloat32AddEXT
    5116: "bfloat16",  # BFloat16TypeKHR
    5117: "bfloat16",  # BFloat16DotProductKHR
    5118: "bfloat16",  # BFloat16CooperativeMatrixKHR
    63: "subgroup_arithmetic",
    65: "subgroup_shuffle",
    67: "subgroup_clustered",
}

CAPABILITY, NAME, MEMBER_NAME, DECORATE, MEMBER_DECORATE = 17, 5, 6, 71, 72
TYPE_IMAGE, SAMPLED, STORAGE = 25, 1, 2  # the last two: what the operand `sampled` says
# Kinds of bindings, pumice::engine::Binding in its order.
BUFFER, TEXTURE, IMAGE = range(3)
TYPE_INT, TYPE_FLOAT, TYPE_ARRAY, TYPE_STRUCT, TYPE_POINTER, CONSTANT, VARIABLE = 21, 22, 28, 30, 32, 43, 59
SPEC_CONSTANTS = (48, 49, 50)  # True, False, a number
SPEC_COMPOSITE = 51
DEBUG = {2, 3, 4, 5, 6, 7, 8, 317, 330}  # sources, names, strings, lines, processed
SPEC_ID, ARRAY_STRIDE, BUILT_IN, NON_WRITABLE, BINDING, SET, OFFSET = 1, 6, 11, 24, 33, 34, 35  # decorations
WORKGROUP_SIZE = 25  # a BuiltIn
# Storage classes; those of resources must be accounted for, the others are the shader's own memory.
UNIFORM_CONSTANT, UNIFORM, PUSH_CONSTANT, STORAGE_BUFFER = 0, 2, 9, 12


class ShaderError(Exception):
    """A mistake in a shader, as `file:line: error: what, and what to do`."""

    def __init__(self, path: Path, text: str, line: int = 0):
        super().__init__(f"{path}:{line or 1}: error: {text}")


def instructions(words: array.array) -> Iterator[tuple[int, array.array]]:
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if count == 0 or at + count > len(words):
            raise ValueError(f"instruction at word {at} runs past the module")
        yield opcode, words[at + 1 : at + count]
        at += count


def strip_debug(words: array.array) -> array.array:
    """The module without names, sources and lines."""
    kept = words[:5]
    for opcode, operands in instructions(words):
        if opcode not in DEBUG:
            kept.append((len(operands) + 1) << 16 | opcode)
            kept.extend(operands)
    return kept


def _text(words: array.array) -> str:
    return words.tobytes().split(b"\0")[0].decode()


class Module:
    """One compiled variant. `params`: (type, name, count) of the push-constant block's members, in order, without gaps;
    count is 0 for a scalar, else the length of an array. `code`: the words without debug names."""

    def __init__(self, data: bytes, path: Path, name: str):
        self.words = array.array("I")
        self.words.frombytes(data)
        self.path, self.name = path, name
        if len(self.words) < 5 or self.words[0] != MAGIC:
            raise ShaderError(path, f"{name}: not a SPIR-V module")
        self._scan()
        self.features = self._features()
        kinds = self._bindings()
        self.num_bindings = len(kinds)
        self.kinds = sum(kind << 2 * binding for binding, kind in enumerate(kinds))
        self.params = self._params()
        self.push_bytes = 4 * sum(max(count, 1) for _, _, count in self.params)
        if self.push_bytes > MAX_PUSH_BYTES:
            self._fail(f"{self.push_bytes} bytes of push constants; every device has {MAX_PUSH_BYTES}, no more")
        self.num_spec = self._spec()
        self.code = strip_debug(self.words)

    def _fail(self, text: str) -> None:
        raise ShaderError(self.path, f"{self.name}: {text}")

    def _scan(self) -> None:
        self._capabilities: list[int] = []
        self._names: dict[int, str] = {}
        self._member_names: dict[tuple[int, int], str] = {}
        self._decorations: dict[tuple[int, int], int] = {}  # (id, decoration) -> its operand
        self._offsets: dict[tuple[int, int], int] = {}
        self._scalars: dict[int, str] = {}
        self._arrays: dict[int, tuple[int, int]] = {}  # element type, id of the length
        self._constants: dict[int, int] = {}
        self._structs: dict[int, list[int]] = {}
        self._pointees: dict[int, int] = {}
        self._read_only: set[int] = set()  # structs
        self._images: dict[int, int] = {}  # whether the type is sampled or a storage image
        self._variables: list[tuple[int, int, int]] = []  # id, pointer type, storage class
        self._spec_constants: list[int] = []
        self._composites: dict[int, list[int]] = {}
        for opcode, words in instructions(self.words):
            self._see(opcode, words)

    def _see(self, opcode: int, words: array.array) -> None:
        if opcode == CAPABILITY:
            self._capabilities.append(words[0])
        elif opcode == NAME:
            self._names[words[0]] = _text(words[1:])
        elif opcode == MEMBER_NAME:
            self._member_names[words[0], words[1]] = _text(words[2:])
        elif opcode == DECORATE:
            self._decorations[words[0], words[1]] = words[2] if len(words) > 2 else 0
        elif opcode == MEMBER_DECORATE and words[2] == NON_WRITABLE:
            self._read_only.add(words[0])
        elif opcode == MEMBER_DECORATE and words[2] == OFFSET:
            self._offsets[words[0], words[1]] = words[3]
        elif opcode == TYPE_INT and words[1] == 32:
            self._scalars[words[0]] = "int" if words[2] else "uint"
        elif opcode == TYPE_FLOAT and words[1] == 32:
            self._scalars[words[0]] = "float"
        elif opcode == TYPE_ARRAY:
            self._arrays[words[0]] = (words[1], words[2])
        elif opcode == CONSTANT:
            self._constants[words[1]] = words[2]
        elif opcode == TYPE_STRUCT:
            self._structs[words[0]] = list(words[1:])
        elif opcode == TYPE_IMAGE:
            self._images[words[0]] = words[6]
        elif opcode == TYPE_POINTER:
            self._pointees[words[0]] = words[2]
        elif opcode == VARIABLE:
            self._variables.append((words[1], words[0], words[2]))
        elif opcode in SPEC_CONSTANTS:
            self._spec_constants.append(words[1])
        elif opcode == SPEC_COMPOSITE:
            self._composites[words[1]] = list(words[2:])

    def _features(self) -> int:
        bits = 0
        for capability in self._capabilities:
            if capability not in CAPABILITIES:
                self._fail(
                    f"SPIR-V capability {capability} has no Feature: add it to glsl/shader.h and to CAPABILITIES of "
                    "glsl/reflect_spirv.py, or do without it"
                )
            feature = CAPABILITIES[capability]
            bits |= 1 << FEATURES.index(feature) if feature else 0
        return bits

    def _bindings(self) -> list[int]:
        """The kind of each binding, from 0 on. Blocks that only read may share one, in words of other sizes."""
        bindings: dict[int, str] = {}
        readers: set[int] = set()
        kinds: dict[int, int] = {}
        for variable, pointer, storage in self._variables:
            name = self._names.get(variable) or self._names.get(self._pointees.get(pointer, 0), "?")
            if storage not in (UNIFORM_CONSTANT, UNIFORM, STORAGE_BUFFER):
                continue
            kind = self._kind(name, pointer, storage)
            if self._decorations.get((variable, SET), 0) != 0:
                self._fail(f"'{name}' is in set {self._decorations[variable, SET]}; everything is in set 0")
            binding = self._decorations.get((variable, BINDING))
            if binding is None:
                self._fail(f"'{name}' needs layout(binding = N)")
            reads = self._pointees.get(pointer) in self._read_only
            if binding in bindings and not (reads and binding in readers):
                self._fail(f"'{bindings[binding]}' and '{name}' both have binding {binding}")
            bindings[binding], kinds[binding] = name, kind
            if reads:
                readers.add(binding)
        missing = next((i for i in range(len(bindings)) if i not in bindings), None)
        if missing is not None:
            self._fail(f"binding {missing} is not declared, but {max(bindings)} is: count from 0, outputs first")
        counts = [list(kinds.values()).count(kind) for kind in (BUFFER, TEXTURE, IMAGE)]
        if len(kinds) > MAX_BINDINGS or counts[TEXTURE] > MAX_TEXTURES or counts[IMAGE] > MAX_IMAGES:
            self._fail(
                f"{counts} buffers, textures and images; there can be {MAX_TEXTURES} textures, {MAX_IMAGES} images"
            )
        return [kinds[binding] for binding in range(len(kinds))]

    def _kind(self, name: str, pointer: int, storage: int) -> int:
        if storage == STORAGE_BUFFER:
            return BUFFER
        sampled = self._images.get(self._pointees.get(pointer, 0))
        if storage == UNIFORM or sampled not in (SAMPLED, STORAGE):
            self._fail(f"'{name}' is a uniform block or a sampler; kernels get storage buffers, textures without a "
                       "sampler, storage images and push constants")  # fmt: skip
        return TEXTURE if sampled == SAMPLED else IMAGE

    def _params(self) -> list[tuple[str, str, int]]:
        blocks = [self._pointees[pointer] for _, pointer, storage in self._variables if storage == PUSH_CONSTANT]
        params, at = [], 0
        for i, member in enumerate(self._structs[blocks[0]] if blocks else []):
            name, count = self._member_names.get((blocks[0], i), ""), 0
            if member in self._arrays and self._decorations.get((member, ARRAY_STRIDE)) == 4:
                member, length = self._arrays[member]
                count = self._constants.get(length, 0)
            if member not in self._scalars:
                self._fail(
                    f"push constant '{name}' is not a uint, int or float, or an array of these: take vectors apart"
                )
            offset = self._offsets.get((blocks[0], i))
            if offset != at:
                self._fail(f"push constant '{name}' is at byte {offset}, not {at}: write no layout(offset)")
            params.append((self._scalars[member], name, count))
            at += 4 * max(count, 1)
        return params

    def _spec(self) -> int:
        """How many specialization constants there are; 0 is the workgroup's size in x."""
        ids = {self._decorations[constant, SPEC_ID]: constant for constant in self._spec_constants
               if (constant, SPEC_ID) in self._decorations}  # fmt: skip
        size = next((parts for c, parts in self._composites.items()
                     if self._decorations.get((c, BUILT_IN)) == WORKGROUP_SIZE), None)  # fmt: skip
        if size is None or ids.get(0) != size[0]:
            self._fail(
                "the workgroup's size is not specialization constant 0: include core/launch.glslh, use item() or LANES"
            )
        missing = next((i for i in range(len(ids)) if i not in ids), None)
        if missing is not None:
            self._fail(f"constant_id {missing} is not declared, but {max(ids)} is: they count from 1 without gaps")
        return len(ids)
