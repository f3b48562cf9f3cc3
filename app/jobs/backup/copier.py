"""Copies of the files of all stores into a place of backups. Every method blocks.

What a blob's file has never changes, and a pack only grows: a file that an older backup has, or the beginning of a
pack, is not read again. A plain file is as old as its stamp.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from xxhash import xxh3_128_hexdigest

from sluice_s3.app.index.tools.manifest import BackedFile, Manifest, Part
from sluice_s3.app.jobs.backup.copying import SourceFailed, open_source
from sluice_s3.app.jobs.backup.place import BackupPlace
from sluice_s3.app.settings import StoreSettings
from sluice_s3.app.store.backup_files import PLAIN, further_files, is_further_file
from sluice_s3.storage_drivers.layout import PACK_SUFFIX
from sluice_s3.storage_drivers.tree.openat2 import open_regular
from sluice_s3.storage_drivers.tree.types import Stamp, stamp_of

RETRY_SECONDS = (0.5, 1.0, 1.5)
"""Pauses before a file that seems missing or short is opened again: a network mount may not know it yet."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
"""Errors of the backup's own disk: what is read gives none of them."""
STABLE_ATTEMPTS = 5
"""How often a plain file that changes while it is read is read again."""
CHANGED = "?"
"""In place of the stamp of a plain file that is not as its row describes it."""

Progress = Callable[[str, int, int], None]


@dataclass
class Copies:
    """What became of one file, or of all of them."""

    files: list[BackedFile] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    gone: list[tuple[str, str]] = field(default_factory=list)
    copied_files: int = 0
    copied_bytes: int = 0
    changed: int = 0
    """Plain files that changed since the index was copied."""


