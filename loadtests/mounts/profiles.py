"""What mounts cost: a profile for each measured file system, with all sources.

"000" and so on are the published measurements that a profile reproduces; `loadtests/mounts/README.md` says which they
are, and `python -m sluice_s3.loadtests.mounts calibrate` repeats each on the mount and compares the figures with the
published ones.

If a measurement has only a sum, it is split evenly over its calls, since on NFS each is a round trip. "Assumed" marks
what no measurement shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluice_s3.loadtests.mounts.bandwidth import Credits

MB = 1e6
GB = 1e9
KINDS = (
    *("lookup", "open", "create", "rename", "remove", "setattr"),
    *("read", "write", "sync", "syncdir", "close", "readdir", "statfs", "xattr"),
)
"""Kinds of calls.

`create` is also mkdir and link, `remove` unlink and rmdir. `read` is one that does not continue the last. Every
close(2) costs `close`. A lookup of a missing name is free.
"""


@dataclass(frozen=True)
class Profile:
    """Costs of a mount. Times are in milliseconds, sizes in bytes, rates in bytes a second; 0 has no limit."""

    calls: Mapping[str, float] = field(default_factory=dict)
    """The time of a call of each kind."""
    sending: tuple[tuple[float, float], ...] = ()
    """(bytes, ms): how long one writer alone takes to send these bytes and have them durable.

    Lines between the points are straight, the first also for less, and `write_rate` after the last. Empty: the disk is
    local, and written bytes go to it at `write_rate` all the time.
    """
    ahead: float = 0.0
    """Bytes that may be written before a writer waits: of one file, or, on a local disk, of all."""
    close_sends: bool = False
    """Whether close(2) sends what was written and waits for it, as on NFS."""
    write_rate: float = 0.0
    """The rate of all writers together."""
    copy_rate: float = 0.0
    """The rate of one writer into memory."""
    read_rate: float = 0.0
    """The rate of one reader."""
    reads_rate: float = 0.0
    """The rate of all readers together."""
    credits: Credits | None = None
    """Burst credits of writing."""
    spread: float = 0.0
    """Standard deviation of calls and sending over their mean."""
    cache_seconds: float = 1.0
    """How long a client caches a name and its attributes.

    The size is requested every second without charge.
    """
    personality: str = "plain"

    def changed(self, calls: Mapping[str, float]) -> Profile:
        """Return the profile with other times of calls.

        Raises ValueError for an unknown kind.
        """
        unknown = set(calls) - set(KINDS)
        if unknown:
            raise ValueError(f"no such kind of call: {', '.join(sorted(unknown))} (there are {', '.join(KINDS)})")
        return replace(self, calls={**self.calls, **calls})


def _nfs(round_trip: float, **other: float) -> dict[str, float]:
    """Return the calls of NFS: each a round trip, except what the client answers itself."""
    calls = dict.fromkeys(("lookup", "create", "rename", "remove", "setattr", "read", "close", "readdir"), round_trip)
    # OPEN and ACCESS
    return {**calls, "open": 2 * round_trip, "statfs": round_trip, **other}


EBS_000 = Profile(
    # 100 KB written in 0.57 ms of which 0.18 are copying: create and close; read in 0.05 ms
    calls={"create": 0.3, "sync": 1.0, "syncdir": 1.0, "read": 0.5},  # sync, syncdir, read: assumed (gp3)
    # 10 MB in 18.15 ms
    copy_rate=560 * MB,
    # 10 GB in 70.66 s, 1 GB in 7.42 s
    write_rate=139 * MB,
    # 100 MB in 585 ms: so much at the copy's rate before the disk's counts
    ahead=20 * MB,
    # reads were answered from memory; from the disk, assumed: as fast as writes
    read_rate=139 * MB,
    reads_rate=139 * MB,
)

EFS_000 = Profile(
    calls=_nfs(0.2, create=10.0, rename=10.0, remove=10.0, setattr=10.0, read=2.0),
    # open and revalidate make up the 0.60 ms (p50) of a read of 100 KB; create: assumed, a third of the 34.47 ms
    # that a file of 100 KB takes. What is left of each file's mean time: 100 KB, 1 MB … 10 GB
    sending=((100e3, 24.2), (1 * MB, 47.1), (10 * MB, 170.2), (100 * MB, 380.5), (1 * GB, 3040.0), (10 * GB, 26530.0)),
    ahead=16 * MB,  # assumed
    close_sends=True,
    # 10 GB in 26.54 s, 1 GB in 3.05 s: 383 MB/s between them
    write_rate=385 * MB,
    # mean, deviation and median of ten reads show one cold one: 10 MB in 63 ms, 100 MB in 583 ms, 1 GB in 6.2 s
    read_rate=165 * MB,
    spread=0.18,  # 34.47 ± 6.33 ms
    cache_seconds=30.0,  # acdirmin of Linux's NFS client
    personality="nfs",
)

EFS_001_BURSTING = Profile(
    # 16 readers at 9.43 MB/s of 13.4 KB files: 22.8 ms a file, for lookup, open, access, close, and a read of three in
    # four. 54,000 files and 3,657 directories unpacked by tar in 1,444 s: 26.7 ms a file, for create, time, owner,
    # mode, send and close, and four calls a directory
    calls=_nfs(4.35, create=4.1, rename=4.1, remove=4.1, setattr=4.1),
    sending=((16e3, 4.1), (1 * MB, 38.0), (10 * MB, 190.0)),  # beyond 16 KB as in 004, of the same kind
    ahead=16 * MB,  # assumed
    close_sends=True,
    write_rate=104 * MB,  # 004
    read_rate=165 * MB,  # 000
    reads_rate=300 * MB,  # 004, as advertised
    cache_seconds=30.0,
    personality="nfs",
)

EFS_001_PROVISIONED = replace(
    EFS_001_BURSTING,
    # the same in 1,357 s and at 10.14 MB/s
    calls=_nfs(4.04, create=3.85, rename=3.85, remove=3.85, setattr=3.85),
    sending=((16e3, 3.85), (1 * MB, 38.0), (10 * MB, 190.0)),
    write_rate=52.4 * MB,  # 50 MiB/s were bought
    reads_rate=157 * MB,  # AWS counts a read as a third
)

OBJECTIVEFS_001 = Profile(
    # the same unpacked in 11 s: 0.20 ms a file; read cold by 16 at 49.3 MB/s: 4.3 ms a file
    calls={"create": 0.05, "setattr": 0.02, "close": 0.04, "open": 0.1, "read": 4.0, "sync": 20.0, "syncdir": 20.0},
    # sync: assumed, one PUT to S3
    copy_rate=500 * MB,  # assumed
    write_rate=300 * MB,  # assumed
    ahead=256 * MB,  # assumed: its cache
    cache_seconds=30.0,
)

EFS_003_ELASTIC = Profile(
    # ten files of 1 KB in 95.2 ms: 9.5 ms each, for create, send and close
    calls=_nfs(3.0, create=3.0),
    # ten of 1 MB in 366.2 ms and of 100 MB in 12.161 s: 36.6 and 1,216 ms each, less create and close
    sending=((1e3, 3.0), (1 * MB, 30.3), (100 * MB, 1210.0)),
    ahead=16 * MB,  # assumed
    close_sends=True,
    write_rate=84 * MB,  # 99 MB in 1,180 ms
    read_rate=165 * MB,  # 000
    reads_rate=300 * MB,  # 004
    cache_seconds=30.0,
    personality="nfs",
)

EFS_003_BURSTING = replace(
    EFS_003_ELASTIC,
    # the same in 100.6 ms, 369.8 ms and 17.081 s
    calls=_nfs(3.2, create=3.2),
    sending=((1e3, 3.2), (1 * MB, 30.3), (100 * MB, 1701.0)),
    write_rate=59.3 * MB,
    # "painfully slow" without credits; amounts: 004
    credits=Credits(most=432 * GB, refill=5 * MB, baseline=5 * MB),
)

EFS_004 = Profile(
    # files under 10 KB at less than 1 MB/s: 12 ms each. 500 KB files by many threads stay at 83 MB/s, that is one file
    # in 6 ms: what Linux does one after the other in one directory is to create them
    calls=_nfs(2.0, create=6.0, rename=6.0, remove=6.0, setattr=6.0),
    # 1 MB at 23 MB/s; 500 KB by 4 threads at 14 MB/s each; under 10 MB at 20 to 50; above 85 MB at more than 95
    sending=((10e3, 4.0), (500e3, 22.0), (1 * MB, 35.5), (10 * MB, 190.0), (85 * MB, 860.0)),
    ahead=16 * MB,  # assumed
    close_sends=True,
    write_rate=104 * MB,  # 102 to 106 MB/s combined
    read_rate=300 * MB,  # advertised
    reads_rate=300 * MB,
    # 72 minutes of 100 MB/s a day
    credits=Credits(most=432 * GB, refill=5 * MB, baseline=5 * MB),
    cache_seconds=30.0,
    personality="nfs",
)

PROFILES: dict[str, Profile] = {
    "none": Profile(),
    "ebs-000": EBS_000,
    "efs-000": EFS_000,
    "efs-001-bursting": EFS_001_BURSTING,
    "efs-001-provisioned": EFS_001_PROVISIONED,
    "objectivefs-001": OBJECTIVEFS_001,
    "efs-003-elastic": EFS_003_ELASTIC,
    "efs-003-bursting": EFS_003_BURSTING,
    "efs-004": EFS_004,
}


def profile_named(name: str) -> Profile:
    """Return a profile by name. Raises ValueError if it does not exist."""
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(f"no profile {name!r} (there are {', '.join(PROFILES)})") from None
