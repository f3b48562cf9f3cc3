"""The recipes. What each says is explained on its page in docs/load-testing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """An option of a mount, as the kernel's table shows it (`hard`, `vers=4.1`), and why it should be there, or not."""

    name: str
    why: str
    values: tuple[str, ...] = ()
    """Values that will do; empty: it has none."""

    @property
    def text(self) -> str:
        """The option as one writes it."""
        return f"{self.name}={self.values[0]}" if self.values else self.name


@dataclass(frozen=True)
class Recipe:
    """What a kind of mount needs."""

    name: str
    title: str
    kinds: tuple[str, ...]
    """How the kernel calls such a mount."""
    programs: tuple[tuple[str, str], ...] = ()
    """A program, and the package of Debian, or the project, that it comes from."""
    filesystem: str = ""
    """What the kernel must know (`/proc/filesystems`, or a module)."""
    wanted: tuple[Option, ...] = ()
    refused: tuple[Option, ...] = ()
    port: int = 0
    """The server's, 0 where it has none of its own."""
    secret: str = ""
    """A file with keys that only its owner may read."""


HARD = Option("hard", "with `soft` a server that is slow for a while becomes a failed write, or a silent hole")
SOFT = Option("soft", HARD.why)
SOFTERR = Option("softerr", HARD.why)
NOCTO = Option("nocto", "a reader elsewhere may then see a file without what was closed before it was opened")
LARGE = (
    Option("rsize", "smaller reads cost a round trip each", ("1048576", "524288", "262144")),
    Option("wsize", "smaller writes cost a round trip each", ("1048576", "524288", "262144")),
)
NFS_PROGRAM = (("mount.nfs4", "nfs-common"),)
NFS = ("nfs4", "nfs")
NO_BARRIER = (
    Option("nobarrier", "fsync then does not reach the disk"),
    Option("barrier", "fsync then does not reach the disk", ("0",)),
)

_ALL = (
    Recipe(
        "efs", "Amazon EFS", ("nfs4",), NFS_PROGRAM, "nfs4",
        (HARD, *LARGE, Option("vers", "EFS speaks 4.1 (and 4.0)", ("4.1", "4.0")),
         Option("noresvport", "after a broken connection the client must be free to take another port")),
        (SOFT, SOFTERR, NOCTO), 2049,
    ),
    Recipe("ebs", "Amazon EBS (gp3, io2)", ("ext4", "xfs"), refused=NO_BARRIER),
    Recipe(
        "fsx-lustre", "Amazon FSx for Lustre", ("lustre",), (("mount.lustre", "lustre-client-modules"),), "lustre",
        (Option("flock", "without it flock(2) fails on Lustre, and a store is not locked against a second gateway"),),
        port=988,
    ),
    Recipe(
        "fsx-ontap", "Amazon FSx for NetApp ONTAP", NFS, NFS_PROGRAM, "nfs4", (HARD, *LARGE), (SOFT, SOFTERR, NOCTO),
        2049,
    ),
    Recipe(
        "fsx-openzfs", "Amazon FSx for OpenZFS", NFS, NFS_PROGRAM, "nfs4", (HARD, *LARGE), (SOFT, SOFTERR, NOCTO), 2049,
    ),
    Recipe("nfs", "NFS", NFS, NFS_PROGRAM, "nfs4", (HARD,), (SOFT, SOFTERR, NOCTO), 2049),
    Recipe(
        "cephfs", "CephFS", ("ceph", "fuse.ceph", "fuse.ceph-fuse"), (("mount.ceph", "ceph-common"),), "ceph",
        refused=(Option("recover_session", "a client that was cut off drops what it had not written", ("clean",)),),
        port=3300,
    ),
    Recipe("juicefs", "JuiceFS", ("fuse.juicefs",), (("juicefs", "juicefs.com"),), "fuse"),
    Recipe("s3fs", "s3fs", ("fuse.s3fs",), (("s3fs", "s3fs"),), "fuse", secret="~/.passwd-s3fs"),
    Recipe("rclone", "rclone mount", ("fuse.rclone",), (("rclone", "rclone.org"), ("fusermount3", "fuse3")), "fuse"),
)  # fmt: skip

RECIPES = {recipe.name: recipe for recipe in _ALL}
