# SPDX-License-Identifier: Apache-2.0
"""The byte layout of constants in a file (serialization/schema.fbs, enum DType)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from pumice.format.ir import DType

NUMPY = {
    DType.f32: np.dtype("<f4"),
    DType.f16: np.dtype("<f2"),
    DType.i32: np.dtype("<i4"),
    DType.i64: np.dtype("<i8"),
    DType.bool: np.dtype("?"),
    DType.u8: np.dtype("u1"),
    DType.i8: np.dtype("i1"),
}


def file_bytes(dtype: DType, shape: Sequence[int]) -> int:
    """Bytes that a tensor takes in the file."""
    if dtype is not DType.i4:
        return prod(shape) * NUMPY[dtype].itemsize
    return prod(shape[:-1]) * ((shape[-1] + 1) // 2) if shape else 1


def pack_i4(values: np.ndarray) -> bytes:
    """Integers in -8..7 as nibbles: element 2k in the low one, stored as value + 8, every row starting on a byte.

    The unused high nibble of an odd row holds 0 (the value -8), so that equal tensors have equal bytes.
    """
    values = np.atleast_1d(np.asarray(values))
    if values.size and (values.min() < -8 or values.max() > 7):
        raise ValueError(f"pack_i4: values {values.min()}..{values.max()} are outside of -8..7")
    nibbles = (values.astype(np.int8) + 8).astype(np.uint8)
    if nibbles.shape[-1] % 2:
        nibbles = np.concatenate([nibbles, np.zeros((*nibbles.shape[:-1], 1), np.uint8)], -1)
    return (nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)).tobytes()


def unpack_i4(data: bytes, shape: Sequence[int]) -> np.ndarray:
    """The inverse of pack_i4."""
    width = shape[-1] if shape else 1
    packed = np.frombuffer(data, np.uint8).reshape(-1, (width + 1) // 2)
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), 2 * packed.shape[1])[:, :width]
    return (nibbles.astype(np.int8) - 8).reshape(shape)


def pack(values: np.ndarray, dtype: DType) -> bytes:
    """The bytes of `values` in the file; values must already be of that dtype."""
    if dtype is DType.i4:
        return pack_i4(values)
    return np.ascontiguousarray(values).astype(NUMPY[dtype], casting="equiv").tobytes()
