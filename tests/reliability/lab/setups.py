"""The set-ups that faults strike: gateways, the disks and mounts below them, and the way to their index."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sluice_s3.loadtests.mounts import Mount, mounted
from tests.reliability.crash.power import Disk
from tests.reliability.lab.plan import AGING, FILES, LOCKED, PLAIN, VERSIONED
from tests.reliability.lab.proxy import Proxy
from tests.support import postgres
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

DAY_SECONDS = 5.0
"""Of lifecycle rules."""
INDEX_BYTES, DATA_BYTES = 200 << 20, 700 << 20
LOG_CHARACTERS = 20_000
"""Of a log, beside what was found."""
UNDECIDED = re.compile(r"^sluice_undecided_(changes|seconds)\{[^}]*\} (\S+)$", re.MULTILINE)
MASTER_KEY = base64.b64encode(bytes(range(32))).decode()
HASTY = {
    "SLUICE_DISCARD_GRACE": "0",
    "SLUICE_PACK_SIZE": str(1 << 20),
    "SLUICE_GATEWAY_TIMEOUT": "5",
    "SLUICE_HANG_TIMEOUT": "2",
    "SLUICE_INDEX_TIMEOUT": "2",
    "SLUICE_LIFECYCLE_DAY_SECONDS": str(int(DAY_SECONDS)),
    "SLUICE_MASTER_KEY": MASTER_KEY,
    "SLUICE_ADMIN_TOKEN": "lab-admin-token",
}
"""Garbage is collected, packs are compacted and the dead are swept during the run."""


@dataclass(frozen=True)
class Setup:
    """A kind of set-up. `store` is ext4, tree, or a profile or personality of `loadtests/mounts`."""

    name: str
    store: str
    gateways: int = 1
    workers: int = 2

    @property
    def in_postgres(self) -> bool:
        """Whether the index is in Postgres."""
        return self.gateways > 1

    @property
    def is_mount(self) -> bool:
        """Whether the store lies on a FUSE mount, whose calls can be made to fail one by one."""
        return self.store not in ("ext4", "tree")

    @property
    def buckets(self) -> tuple[str, ...]:
        """The buckets that it can have."""
        return (FILES,) if self.store == "tree" else (PLAIN, VERSIONED, LOCKED, AGING)


SETUPS = {
    one.name: one
    for one in (
        Setup("sqlite-local", "ext4"),
        Setup("sqlite-efs", "efs-004"),
        Setup("sqlite-zdbfs", "zdbfs"),
        Setup("sqlite-tree", "tree"),
        Setup("postgres-local", "ext4", gateways=3, workers=1),
        Setup("postgres-efs", "efs-004", gateways=3, workers=1),
    )
}


@dataclass
class Site:
    """One set-up that runs. What a fault takes away it gives back by these."""

    setup: Setup
    directory: Path
    gateways: list[Gateway]
    armed: Path
    """The file that arms crash points."""
    index_disk: Disk | None = None
    disk: Disk | None = None
    mount: Mount | None = None
    postgres: postgres.Server | None = None
    database: str = ""
    proxies: list[Proxy] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def endpoints(self) -> list[str]:
        """Where each gateway is, also while it does not run."""
        return [f"http://127.0.0.1:{gateway.port}" for gateway in self.gateways]

    @property
    def index(self) -> Path:
        """The directory of an SQLite index."""
        assert self.index_disk is not None
        return self.index_disk.mount / "index"

    def log_sizes(self) -> dict[Path, int]:
        """The bytes that each gateway has logged so far."""
        return {path: path.stat().st_size for path in self.directory.glob("gateway*.log")}

    def log_since(self, sizes: dict[Path, int]) -> str:
        """What the gateways logged since `log_sizes`, without what is usual; the last of it."""
        lines: list[str] = []
        for path in self.log_sizes():
            with path.open(errors="replace") as file:
                file.seek(sizes.get(path, 0))
                lines += (line for line in file if not line.startswith("INFO "))
        return "".join(lines)[-LOG_CHARACTERS:]

    def start(self) -> None:
        """Start what does not run; as a supervisor does, again when it fails, since a killed one may hold its lock."""
        with ThreadPoolExecutor(len(self.gateways)) as pool:
            list(pool.map(_start, [gateway for gateway in self.gateways if gateway.process is None]))

    def kill(self) -> None:
        """kill -9 of all."""
        for gateway in self.gateways:
            if gateway.process is not None:
                self.signal(gateway, signal.SIGCONT)
                gateway.kill()

    def stop(self) -> None:
        """Stop gracefully."""
        for gateway in self.gateways:
            gateway.__exit__()

    @staticmethod
    def signal(gateway: Gateway, what: signal.Signals) -> None:
        """Send a signal to every process of a gateway."""
        if gateway.process is None:
            return
        for pid in (gateway.process.pid, *gateway.children()):
            with suppress(ProcessLookupError):
                os.kill(pid, what)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop every thread of the gateways until the end of the block: none has a sync under way, or acts on one."""
        running = [gateway for gateway in self.gateways if gateway.process is not None]
        for gateway in running:
            self.signal(gateway, signal.SIGSTOP)
        eventually(lambda: all(map(_stands_still, running)), "every thread has stopped")
        yield
        for gateway in running:
            self.signal(gateway, signal.SIGCONT)

    def is_ready(self) -> bool:
        """Whether every gateway says that it is."""
        return all(_is_ready(endpoint) for endpoint in self.endpoints)

    def undecided(self) -> tuple[int, float]:
        """How many changes no journal tells yet, and how old the oldest is."""
        gateway = next(gateway for gateway in self.gateways if gateway.process is not None)
        with urllib.request.urlopen(f"{gateway.admin}/metrics", timeout=30) as answer:
            found = UNDECIDED.findall(answer.read().decode())
        changes = sum(float(value) for name, value in found if name == "changes")
        return int(changes), max(float(value) for name, value in found if name == "seconds")

    def wait_for_journals(self) -> None:
        """Return when the journals tell of everything that was decided."""
        eventually(lambda: self.undecided()[0] == 0, "the journals tell of everything")

    def sql(self, command: str) -> str:
        """Ask the Postgres server."""
        assert self.postgres is not None
        return self.postgres.sql(command)


