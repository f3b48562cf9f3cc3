"""The guests' kernel and NFS programs, unpacked from Debian packages; nothing is installed on the machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.environment import ROOT

BUILD = ROOT / "build" / "nfs"
WANTED = ("user-mode-linux", "nfs-kernel-server", "nfs-common", "rpcbind", "kmod", "iproute2", "quota", "e2fsprogs")
MODULES = "usr/lib/uml/modules"
LINKED = ("bin", "sbin", "lib")
"""Directories of old packages that are links to those of /usr."""


class Packages(NamedTuple):
    """What a guest starts from."""

    kernel: Path
    """User-mode Linux: a kernel that runs as a process."""
    root: Path
    """Programs that are laid over the machine's own root in a guest."""


def unpack() -> Packages:
    """Download and unpack the packages with what they need and the machine lacks, once.

    Raises CalledProcessError with what apt-get printed.
    """
    root = BUILD / "root"
    packages = Packages(root / "usr/bin/linux.uml", root)
    if packages.kernel.exists() and (root / "usr/lib/modules").exists():
        return packages
    shutil.rmtree(BUILD, ignore_errors=True)
    archives = BUILD / "archives"
    archives.mkdir(parents=True)
    needed = _apt("--simulate", "--no-install-recommends", "install", *WANTED, cwd=archives)
    names = {*WANTED, *re.findall(r"^Inst (\S+)", needed, re.MULTILINE)}
    _apt("download", *sorted(names), cwd=archives)
    for name in LINKED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for archive in sorted(archives.glob("*.deb")):
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], check=True, capture_output=True).stdout
        # dpkg-deb --extract would make directories of the links
        unpacking = ["tar", "--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", str(root)]
        subprocess.run(unpacking, input=files, check=True)
    for name in LINKED:
        (root / name).unlink()
    (root / MODULES).rename(root / "usr/lib/modules")
    shutil.rmtree(archives)
    return packages


def _apt(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(["apt-get", "--quiet", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"apt-get {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
