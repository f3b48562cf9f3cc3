"""The automatic master key's file: made once, whole, and nobody else's."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice_s3.app.encryption.keyring import RingError
from sluice_s3.app.encryption.master_key_file import ensure_master


def test_it_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "master-key"
    key, made = ensure_master(path)
    assert (len(key), made) == (32, True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ensure_master(path) == (key, False)
    assert os.listdir(tmp_path) == ["master-key"]


def test_of_many_that_make_it_one_does(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ensure_master, [tmp_path / "master-key"] * 16))
    assert len({key for key, _ in found}) == 1
    assert [made for _, made in found].count(True) == 1
    assert os.listdir(tmp_path) == ["master-key"]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "link", link)
    key, made = ensure_master(tmp_path / "master-key")
    assert made
    assert ensure_master(tmp_path / "master-key") == (key, False)
    assert os.listdir(tmp_path) == ["master-key"]


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_failure_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        ensure_master(tmp_path / "master-key")
    assert not os.listdir(tmp_path)


def test_key_and_name_are_durable_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append("directory" if path == tmp_path else f"key, named: {(tmp_path / 'master-key').exists()}")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    ensure_master(tmp_path / "master-key")
    assert synced == ["key, named: False", "directory", "directory"], "the second one names it"
    ensure_master(tmp_path / "master-key")
    assert synced[3:] == ["directory"], "another process may have made it, and ended before it synced that"


def test_what_a_killed_start_left_goes(tmp_path: Path) -> None:
    path = tmp_path / "master-key"
    (tmp_path / ".master-key.0123456789abcdef").touch(0o600)
    key, _ = ensure_master(path)
    os.link(path, tmp_path / ".master-key.fedcba9876543210")
    assert ensure_master(path) == (key, False)
    assert os.listdir(tmp_path) == ["master-key"]


def test_a_file_without_a_key_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "master-key"
    path.touch()
    with pytest.raises(RingError):
        ensure_master(path)
    assert path.read_bytes() == b""


def test_one_that_others_could_have_put_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "master-key"
    ensure_master(path)
    path.chmod(0o644)
    with pytest.raises(RingError, match="others than its owner may open this file of secrets"):
        ensure_master(path)
    path.chmod(0o600)
    aside = path.rename(tmp_path / "elsewhere")
    path.symlink_to(aside)
    with pytest.raises(RingError, match="this is a link"):
        ensure_master(path)