def _start(gateway: Gateway) -> None:
    for left in reversed(range(4)):
        try:
            gateway.start()
            return
        except RuntimeError:
            gateway.process = None
            if not left:
                raise


def _stands_still(gateway: Gateway) -> bool:
    pids = (gateway.process.pid, *gateway.children()) if gateway.process is not None else ()
    threads = [status for pid in pids for status in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(status.read_text().rpartition(")")[2].split()[0] in "TZX" for status in threads)


def _is_ready(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"{endpoint}/-/health/ready", timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def built(setup: Setup, directory: Path) -> Iterator[Site]:
    """Build a set-up in an empty directory, with its buckets, and take it down at the end."""
    with ExitStack() as stack:
        site = Site(setup, directory, [], directory / "crash-at", stack=stack)
        stores = _lay_stores(site)
        index = _lay_index(site)
        env = {**HASTY, "SLUICE_STORES": json.dumps(stores), "SLUICE_CRASH_FILE": str(site.armed)}
        for number in range(setup.gateways):
            own = {"SLUICE_INDEX": index(number)}
            if setup.in_postgres:
                own["SLUICE_RUNTIME_DIR"] = str(directory / f"run{number}")
            home = directory / f"gateway{number}"
            options = ("--admin-port", "0")
            site.gateways.append(Gateway(home, setup.workers, {**env, **own}, options, given=()))
        stack.callback(_take_down, site)
        site.start()
        _make_buckets(site)
        yield site


def _lay_stores(site: Site) -> dict[str, dict[str, str]]:
    """Make what the store lies on; returns the settings of the store, and of another one for moves."""
    directory, setup = site.directory, site.setup
    if not setup.is_mount:
        site.disk = site.stack.enter_context(Disk(directory, "ext4", DATA_BYTES, "data"))
        store = {"path": str(site.disk.mount / "store")}
        if setup.store == "tree":
            return {"default": {**store, "layout": "tree"}}
        return {"default": store, "other": {"path": str(site.disk.mount / "other")}}
    behind, where = directory / "behind", directory / "mount"
    behind.mkdir()
    where.mkdir()
    what = {"personality": setup.store} if setup.store == "zdbfs" else {"profile": setup.store}
    site.mount = site.stack.enter_context(mounted(behind, where, tracked=True, cached=False, **what))  # type: ignore[arg-type]
    driver = "fuse" if setup.store == "zdbfs" else "efs"
    other = {"path": str(directory / "other"), "driver": "local"}
    return {"default": {"path": str(where / "store"), "driver": driver}, "other": other}


def _lay_index(site: Site) -> Callable[[int], str]:
    """Make what the index lies on; returns its URL for each gateway."""
    if not site.setup.in_postgres:
        site.index_disk = site.stack.enter_context(Disk(site.directory, "ext4", INDEX_BYTES, "index"))
        (site.index_disk.mount / "index").mkdir()
        return lambda number: f"sqlite:///{site.index}/sluice.db"
    site.postgres = site.stack.enter_context(postgres.running())
    site.database = urlsplit(site.postgres.fresh()).path.lstrip("/")
    for _ in range(site.setup.gateways):
        site.proxies.append(Proxy(site.postgres.socket))
        site.stack.callback(site.proxies[-1].close)
    return lambda number: f"postgresql://sluice@127.0.0.1:{site.proxies[number].port}/{site.database}"


def _make_buckets(site: Site) -> None:
    s3 = client(site.endpoints[0])
    for name in site.setup.buckets:
        s3.create_bucket(Bucket=name, **({"ObjectLockEnabledForBucket": True} if name == LOCKED else {}))
        if name in (VERSIONED, AGING):
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    if AGING in site.setup.buckets:
        old = {"NoncurrentVersionExpiration": {"NoncurrentDays": 1}, "Status": "Enabled"}
        rules = [
            {"ID": "due", "Filter": {"Prefix": "due/"}, "Expiration": {"Days": 1}, **old},
            {"ID": "stay", "Filter": {"Prefix": "stay/"}, **old},
        ]
        s3.put_bucket_lifecycle_configuration(Bucket=AGING, LifecycleConfiguration={"Rules": rules})


def _take_down(site: Site) -> None:
    site.armed.unlink(missing_ok=True)
    for proxy in site.proxies:
        proxy.mend()
    site.kill()
    shutil.rmtree(site.directory / "other", ignore_errors=True)
