# SPDX-License-Identifier: Apache-2.0
"""Powers, logarithms and random numbers in integers, so that a GPU makes the very same: with
glsl/include/math/fixed_point.glslh, which has the polynomials once more.

All numbers are unsigned, of 32 bits, here in arrays of uint64; Qn means that 2^n stands for 1. Logarithms have base 2.
"""

from __future__ import annotations

import numpy as np

ONE = 1 << 24  # of Q24
COLD = 38 * ONE  # what is so far below the largest cannot win: gumbel() is between -6 and 33
_ALL = 0xFFFFFFFF

# Factors of polynomials, nearly minimax, in Q32:
#   1 - 2^-x = x * (p0 - x * (p1 - ..))
#   log2(1 + x) = 2 * x * (p0 - x * (p1 - ..))
#   log2(-log2(1 - x) / (x * log2 e)) = x * (p0 + x * (p1 + .. x * (p5 - x * (p6 - x * p7)))), x up to 1/2
_POWER = (0xB17217F7, 0x3D7F7BCB, 0x0E358127, 0x027641A9, 0x005728B0, 0x0009C200, 0x0000BDA6)
_LOG = (
    *(0xB8AA3B19, 0x5C551097, 0x3D8C5D47, 0x2E13AF4B, 0x244FA966),
    *(0x1C329E22, 0x13786AC6, 0x0A6904EB, 0x039BDBA3, 0x0096254A),
)
_LOG_OF_LOG = (0xB8AA3A56, 0x4CF26B80, 0x2E089640, 0x223CEB32, 0x092B3139, 0x4E72DE8B, 0x66A6A0CB, 0x76524EB2)
_LOG_E = 0x71547653  # log2(e) - 1
_LOG_LOG_E = 0x00875D3C  # log2(log2(e)), Q24


def octaves(distance: np.ndarray) -> np.ndarray:
    """distance * log2(e), Q24; from 128 on the largest number."""
    return np.where(distance < 128 * ONE, distance + _high(distance, _LOG_E), _ALL)


def weight(octaves: np.ndarray) -> np.ndarray:
    """2^-octaves, Q32, of Q24: 2^32 - 1 at 0, and 0 from 32 on."""
    x = (octaves % ONE) << 8
    return (_ALL - _high(x, _falling(x, _POWER))) >> np.minimum(octaves >> 24, 32)


def log2(x: np.ndarray) -> np.ndarray:
    """log2(x), Q27, of whole numbers from 1 on."""
    top = np.frexp(x.astype(np.float64))[1].astype(np.uint64) - 1
    fraction = (x << (32 - top)) & _ALL
    return (top << 27) + (_high(fraction, _falling(fraction, _LOG)) >> 4)


def gumbel(bits: np.ndarray) -> np.ndarray:
    """-log2(-log2(1 - v)), v = (bits + 0.5) / 2^32: Q24, signed; off by less than 3 units."""
    upper = bits >> 31 != 0
    near = log2(2 * np.where(upper, _ALL - bits, bits) + 1)  # the log of 2^33 * the smaller of v and 1 - v
    x = np.where(upper, 0, bits)  # v, Q32
    small = (33 << 24) - (near >> 3).astype(np.int64) - _LOG_LOG_E - (_high(x, _log_of_log(x)) >> 8).astype(np.int64)
    large = (26 << 24) - (log2((33 << 26) - (near >> 1)) >> 3).astype(np.int64)
    return np.where(upper, large, small)


def inverse(mantissa: int) -> int:
    """2^24 / m, Q31, of the 24 bits of a float's mantissa, 2^23 to 2^24 - 1."""
    return ((1 << 55) - 1) // mantissa


def hashed(x: np.ndarray) -> np.ndarray:
    """PCG-RXS-M-XS."""
    s = (x * 747796405 + 2891336453) & _ALL
    w = (((s >> ((s >> 28) + 4)) ^ s) * 277803737) & _ALL
    return (w >> 22) ^ w


def times(x: np.ndarray, factor: int) -> np.ndarray:
    """x * factor / 2^32, rounded down."""
    return _high(x, factor)


def _high(x: np.ndarray, y: np.ndarray | int) -> np.ndarray:
    return x * np.asarray(y, np.uint64) >> np.uint64(32)


def _falling(x: np.ndarray, factors: tuple[int, ...]) -> np.ndarray:
    y = np.full_like(x, factors[-1])
    for factor in factors[-2::-1]:
        y = factor - _high(x, y)
    return y


def _log_of_log(x: np.ndarray) -> np.ndarray:
    y = _falling(x, _LOG_OF_LOG[5:])
    for factor in _LOG_OF_LOG[4::-1]:
        y = factor + _high(x, y)
    return y
