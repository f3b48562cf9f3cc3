"""What counted blobs must look like: who holds which bytes, without counting anything."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

Name = tuple[str, str]
"""Bucket and key."""


@dataclass(eq=False)
class Blob:
    """Bytes that were written once. `id` is the driver's, learned when a row is first seen to hold them."""

    content: bytes
    id: int = -1


class Extent(NamedTuple):
    """`size` bytes at `offset` of a blob."""

    blob: Blob
    offset: int
    size: int

    @property
    def content(self) -> bytes:
        """The bytes."""
        return self.blob.content[self.offset : self.offset + self.size]


@dataclass(eq=False)
class Body:
    """What a row of an object holds: one blob whole, or (`upload` is set) the pieces of a completed upload."""

    extents: tuple[Extent, ...]
    upload: int = 0

    @property
    def content(self) -> bytes:
        """The bytes."""
        return b"".join(extent.content for extent in self.extents)

    def slice(self, offset: int, length: int) -> tuple[Extent, ...]:
        """The extents that hold `length` bytes at `offset`."""
        found: list[Extent] = []
        for blob, start, size in self.extents:
            first, last = max(offset, 0), min(offset + length, size)
            if first < last:
                found.append(Extent(blob, start + first, last - first))
            offset -= size
        return tuple(found)


class Seen(NamedTuple):
    """What a worker saw of a row: digest of the bytes it read, and (blob id, offset, size) of its extents."""

    digest: str
    extents: tuple[tuple[int, int, int], ...]
    upload: int = 0


class Look(NamedTuple):
    """Every row, read through."""

    objects: dict[Name, Seen]
    parts: dict[int, dict[int, Seen]]
    """Of open uploads."""


def digest(content: bytes) -> str:
    """What stands for the bytes in a `Seen`."""
    return hashlib.sha1(content).hexdigest()


def written(content: bytes) -> tuple[Extent, ...]:
    """The extents of a body that is written now; an empty one has no blob."""
    return (Extent(Blob(content), 0, len(content)),) if content else ()


@dataclass
class State:
    """All rows. A state is never changed: each operation makes another one."""

    objects: dict[Name, Body] = field(default_factory=dict)
    parts: dict[int, dict[int, tuple[Extent, ...]]] = field(default_factory=dict)
    """Of open uploads: extents by part number."""

    def put(self, name: Name, body: Body) -> State:
        """PutObject and CopyObject."""
        return replace(self, objects={**self.objects, name: body})

    def delete(self, names: Iterable[Name]) -> State:
        """DeleteObject, DeleteObjects."""
        gone = set(names)
        return replace(self, objects={name: body for name, body in self.objects.items() if name not in gone})

    def open(self, upload: int) -> State:
        """CreateMultipartUpload."""
        return replace(self, parts={**self.parts, upload: {}})

    def put_part(self, upload: int, number: int, extents: tuple[Extent, ...]) -> State:
        """UploadPart and UploadPartCopy of an open upload."""
        return replace(self, parts={**self.parts, upload: {**self.parts[upload], number: extents}})

    def end(self, upload: int) -> State:
        """AbortMultipartUpload, and what Complete leaves of an upload."""
        return replace(self, parts={number: parts for number, parts in self.parts.items() if number != upload})

    def complete(self, upload: int, name: Name, numbers: Iterable[int]) -> State:
        """CompleteMultipartUpload of some of the parts."""
        extents = tuple(extent for number in sorted(numbers) for extent in self.parts[upload][number])
        return self.end(upload).put(name, Body(extents, upload))

    def is_seen(self, look: Look) -> bool:
        """The rows are these, with these bytes, out of these blobs; new blobs tell their ids (which nobody has yet)."""
        if look.objects.keys() != self.objects.keys() or look.parts.keys() != self.parts.keys():
            return False
        pairs = [(seen, self.objects[name].extents, self.objects[name].upload) for name, seen in look.objects.items()]
        for upload, found in look.parts.items():
            if found.keys() != self.parts[upload].keys():
                return False
            pairs += [(seen, self.parts[upload][number], 0) for number, seen in found.items()]
        learned: dict[Blob, int] = {}
        for seen, extents, upload in pairs:
            wanted = b"".join(extent.content for extent in extents)
            if (seen.digest, seen.upload, len(seen.extents)) != (digest(wanted), upload, len(extents)):
                return False
            for (blob_id, offset, size), extent in zip(seen.extents, extents, strict=True):
                known = extent.blob.id if extent.blob.id >= 0 else learned.setdefault(extent.blob, blob_id)
                if (blob_id, offset, size) != (known, extent.offset, extent.size):
                    return False
        for blob, blob_id in learned.items():
            blob.id = blob_id
        return True

    def holders(self) -> Counter[int | str]:
        """How many rows hold each blob (by its id) and each body of pieces, once no garbage is left."""
        bodies = list(self.objects.values())
        count: Counter[int | str] = Counter(f"pieces:{body.upload}" for body in bodies if body.upload)
        pieces = {body.upload: body for body in bodies if body.upload}.values()
        held: Iterator[tuple[Extent, ...]] = (
            *(body.extents for body in bodies if not body.upload),
            *(body.extents for body in pieces),
            *(extents for parts in self.parts.values() for extents in parts.values()),
        ).__iter__()
        for extents in held:
            count.update(extent.blob.id for extent in extents)
        return count