class Copier:
    """Copies the files of `manifest` that `older`, the newest backup before, does not have.

    `lines` has for each store the directory of its shared files.
    """

    def __init__(
        self,
        place: BackupPlace,
        stores: Mapping[str, StoreSettings],
        lines: Mapping[str, str],
        manifest: Manifest,
        older: Manifest | None,
    ) -> None:
        self._place = place
        self._stores = stores
        self._lines = lines
        self._manifest = manifest
        self._older = older

    def run(self, progress: Progress, stopped: threading.Event) -> Copies:
        """Copy everything; return the sums. Ends early, without a result that counts, when `stopped` is set."""
        total, done, sums = self._manifest.totals()[0], 0, Copies()
        with ThreadPoolExecutor(self._place.threads) as threads:
            for page in self._manifest.pages():
                if stopped.is_set():
                    break
                firsts = [file for file in page if not is_further_file(file.path)]
                known = [self._known(file) for file in firsts]
                results = list(threads.map(self._copy, firsts, known))
                self._note(results, sums)
                done += len(firsts)
                progress("files", done, total)
        self._place.settle()
        return sums

    def _note(self, results: Sequence[Copies], sums: Copies) -> None:
        files = [file for one in results for file in one.files]
        parts = [part for one in results for part in one.parts]
        faults = [fault for one in results for fault in one.faults]
        self._manifest.add(files, parts, faults)
        self._manifest.remove(gone := [path for one in results for path in one.gone])
        sums.gone += gone
        sums.faults += faults
        for one in results:
            sums.copied_files += one.copied_files
            sums.copied_bytes += one.copied_bytes
            sums.changed += one.changed

    def _known(self, file: BackedFile) -> list[Part]:
        """Return the parts of a file, and of a blob's further files, that an older backup has."""
        older = self._older
        if (
            older is None
            or file.store not in self._lines
            or (file.stamp and older.stamp(file.store, file.path) != file.stamp)
        ):
            return []
        paths = [file.path]
        if not file.stamp and not file.path.endswith(PACK_SUFFIX):
            paths += further_files(file.path)
        line = self._lines[file.store] + "/"
        parts = [part for path in paths for part in older.parts(file.store, path) if part.name.startswith(line)]
        return parts if all(map(self._place.has, parts)) else []

    def _copy(self, file: BackedFile, known: list[Part]) -> Copies:
        if file.store not in self._lines:
            return Copies(files=[file], faults=[(file.store, file.path, "the settings do not name its store")])
        copy = (
            self._copy_plain if file.stamp else self._copy_pack if file.path.endswith(PACK_SUFFIX) else self._copy_blob
        )
        for pause in (*RETRY_SECONDS, None):
            try:
                return copy(file, known)
            except SourceFailed as error:
                if pause is None:
                    return Copies(files=[file], faults=[(file.store, file.path, str(error))])
                time.sleep(pause)
        raise AssertionError

    # blobs and packs
    def _open(self, file: BackedFile, path: str) -> int:
        root = self._stores[file.store].directory
        assert root is not None
        return open_source(root / path)

    def _copy_blob(self, file: BackedFile, known: list[Part]) -> Copies:
        if known:
            return Copies([BackedFile(part.store, part.path, "", part.size) for part in known], known)
        result = Copies()
        paths = [file.path]
        root = self._stores[file.store].directory
        if os.path.lexists(f"{root}/{further_files(file.path)[0]}"):  # the last of them to go
            paths += [path for path in further_files(file.path) if os.path.lexists(f"{root}/{path}")]
        for path in paths:
            descriptor = self._open(file, path)
            try:
                size = os.fstat(descriptor).st_size
                self._put(result, file._replace(path=path, size=size), descriptor, 0, size, path.rpartition("/")[2])
            finally:
                os.close(descriptor)
        return result

    def _copy_pack(self, file: BackedFile, known: list[Part]) -> Copies:
        have = sum(part.size for part in known)
        result = Copies(parts=list(known))
        if have >= file.size:
            result.files.append(file._replace(size=have))
            return result
        descriptor = self._open(file, file.path)
        try:
            leaf = f"{file.path.rpartition('/')[2]}.{have:x}-{file.size - have:x}"
            self._put(result, file, descriptor, have, file.size - have, leaf)
        finally:
            os.close(descriptor)
        return result

    # plain files
    def _copy_plain(self, file: BackedFile, known: list[Part]) -> Copies:
        if known:
            return Copies([file._replace(size=sum(part.size for part in known))], known)
        path = self._stores[file.store].path
        assert path is not None
        root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for _ in range(STABLE_ATTEMPTS):
                found = open_regular(root, file.path.removeprefix(PLAIN).encode())
                if found is None:
                    return Copies(gone=[(file.store, file.path)])
                try:
                    result = self._copy_opened(file, *found)
                finally:
                    os.close(found[0])
                if result is not None:
                    return result
        except (FileNotFoundError, NotADirectoryError):
            return Copies(gone=[(file.store, file.path)])
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            raise SourceFailed(error.strerror) from error
        finally:
            os.close(root)
        raise SourceFailed("it changes all the time")

    def _copy_opened(self, file: BackedFile, descriptor: int, status: os.stat_result) -> Copies | None:
        """Copy an open plain file; None when it changed meanwhile."""
        stamp = stamp_of(status)
        leaf = f"t-{xxh3_128_hexdigest(f'{file.path}{chr(0)}{stamp}'.encode())}"
        as_row = str(stamp) == file.stamp or str(Stamp(stamp.size, stamp.mtime_ns, 0)) == file.stamp
        result = Copies(changed=not as_row)
        kept = file._replace(stamp=file.stamp if as_row else CHANGED, size=stamp.size)
        try:
            self._put(result, kept, descriptor, 0, stamp.size, leaf)
        except SourceFailed:
            return None
        return result if stamp_of(os.fstat(descriptor)) == stamp else None

    # the place of backups
    def _put(self, result: Copies, file: BackedFile, descriptor: int, start: int, size: int, leaf: str) -> None:
        """Copy a run of an open file into a shared file, unless it is there; note it in `result`."""
        name = f"{self._lines[file.store]}/{xxh3_128_hexdigest(leaf.encode())[:2]}/{leaf}"
        digest, written = self._place.put(name, descriptor, start, size)
        if written:
            result.copied_files += 1
            result.copied_bytes += size
        result.files.append(file)
        result.parts.append(Part(file.store, file.path, start, size, digest, name))
