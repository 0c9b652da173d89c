# SPDX-License-Identifier: Apache-2.0
"""How numbers are written for people."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """1 node, 2 nodes."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size_text(count: int) -> str:
    """Bytes in the unit that suits them: 736 B, 12.3 kB, 93.1 MB, 1.25 GB. A kB is 1000 bytes."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= 0.9995 * factor:
            return f"{count / factor:.{2 if unit == 'GB' else 1}f} {unit}"
    return f"{count} B"
