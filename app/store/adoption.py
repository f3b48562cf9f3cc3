"""All files of a bucket at once: rows for what others made or changed, none for what they took away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.index.rows import Bucket, is_tree
from app.index.rows import Found as NewRow
from app.store.calls import driver_calls
from app.store.tree import Tree
from app.store.tree_reading import describe
from storage_drivers.tree import Found, Seen

BATCH = 500
"""Rows of one transaction."""


@dataclass(slots=True)
class Scanned:
    """What a scan found."""

    seen: Seen = field(default_factory=Seen)
    adopted: int = 0
    """Files that others made or changed, now with rows."""
    vanished: int = 0
    """Rows whose file others took away, gone now."""
    later: int = 0
    """Files that are being changed just now: the next look, or the next reader, sees to them."""


Progress = Callable[[Scanned], None]


async def scan(tree: Tree, bucket: Bucket, progress: Progress = lambda _: None) -> Scanned:
    """Look at every file and every row of a bucket. Raises StoreUnavailable when the store is not mounted."""
    scanned = Scanned()
    with driver_calls():
        async for batch in tree.files.scan(bucket.name, scanned.seen):
            for first in range(0, len(batch), BATCH):
                await adopt(tree, bucket, batch[first : first + BATCH], scanned)
            progress(scanned)
    await forget_vanished(tree, bucket, scanned)
    progress(scanned)
    return scanned


async def adopt(tree: Tree, bucket: Bucket, found: Sequence[Found], scanned: Scanned) -> None:
    """Make the rows of some keys what their files are."""
    position = await tree.index.position()
    new: list[NewRow] = []
    for file in found:
        version = await tree.index.version(bucket.id, file.key)
        if version is not None and not is_tree(version.body):
            continue
        path, stamp = (file.path, None) if version is None else tree.parse(version.body)
        if path != file.path or stamp == file.stamp:
            continue  # of two files for one key the index says which counts
        if not tree.files.settled(file.stamp):
            scanned.later += 1
            continue
        seen = 0 if version is None else version.seq
        new.append(describe(file.key, tree.body_of(file.path, file.stamp), file.stamp, seen))
    new = await _unchanged(tree, new)
    if new:
        made = await tree.index.adopt(bucket.id, bucket.owner_id, position, new)
        scanned.adopted += sum(1 for seq in made if seq)
        scanned.later += made.count(0)


async def _unchanged(tree: Tree, new: list[NewRow]) -> list[NewRow]:
    """Those whose file is as it was found: the row was read after the file, and both must have been there at once."""
    places = [tree.parse(row.body) for row in new]
    stamps = await tree.files.find_all([path for path, _ in places]) if new else []
    return [row for row, (_, expected), stamp in zip(new, places, stamps, strict=True) if stamp == expected]


async def forget_vanished(tree: Tree, bucket: Bucket, scanned: Scanned) -> None:
    """Remove the rows of a bucket whose files are not there."""
    after = ""
    while rows := await tree.index.current_after(bucket.id, after, BATCH):
        after = rows[-1][0]
        plain = [(key, seq, tree.parse(body)[0]) for key, seq, body in rows if is_tree(body)]
        with driver_calls():
            stamps = await tree.files.find_all([path for _, _, path in plain])
        gone = [(key, seq) for (key, seq, _), stamp in zip(plain, stamps, strict=True) if stamp is None]
        if gone:
            scanned.vanished += sum(await tree.index.forget_vanished(bucket.id, gone))
