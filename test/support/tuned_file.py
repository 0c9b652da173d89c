# SPDX-License-Identifier: Apache-2.0
"""The file that `pumice tune` keeps: read, and written again with other lines under the right seal, as only its owner
could (vulkan/cache_file.h)."""

from __future__ import annotations

import struct
from pathlib import Path

HEADER, MASK = 56, (1 << 64) - 1


def find(folder: Path) -> Path:
    """The one in a cache folder."""
    (path,) = folder.glob("tuned-*.bin")
    return path


def lines(folder: Path) -> list[str]:
    """Its text."""
    return find(folder).read_bytes()[HEADER:].decode().splitlines()


def rewrite(folder: Path, text: str) -> None:
    """Puts other text into it."""
    path, key = find(folder), (folder / "key").read_bytes()
    header, body = path.read_bytes()[: HEADER - 16], text.encode()
    header += struct.pack("<Q", len(body))
    path.write_bytes(header + struct.pack("<Q", siphash(key, header + body)) + body)


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4, after base/siphash.h."""
    k = struct.unpack("<2Q", key)
    v = [k[0] ^ 0x736F6D6570736575, k[1] ^ 0x646F72616E646F6D, k[0] ^ 0x6C7967656E657261, k[1] ^ 0x7465646279746573]

    def rotate(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & MASK

    def mix(rounds: int) -> None:
        for _ in range(rounds):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    tail = data[len(data) // 8 * 8 :]
    words = [*struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])]
    words.append(int.from_bytes(tail, "little") | (len(data) & 255) << 56)
    for word in words:
        v[3] ^= word
        mix(2)
        v[0] ^= word
    v[2] ^= 0xFF
    mix(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
