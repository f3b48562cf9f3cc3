"""What a recipe needs, checked on this machine: programs, the kernel, the server, and the mount if there is one."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sluice_s3.loadtests.recipes.known import Option, Recipe
from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.mountinfo import Mount, mount_of
from sluice_s3.storage_drivers.probing.probe import measure, refusal_reason
from sluice_s3.storage_drivers.probing.scratch import Progress

FILESYSTEMS = Path("/proc/filesystems")
SBIN = ("/usr/sbin", "/sbin")
CONNECT_SECONDS = 3.0
LAST_PORT = 65_535
PROGRAM_SECONDS = 5.0
NEWEST_WITHOUT_MARKERS = (1, 61)
"""The last rclone without `--s3-directory-markers`."""


class Finding(NamedTuple):
    """One check. `good` is None where it could not be made, or is advice."""

    what: str
    good: bool | None
    detail: str = ""


def examine(recipe: Recipe, path: Path | None, server: str, progress: Progress) -> Iterator[Finding]:
    """Yield what was found, in the order in which one mends it.

    With a `path` the mount there is looked at and probed, in a directory of the probe's own. Raises OSError.
    """
    installed = find_spec("locust") is not None
    yield Finding("load tests are installed", installed, "" if installed else "pip install 'sluice-s3[loadtest]'")
    for name, package in recipe.programs:
        found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *SBIN)))
        yield Finding(f"program {name}", found is not None, found or f"from {package}")
    if recipe.filesystem:
        yield Finding(f"the kernel knows {recipe.filesystem}", *_knows(recipe.filesystem))
    if recipe.filesystem == "fuse":
        usable = os.access("/dev/fuse", os.R_OK | os.W_OK)
        yield Finding("/dev/fuse can be opened", usable, "" if usable else "a container needs --device /dev/fuse")
    if recipe.name == "rclone" and shutil.which("rclone"):
        yield _rclone_version()
    if recipe.secret:
        yield _secret(Path(recipe.secret).expanduser())
    if server:
        progress.step("connect")
        yield _reachable(server, recipe.port)
    if path is not None:
        yield from _mounted(recipe, path, progress)


def _knows(filesystem: str) -> tuple[bool | None, str]:
    """Return whether the kernel has a file system, or a module of it that could be loaded."""
    if any(line.split()[-1:] == [filesystem] for line in FILESYSTEMS.read_text().splitlines()):
        return True, ""
    name = {"nfs4": "nfsv4"}.get(filesystem, filesystem)
    modprobe = shutil.which("modprobe", path=os.pathsep.join((os.environ.get("PATH", os.defpath), *SBIN)))
    if modprobe is None:
        return False, f"not in {FILESYSTEMS}, and there is no modprobe"
    try:
        tried = subprocess.run([modprobe, "-n", name], capture_output=True, check=False, timeout=PROGRAM_SECONDS)
    except subprocess.SubprocessError:
        return None, "modprobe does not answer"
    return tried.returncode == 0, f"module {name}" if tried.returncode == 0 else f"no module {name} for this kernel"


def _rclone_version() -> Finding:
    what = "rclone has --s3-directory-markers"
    try:
        command = ["rclone", "version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS)
        found = done.stdout.split()[1].lstrip("v")
        major, minor = (int(part) for part in found.split(".")[:2])
    except (IndexError, ValueError, subprocess.SubprocessError):
        return Finding(what, None, "it does not say its version")
    good = (major, minor) > NEWEST_WITHOUT_MARKERS
    return Finding(what, good, f"{found}{'' if good else ': empty directories of a store are lost at the next mount'}")


def _secret(file: Path) -> Finding:
    what = f"{file} is for its owner only"
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return Finding(what, None, "not there: pass -o passwd_file=, or an IAM role")
    return Finding(what, not mode & 0o077, f"its mode is {mode:o}")


def _reachable(server: str, port: int) -> Finding:
    host, _, own = server.partition(":")
    where = (host, int(own) if own.isdecimal() else port)
    if not where[1]:
        return Finding(f"{host} answers", None, "say HOST:PORT: such a mount has no port of its own")
    what = f"{where[0]} answers at port {where[1]}"
    if where[1] > LAST_PORT:  # getaddrinfo(3) would take it modulo 65,536, and another server may answer there
        return Finding(what, False, f"ports end at {LAST_PORT}")
    try:
        socket.create_connection(where, CONNECT_SECONDS).close()
    except UnicodeError:
        return Finding(what, False, "no such name can be")
    except OSError as error:
        return Finding(what, False, f"{error.strerror or error}: security group, firewall, name?")
    return Finding(what, True)


def _mounted(recipe: Recipe, path: Path, progress: Progress) -> Iterator[Finding]:
    progress.step("stat")
    mount = mount_of(path)
    known = mount.kind in recipe.kinds
    wanted = "" if known else f", not {' or '.join(recipe.kinds)}: is it mounted?"
    yield Finding(f"{path} is {recipe.title}", known, f"{mount.kind} {mount.source} at {mount.point}{wanted}")
    if not known:
        return
    options = _options(mount)
    for option in recipe.wanted:
        there = _has(options, option)
        yield Finding(f"mounted with {option.text}", there, "" if there else f"{_shown(options, option)}{option.why}")
    for option in recipe.refused:
        if _has(options, option):
            yield Finding(f"mounted without {option.text}", False, option.why)
    if recipe.name == "ebs":
        yield _block_device(mount)
    probe = measure(path, progress)
    refused = refusal_reason(probe, Durability.FULL)
    yield Finding("a durable store may be here", refused is None, str(refused or ""))
    for trial in probe.trials:
        if trial.works is False:
            yield Finding(f"probe: {trial.ability.value}", None, f"no: {trial.detail}".rstrip(": "))


def _options(mount: Mount) -> dict[str, str]:
    pairs = (one.partition("=") for one in f"{mount.options},{mount.settings}".split(","))
    return {name: value for name, _, value in pairs}


def _has(options: dict[str, str], option: Option) -> bool:
    return option.name in options and (not option.values or options[option.name] in option.values)


def _shown(options: dict[str, str], option: Option) -> str:
    return f"it is {options[option.name]}: " if options.get(option.name) else ""


def _block_device(mount: Mount) -> Finding:
    """Say which volume it is: EBS volumes name themselves, also over NVMe."""
    name = Path(mount.source).resolve().name
    for device in (name, name.rpartition("p")[0] or name.rstrip("0123456789")):
        model = Path("/sys/class/block") / device / "device" / "model"
        if model.exists():
            text = model.read_text().strip()
            return Finding(f"{mount.source} is an EBS volume", text == "Amazon Elastic Block Store", text)
    return Finding(f"{mount.source} is an EBS volume", None, "it does not say its model")
