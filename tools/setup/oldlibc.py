# SPDX-License-Identifier: Apache-2.0
"""Let shared libraries built on a newer Debian load on glibc 2.36 and GCC 12's libstdc++.

What keeps such a library from loading is the symbol *versions* it asks for, not the code behind them. `relax()` edits
an unpacked copy in place:

  * requirements for versions newer than this system's are unlinked from .gnu.version_r;
  * the symbols that carried them lose their version;
  * `__isoc23_strtol` and its kin (the C23 parsers: they also accept "0b101") become plain `strtol`;
  * two libstdc++ hooks that GCC 12 does not export become weak.

Any other symbol is refused by name, so that a library which needs more fails at set-up and not at run time. Libraries
only: an executable built by GCC 13 or later that is edited so loses its iostreams.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

# The newest version of each family that Debian 12 has.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}

C23 = "__isoc23_"  # followed by the C17 function's name
C23_FUNCTIONS = {f"{text}to{kind}" for text in ("str", "wcs") for kind in ("l", "ul", "ll", "ull", "imax", "umax")}
C23_FUNCTIONS |= {f"{v}{source}{wide}scanf" for v in ("", "v") for source in ("", "f", "s") for wide in ("", "w")}
SAME_MEANING = {"fmod", "fmodf"}  # 2.38 dropped only the SVID error handling
MAY_BE_ABSENT = {
    "_ZSt21ios_base_library_initv": "Debian 12's <iostream> starts the streams in each program itself",
    "__cxa_call_terminate": "reached only on the way to std::terminate",
}

SHT_DYNSYM, SHT_VERNEED, SHT_VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
SHT_DYNAMIC = 6
UNVERSIONED, WEAK = 1, 2


class Refused(Exception):
    """The library needs something that Debian 12 does not have."""


def is_too_new(version: str) -> bool:
    family, _, number = version.partition("_")
    if family not in NEWEST or not number[:1].isdigit():
        return False
    parts = tuple(int(part) for part in number.split(".") if part.isdigit())
    return parts > NEWEST[family]


class Elf:
    """The few parts of a 64-bit little-endian ELF file that the edit needs."""

    def __init__(self, data: bytearray):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.data = data
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        # Each header as (position, type, offset, bytes, link, info).
        self.sections = []
        for position in range(table, table + size * count, size):
            _, kind, _, _, offset, length, link, info = struct.unpack_from("<IIQQQQII", data, position)
            self.sections.append((position, kind, offset, length, link, info))

    def section(self, kind: int):
        return next((s for s in self.sections if s[1] == kind), None)

    def text(self, table: int, offset: int) -> str:
        start = self.sections[table][2] + offset
        return self.data[start : self.data.index(0, start)].decode()

    def set_dynamic(self, tag: int, change) -> None:
        _, _, offset, length, _, _ = self.section(SHT_DYNAMIC)
        for position in range(offset, offset + length, 16):
            found, value = struct.unpack_from("<QQ", self.data, position)
            if found == tag:
                struct.pack_into("<Q", self.data, position + 8, change(value))


def _unlink_versions(elf: Elf) -> set[int]:
    """Take the too-new entries off the list of needed versions; returns their numbers."""
    data = elf.data
    header, _, offset, _, strings, entries = elf.section(SHT_VERNEED)
    numbers: set[int] = set()
    position, previous, left = offset, None, entries
    for _ in range(entries):
        _, count, _, first, step = struct.unpack_from("<HHIII", data, position)
        aux, aux_previous, remaining = position + first, None, count
        for _ in range(count):
            _, _, number, name, aux_step = struct.unpack_from("<IHHII", data, aux)
            if is_too_new(elf.text(strings, name)):
                numbers.add(number & 0x7FFF)
                remaining -= 1
                if aux_previous is None:  # the library's head points past it
                    (head,) = struct.unpack_from("<I", data, position + 8)
                    struct.pack_into("<I", data, position + 8, head + aux_step)
                else:  # the one before points past it, or becomes the last
                    (gap,) = struct.unpack_from("<I", data, aux_previous + 12)
                    struct.pack_into("<I", data, aux_previous + 12, gap + aux_step if aux_step else 0)
            else:
                aux_previous = aux
            aux += aux_step
        struct.pack_into("<H", data, position + 2, remaining)
        if remaining:
            previous = position
        else:  # nothing is left to ask of this library: unlink it as well
            left -= 1
            if previous is not None:
                (gap,) = struct.unpack_from("<I", data, previous + 12)
                struct.pack_into("<I", data, previous + 12, gap + step if step else 0)
            else:
                elf.set_dynamic(DT_VERNEED, lambda address, step=step: address + step)
                address, file_offset, length = struct.unpack_from("<QQQ", data, header + 0x10)
                struct.pack_into("<QQQ", data, header + 0x10, address + step, file_offset + step, length - step)
        position += step
    if left != entries:
        elf.set_dynamic(DT_VERNEEDNUM, lambda _: left)
        struct.pack_into("<I", data, header + 0x2C, left)
    return numbers


def relax(path: Path) -> int:
    """Edit one library in place; returns how many symbols changed. Raises Refused and leaves the file as it was."""
    data = bytearray(path.read_bytes())
    elf = Elf(data)
    if not elf.section(SHT_VERNEED) or not elf.section(SHT_VERSYM):
        return 0
    numbers = _unlink_versions(elf)
    if not numbers:
        return 0
    versions = elf.section(SHT_VERSYM)[2]
    _, _, symbols, length, strings, _ = elf.section(SHT_DYNSYM)
    refused, changed = [], 0
    for index in range(length // 24):
        (version,) = struct.unpack_from("<H", data, versions + 2 * index)
        if version & 0x7FFF not in numbers:
            continue
        position = symbols + 24 * index
        name_offset, info = struct.unpack_from("<IB", data, position)
        name = elf.text(strings, name_offset)
        if name.startswith(C23) and name[len(C23) :] in C23_FUNCTIONS:
            struct.pack_into("<I", data, position, name_offset + len(C23))
        elif name in MAY_BE_ABSENT:
            data[position + 4] = (WEAK << 4) | (info & 15)
        elif name not in SAME_MEANING and info >> 4 != WEAK:  # what is weak may be absent
            refused.append(name)
        struct.pack_into("<H", data, versions + 2 * index, UNVERSIONED)
        changed += 1
    if refused:
        raise Refused(f"{path.name} needs {', '.join(sorted(refused))}, which Debian 12 does not have")
    path.write_bytes(data)
    return changed


def main() -> int:
    """Edit the libraries named on the command line."""
    for name in sys.argv[1:]:
        print(f"{name}: {relax(Path(name))} symbols")
    return 0


if __name__ == "__main__":
    sys.exit(main())
