"""Backups below a prefix of an S3 bucket, laid out as in a directory of backups.

A backup counts once its manifest is there, which comes last. Nothing is removed but by `prune`, and then only what is
older than a day: a backup that another gateway makes, a restored twin for instance, is not in any manifest yet.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial as bound
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.app.errors import DataDamaged, StoreUnavailable
from sluice_s3.app.index.tools.backup import ExportedIndex
from sluice_s3.app.index.tools.manifest import Manifest, Part
from sluice_s3.app.index.tools.sizes import Sizes
from sluice_s3.app.jobs.backup.copying import Copied, SourceFailed
from sluice_s3.app.jobs.backup.place import DATA, INDEX, KEYS, LOCK, MANIFEST, SNAPSHOTS, BackupPlace
from sluice_s3.app.jobs.backup.remote_files import RemoteFiles
from sluice_s3.app.transfer.endpoints import Connection, Endpoint
from sluice_s3.app.transfer.errors import TransferError, describe

THREADS = 8
GRACE_SECONDS = 86_400
MARK_BYTES = 32
T = TypeVar("T")


class BackupBucket(BackupPlace):
    """The backups in `bucket` below `prefix`, which is empty or ends with a slash. Raises StoreUnavailable."""

    threads = THREADS

    def __init__(self, endpoint: Endpoint, bucket: str, prefix: str) -> None:
        self.name = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket = bucket
        self._prefix = prefix
        self._local = TemporaryDirectory(prefix="sluice-backup-")
        self._work = Path(self._local.name)
        self._mark = ""
        self._sizes: Sizes | None = None
        self._listing = Lock()
        try:
            self._files = RemoteFiles(Connection(endpoint).client, bucket, prefix)
        except TransferError as error:
            self._local.cleanup()
            raise StoreUnavailable(reason=str(error)) from None

    def close(self) -> None:
        """Remove what was fetched."""
        if self._sizes is not None:
            self._sizes.close()
        self._local.cleanup()

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            raise StoreUnavailable(reason=f"{self.name}: {describe(error)}") from error

    def make(self, stores: Iterable[Path]) -> None:
        """Leave a mark there. See `BackupPlace.make`; `require_apart` looks for the mark."""
        names = self._ask(lambda: self._files.children(""))
        strange = sorted(names - {f"{SNAPSHOTS}/", f"{DATA}/", LOCK})
        if strange and f"{SNAPSHOTS}/" not in names:
            raise StoreUnavailable(reason=f"{self.name} is no place of backups: there is {strange[0]!r}")
        self._mark = self._ask(lambda: self._files.put_bytes(LOCK, secrets.token_bytes(MARK_BYTES)))

    def require_apart(self, index: ExportedIndex) -> None:
        """See `BackupPlace.require_apart`: the mark is not in the copied index."""
        if self._mark and index.has_version(self._bucket, self._prefix + LOCK, MARK_BYTES, self._mark):
            raise StoreUnavailable(reason=f"{self.name} lies in this gateway itself: choose another one")

    def locked(self, *, alone: bool) -> nullcontext[None]:
        """Do nothing: the hold on removals lets one backup of a gateway run, and what is read is never replaced."""
        return nullcontext()

    # backups
    def snapshots(self) -> list[str]:
        """See `BackupPlace.snapshots`."""
        return sorted(self._ask(lambda: self._files.manifests(f"{SNAPSHOTS}/", MANIFEST)))

    def fetch(self, name: str) -> Path:
        """See `BackupPlace.fetch`."""
        target = self._work / name
        target.mkdir(mode=0o700, exist_ok=True)
        for file in (INDEX, MANIFEST):
            self._fetch_file(name, file, target / file)
        keys = f"{SNAPSHOTS}/{name}/{KEYS}/"
        for key in sorted(self._ask(lambda: self._files.children(keys))):
            (target / KEYS).mkdir(mode=0o700, exist_ok=True)
            self._fetch_file(name, f"{KEYS}/{key}", target / KEYS / Path(key).name)
        return target

    def _fetch_file(self, name: str, file: str, target: Path) -> None:
        target.unlink(missing_ok=True)
        target.touch(mode=0o600)
        with target.open("wb") as written:
            try:
                self._ask(lambda: self._files.read(f"{SNAPSHOTS}/{name}/{file}", None, written.fileno()))
            except SourceFailed as error:
                raise DataDamaged(reason=f"{SNAPSHOTS}/{name}/{file} of {self.name}: {error}") from error

    def begin(self) -> Path:
        """See `BackupPlace.begin`."""
        partial = self._work / self.next_name()
        partial.mkdir(mode=0o700)
        return partial

    def commit(self, partial: Path) -> str:
        """See `BackupPlace.commit`."""
        keys = sorted((partial / KEYS).iterdir()) if (partial / KEYS).is_dir() else []
        for path in (*keys, partial / INDEX, partial / MANIFEST):
            with path.open("rb") as source:
                name = f"{SNAPSHOTS}/{partial.name}/{path.relative_to(partial)}"
                self._ask(bound(self._files.put, name, source.fileno(), 0, path.stat().st_size))
        return partial.name

    @contextmanager
    def newest(self) -> Iterator[Manifest | None]:
        """See `BackupPlace.newest`."""
        names = self.snapshots()
        manifest = None
        try:
            if names:
                manifest = self._manifest(names[-1])
                manifest.check()
        except DataDamaged:
            manifest = None  # then what is there is used where its size is right
        try:
            yield manifest
        finally:
            if manifest is not None:
                manifest.close()

    def _manifest(self, name: str) -> Manifest:
        path = self._work / f"{name}.{MANIFEST}"
        self._fetch_file(name, MANIFEST, path)
        return Manifest(path)

    def prune(self, keep: int) -> tuple[int, int, int]:
        """See `BackupPlace.prune`. What is younger than a day, and in no backup, stays."""
        names = self.snapshots()
        for name in names[:-keep]:
            below = f"{SNAPSHOTS}/{name}/"
            self._ask(bound(self._files.remove, [below + MANIFEST]))  # from then on it is none
            self._ask(bound(self._files.remove_below, below))
        kept = [self._manifest(name) for name in names[-keep:]]
        try:

            def unneeded(name: str) -> bool:
                return not any(manifest.has(name.removeprefix(f"{DATA}/")) for manifest in kept)

            files, size = self._ask(lambda: self._files.remove_old(f"{DATA}/", GRACE_SECONDS, unneeded))
            self._ask(lambda: self._files.abort_old(f"{DATA}/", GRACE_SECONDS))
        finally:
            for manifest in kept:
                manifest.close()
        return len(names[:-keep]), files, size

    # shared files
    def _known(self) -> Sizes:
        """Return the sizes of all shared files, listed once."""
        with self._listing:
            if self._sizes is None:
                sizes = Sizes(self._work / "sizes.db")
                self._ask(lambda: sizes.fill((name, size) for name, size, _ in self._files.listed(f"{DATA}/")))
                self._sizes = sizes
            return self._sizes

    def has(self, part: Part) -> bool:
        """See `BackupPlace.has`."""
        return self._known().of(f"{DATA}/{part.name}") == part.size

    def put(self, name: str, source: int, start: int, size: int) -> tuple[str, bool]:
        """See `BackupPlace.put`. What a backup wrote that did not end was checked when it was sent."""
        there = self._known().of(f"{DATA}/{name}") == size
        return self._ask(lambda: self._files.put(f"{DATA}/{name}", source, start, size, send=not there)), not there

    def settle(self) -> None:
        """Do nothing: what S3 acknowledges is durable."""

    def read(self, name: str, size: int | None, target: int | None) -> Copied:
        """See `BackupPlace.read`."""
        return self._ask(lambda: self._files.read(f"{DATA}/{name}", size, target))


def parse_url(url: str) -> tuple[str, str]:
    """Return bucket and prefix of s3://BUCKET[/PREFIX]. Raises ValueError."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not url.startswith("s3://") or not bucket:
        raise ValueError(f"{url!r} is not s3://BUCKET or s3://BUCKET/PREFIX")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""
