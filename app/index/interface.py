"""The interface of the index: rows, and the transactions that change them.

Reads never see an uncommitted row and never span two calls. Every change is one transaction, which checks that its
writer incarnation is live. All raise `app.errors.DomainError` only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence

from sluice_s3.app.index import transactions as tx
from sluice_s3.app.index.cluster.rows import Lease, Writer
from sluice_s3.app.index.declared_transactions import DeclaredTransactions
from sluice_s3.app.index.engine.declared import DeferredCommit
from sluice_s3.app.index.multipart.rows import Part, Upload
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.reclaim import queries as reference_queries


class Index(DeclaredTransactions):
    """What the store, the accounts and the jobs use: transactions, and the life of the index."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """Counter of changes of keys, buckets and settings in all processes.

        Reading it takes no system call.
        """

    @property
    @abstractmethod
    def drawn(self) -> int:
        """A number of the commit sequence that was drawn already: every later commit has a greater one.

        On SQLite it is the last one, on Postgres that of the last heartbeat. Reading it takes no system call.
        """

    @property
    def wal_bytes(self) -> int:
        """Current size of the write-ahead log in bytes, for metrics; 0 without one."""
        return 0

    @abstractmethod
    async def start(self, *, migrate: bool = False) -> None:
        """Open the index and register this writer incarnation.

        With `migrate`, it may create or upgrade the tables. Raises StoreUnavailable when the index is missing, has
        another revision or is on a network filesystem.
        """

    @abstractmethod
    async def check(self) -> None:
        """Read a row to check the index.

        Raises DomainError when the index is unusable or replaced, IndexBehind when it lost commits.
        """

    @abstractmethod
    def refuse(self, reason: str) -> None:
        """Refuse every later call with StoreUnavailable.

        For an index that does not belong to the data.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish queued commits and remove this incarnation.

        The incarnation stays while a range of its ids is left for the orphan sweeper.
        """

    @abstractmethod
    async def make_durable(self) -> None:
        """Make all commits so far survive a power cut, on a relaxed index too."""

    def start_put(
        self, bucket_id: int, key: str, describe: Callable[[str], NewVersion], conditions: Conditions | None = None
    ) -> DeferredCommit:
        """Start `put_version` for a blob that is still being written.

        `describe` returns the version for the blob's locator.
        """
        return self._start(_PUT_VERSION, lambda locator: (bucket_id, key, describe(locator), conditions))

    def start_part(self, upload: Upload, describe: Callable[[str], Part]) -> DeferredCommit:
        """Start `put_part` for a blob that is still being written.

        `describe` returns the part for the blob's locator.
        """
        return self._start(_PUT_PART, lambda locator: (upload, describe(locator)))

    @abstractmethod
    def is_writer_dead(self, writer: Writer) -> bool:
        """Return whether the process of that incarnation has ended."""

    def is_orphaned(self, writer: Writer) -> bool:
        """Return whether requests of a dead writer may still read: then its row must stay, for others to observe it."""
        return False

    @abstractmethod
    async def forget_writer(self, incarnation: int) -> None:
        """Remove a dead incarnation and its id ranges, which are all swept."""

    many_hosts = False
    """Whether gateways on other hosts may use this index: kernel locks do not show their processes."""

    async def take_lease(self, name: str) -> Lease | None:
        """Take a lease for this writer.

        Returns None while another live writer holds it.
        """
        # reads first, because writers without the lease retry every second
        if not await self._read(tx.cluster.is_free(self.incarnation, name)):
            return None
        return await self._take_lease(name)

    def across(self, oldest: Callable[[], int]) -> Callable[[], int]:
        """Return a function for the start of the oldest request of all servers.

        `oldest` returns the start of this server's oldest running request. Both are in milliseconds of CLOCK_BOOTTIME.
        """
        return oldest

    @abstractmethod
    async def removals_are_held(self) -> bool:
        """Return whether a backup holds removals: no entry of the queue that is read now may be removed."""

    @abstractmethod
    async def referenced_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """Return the bytes of referenced or queued blobs by prefix.

        The prefix is the locator up to its first dot. Reads every row.
        """

    @abstractmethod
    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """Return the sealed packs without a live writer, with their bytes still held.

        All are read in one state of the index. The bytes held only shrink.
        """

    async def references(self) -> AsyncIterator[reference_queries.Reference]:
        """Yield every blob reference of a version, part, piece or queued discard.

        Reads in batches.
        """
        for kind in reference_queries.REFERENCES:
            position: reference_queries.Position | None = reference_queries.BEGIN
            while position is not None:
                found, position = await self._scan(reference_queries.references(kind, position))
                for reference in found:
                    yield reference


# looked up once instead of for every request
_PUT_VERSION, _PUT_PART = Index.put_version, Index.put_part
