"""The first account's keys."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from sluice_s3.app.access import root_credentials as credentials
from sluice_s3.app.access.authorize import authorize
from sluice_s3.app.access.root_credentials import WeakCredentials, root_credentials
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.settings import Settings


def settings(path: Path, access_key: str | None = None, secret_key: str | None = None) -> Settings:
    return Settings(
        data=path, root_access_key=access_key, root_secret_key=SecretStr(secret_key) if secret_key else None
    )


def test_generated_once_and_kept_privately(tmp_path: Path) -> None:
    first = root_credentials(settings(tmp_path))
    assert first.generated
    assert len(first.secret_key) >= 40
    assert root_credentials(settings(tmp_path)) == first
    kept = tmp_path / "credentials"
    assert os.stat(kept).st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text())["secret_key"] == first.secret_key


def test_all_who_make_them_at_once_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(root_credentials, [settings(tmp_path)] * 64))
    assert len(set(made)) == 1


def test_a_file_that_another_process_is_about_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "credentials"
    path.touch(mode=0o600)
    waited: list[float] = []

    def write(seconds: float) -> None:
        waited.append(seconds)
        path.write_text('{"access_key": "theirs", "secret_key": "their-secret"}\n')

    monkeypatch.setattr(time, "sleep", write)
    assert root_credentials(settings(tmp_path)) == ("theirs", "their-secret", True)
    assert len(waited) == 1


def test_a_file_that_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "credentials").touch(mode=0o600)
    monkeypatch.setattr(credentials, "FILE_WAIT_SECONDS", 0.02)
    with pytest.raises(OSError, match="is empty"):
        root_credentials(settings(tmp_path))


def test_given_keys_are_not_written(tmp_path: Path) -> None:
    given = root_credentials(settings(tmp_path, "mykey", "my-secret-key"))
    assert (given.access_key, given.secret_key, given.generated) == ("mykey", "my-secret-key", False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("access_key", "secret_key"),
    [
        ("minioadmin", "minioadmin"),
        ("ab", "long-enough-secret"),
        ("mykey", "short"),
        ("mykey", None),
        (None, "long-enough"),
    ],
)
def test_weak_or_half_given_keys_are_refused(tmp_path: Path, access_key: str | None, secret_key: str | None) -> None:
    with pytest.raises(WeakCredentials):
        root_credentials(settings(tmp_path, access_key, secret_key))


def test_minio_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIO_ROOT_USER", "olduser")
    monkeypatch.setenv("MINIO_ROOT_PASSWORD", "old-password")
    given = root_credentials(Settings(data=tmp_path))
    assert (given.access_key, given.secret_key) == ("olduser", "old-password")
    monkeypatch.setenv("SLUICE_ROOT_ACCESS_KEY", "newuser")
    assert root_credentials(Settings(data=tmp_path)).access_key == "newuser"


def test_only_the_owner_may_do_anything() -> None:
    bucket = Bucket(1, "b", "owner", "us-east-1", 0)
    assert authorize("owner", "s3:GetObject", bucket)
    assert not authorize("other", "s3:GetObject", bucket)
    assert not authorize(None, "s3:GetObject", bucket)
    assert authorize("other", "s3:CreateBucket", None)
    assert not authorize("other", "s3:GetObject", None)
    assert not authorize(None, "s3:ListAllMyBuckets", None)
