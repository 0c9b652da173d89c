# SPDX-License-Identifier: Apache-2.0
"""The bytes of constants, against the words of serialization/schema.fbs."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.format.constants import file_bytes, pack, pack_i4, unpack_i4
from pumice.format.ir import DType


def test_even_element_is_the_low_nibble_and_values_are_stored_plus_eight() -> None:
    assert pack_i4(np.array([-8, 7, 0, 1])) == bytes([0xF0, 0x98])


def test_each_row_starts_on_a_byte() -> None:
    assert pack_i4(np.array([[1, 2, 3], [-1, -2, -3]])) == bytes([0xA9, 0x0B, 0x67, 0x05])


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (3, 5), (2, 3, 8), (0, 4), (4, 1)])
def test_unpack_is_the_inverse(shape) -> None:
    values = np.random.default_rng(0).integers(-8, 8, shape).astype(np.int8)
    data = pack_i4(values)
    assert len(data) == file_bytes(DType.i4, shape)
    np.testing.assert_array_equal(unpack_i4(data, shape), values)


@pytest.mark.parametrize("value", [-9, 8, 127])
def test_a_value_beyond_four_bits_is_refused(value) -> None:
    with pytest.raises(ValueError, match=str(value)):
        pack_i4(np.array([0, value]))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (DType.f32, np.array([1.5, -0.0, np.inf], np.float32)),
        (DType.f16, np.array([1.5, 65504], np.float16)),
        (DType.i64, np.array([-1, 2**31 - 1], np.int64)),
        (DType.bool, np.array([True, False])),
        (DType.u8, np.array([0, 255], np.uint8)),
        (DType.i8, np.array([-128, 127], np.int8)),
    ],
)
def test_little_endian_and_as_wide_as_the_schema_says(dtype, values) -> None:
    data = pack(values, dtype)
    assert data == values.tobytes() and len(data) == file_bytes(dtype, values.shape)
    assert pack(values[::-1], dtype) == values[::-1].tobytes()


def test_no_silent_conversion() -> None:
    with pytest.raises(TypeError):
        pack(np.array([1.5]), DType.i64)
