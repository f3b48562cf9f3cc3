"""A zip archive written from its beginning to its end, without a seek.

PKWARE's APPNOTE.TXT 6.3.10. Sizes and CRC-32 follow an entry (its data descriptor); zip64 records stand where a number
needs them. What is compressed already is deflated into stored blocks: readers that go from front to back cannot find
the end of an entry that is stored.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from isal import isal_zlib

LOCAL, DESCRIPTOR, CENTRAL, END = 0x04034B50, 0x08074B50, 0x02014B50, 0x06054B50
END64, LOCATOR64 = 0x06064B50, 0x07064B50
DEFLATE = 8
FLAGS = 1 << 3 | 1 << 11
"""A data descriptor follows; names are UTF-8."""
VERSION, VERSION64 = 20, 45
UNIX = 3 << 8
FILE_MODE, FOLDER_MODE = 0o100644 << 16, 0o040755 << 16 | 0x10
LIMIT32, LIMIT16 = 0xFFFFFFFF, 0xFFFF
LARGE_BYTES = 0xF0000000
"""Bytes of an object from which its sizes may need 64 bits: stored blocks make it a little longer."""
OLDEST, NEWEST = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)

Moment = tuple[int, int, int, int, int, int]
"""Year, month, day, hour, minute, second in UTC."""


class _Entry(NamedTuple):
    name: bytes
    moment: Moment
    offset: int
    large: bool


class ZipWriter:
    """Returns the archive's bytes piece by piece. One entry is open at a time."""

    def __init__(self) -> None:
        self.written = 0
        """Bytes returned so far."""
        self.entries = 0
        self._directory = bytearray()
        self._open: _Entry | None = None
        self._crc = self._size = self._packed = 0

    def start(self, name: str, moment: Moment, size: int, *, compress: bool) -> bytes:
        """Return the head of an entry; `size` is about that of its content."""
        entry = _Entry(name.encode(), moment, self.written, size >= LARGE_BYTES)
        self._open = entry
        self._crc = self._size = self._packed = 0
        # level 0 of isal compresses too
        self._deflate = isal_zlib.compressobj(1, DEFLATE, -15) if compress else zlib.compressobj(0, DEFLATE, -15)
        extra = struct.pack("<HHQQ", 1, 16, 0, 0) if entry.large else b""
        version = VERSION64 if entry.large else VERSION
        unknown = LIMIT32 if entry.large else 0
        head = struct.pack(
            "<IHHHIIIIHH",
            LOCAL,
            version,
            FLAGS,
            DEFLATE,
            _dos(moment),
            0,
            unknown,
            unknown,
            len(entry.name),
            len(extra),
        )
        return self._count(head + entry.name + extra)

    def data(self, content: bytes) -> bytes:
        """Return what a piece of the entry's content becomes. It computes: call it in a thread."""
        self._crc = isal_zlib.crc32(content, self._crc)
        self._size += len(content)
        packed: bytes = self._deflate.compress(content)
        self._packed += len(packed)
        return self._count(packed)

    def end(self) -> bytes:
        """Return the rest of the entry, which is in the directory from now on."""
        entry, tail = self._close()
        self._add(entry)
        return tail

    def abandon(self) -> bytes:
        """Return the rest of an entry that failed: the directory leaves it out, so that nobody takes it for whole."""
        return self._close()[1]

    def folder(self, name: str, moment: Moment) -> bytes:
        """Return a whole entry of a folder."""
        return self.start(name, moment, 0, compress=False) + self.end()

    def finish(self) -> bytes:
        """Return the directory, which ends the archive."""
        start, length = self.written, len(self._directory)
        end64 = b""
        if self.entries >= LIMIT16 or start >= LIMIT32 or length >= LIMIT32:
            counts = (self.entries, self.entries, length, start)
            end64 = struct.pack("<IQHHIIQQQQ", END64, 44, UNIX | VERSION64, VERSION64, 0, 0, *counts)
            end64 += struct.pack("<IIQI", LOCATOR64, 0, start + length, 1)
        count = min(self.entries, LIMIT16)
        places = (count, count, min(length, LIMIT32), min(start, LIMIT32))
        return self._count(bytes(self._directory) + end64 + struct.pack("<IHHHHIIH", END, 0, 0, *places, 0))

    def _close(self) -> tuple[_Entry, bytes]:
        entry = self._open
        assert entry is not None
        self._open = None
        rest: bytes = self._deflate.flush()
        self._packed += len(rest)
        sizes = "<IIQQ" if entry.large else "<IIII"
        return entry, self._count(rest + struct.pack(sizes, DESCRIPTOR, self._crc, self._packed, self._size))

    def _add(self, entry: _Entry) -> None:
        large = entry.large or entry.offset >= LIMIT32
        extra = struct.pack("<HHQQQ", 1, 24, self._size, self._packed, entry.offset) if large else b""
        packed, size, offset = (LIMIT32,) * 3 if large else (self._packed, self._size, entry.offset)
        version = VERSION64 if large else VERSION
        mode = FOLDER_MODE if entry.name.endswith(b"/") else FILE_MODE
        self._directory += struct.pack(
            "<IHHHHIIIIHHHHHII",
            CENTRAL,
            UNIX | version,
            version,
            FLAGS,
            DEFLATE,
            _dos(entry.moment),
            self._crc,
            packed,
            size,
            len(entry.name),
            len(extra),
            0,
            0,
            0,
            mode,
            offset,
        )
        self._directory += entry.name + extra
        self.entries += 1

    def _count(self, piece: bytes) -> bytes:
        self.written += len(piece)
        return piece


def _dos(moment: Moment) -> int:
    """Return a time as MS-DOS has it: to two seconds, from 1980 on."""
    year, month, day, hour, minute, second = min(max(moment, OLDEST), NEWEST)
    return (year - 1980) << 25 | month << 21 | day << 16 | hour << 11 | minute << 5 | second // 2
