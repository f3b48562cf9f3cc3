"""The command line, as scripts use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError

from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Gateway(tmp_path_factory.mktemp("cli") / "data", env={"SLUICE_DEFAULT_BUCKETS": "one, two"}) as running:
        yield running


def added(gateway: Gateway, *options: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(gateway.run("user", "add", "--json", *options).stdout)
    return made


def loaded_by(*modules: str) -> set[str]:
    """The modules that a new process has once it has imported some."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_a_server_imports_nothing_that_only_some_requests_or_stores_need() -> None:
    loaded = loaded_by("sluice_s3.app.cli.main", "sluice_s3.app.server.processes.launcher", "sluice_s3.app.main")
    some = {"alembic", "asyncpg", "awscrt", "fastapi", "fsspec", "rich", "sqlalchemy.dialects.postgresql"}
    assert "sluice_s3.app.s3.gateway" in loaded
    assert not some & loaded


def test_a_command_imports_nothing_that_only_others_need() -> None:
    loaded = loaded_by("sluice_s3.app.cli.main")
    heavy = {"alembic", "apsw", "asyncpg", "awscrt", "fastapi", "fsspec", "locust", "rich", "sqlalchemy", "uvicorn"}
    assert not heavy & loaded
    assert (
        not {
            "sluice_s3.app.index",
            "sluice_s3.app.jobs",
            "sluice_s3.app.s3",
            "sluice_s3.app.server",
            "sluice_s3.app.store",
        }
        & loaded
    )


def test_default_buckets(gateway: Gateway) -> None:
    assert [entry["Name"] for entry in client(gateway.endpoint).list_buckets()["Buckets"]] == ["one", "two"]


def test_buckets_beside_a_running_server(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    gateway.run("bucket", "create", "made", "--versioning")
    assert s3.get_bucket_versioning(Bucket="made")["Status"] == "Enabled"
    s3.put_object(Bucket="made", Key="k", Body=b"12345")
    (row,) = [
        one for one in json.loads(gateway.run("bucket", "list", "--usage", "--json").stdout) if one["bucket"] == "made"
    ]
    assert (row["store"], row["versioning"], row["bytes"], row["objects"]) == ("default", "enabled", 5, 1)
    assert "made" in gateway.run("bucket", "list").stdout
    codes = {
        ("create", "made"): 4,
        ("create", "no_name"): 2,
        ("create", "other", "--store", "elsewhere"): 3,
        ("create", "other", "--owner", "nobody"): 3,
        ("remove", "made"): 4,
        ("remove", "missing"): 3,
    }
    assert {words: gateway.run("bucket", *words, check=False).returncode for words in codes} == codes
    s3.delete_object(
        Bucket="made", Key="k", VersionId=s3.list_object_versions(Bucket="made")["Versions"][0]["VersionId"]
    )
    gateway.run("bucket", "remove", "made")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        s3.put_object(Bucket="made", Key="k")


def test_shared_links(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    key = "a dir/ü+1 &?.txt"
    put = gateway.run("share", f"s3://one/{key}", "--upload").stdout.strip()
    with urlopen(Request(put, b"shared", method="PUT")) as answer:
        assert answer.status == 200
    get = gateway.run("share", f"s3://one/{key}", "--expires", "15m").stdout.strip()
    assert get.startswith(gateway.endpoint)
    with urlopen(get) as answer:
        assert answer.read() == b"shared"
    made = added(gateway, "--id", "sharer")
    link = gateway.run("share", f"s3://one/{key}", "--access-key", made["access_key"]).stdout.strip()
    with pytest.raises(HTTPError, match="403"), urlopen(link):
        pass
    gateway.run("user", "disable", "sharer")
    codes = [
        gateway.run("share", *words, check=False).returncode
        for words in (
            ("s3://none/key",),
            ("s3://one/none",),
            (f"s3://one/{key}", "--access-key", made["access_key"]),
            (f"s3://one/{key}", "--access-key", "NOBODY"),
            (f"s3://one/{key}", "--endpoint", "ftp://x"),
        )
    ]
    assert codes == [3, 3, 3, 3, 2]
    named = gateway.run("share", f"s3://one/{key}", "--endpoint", "https://s3.example.org").stdout
    assert named.startswith("https://s3.example.org/one/a%20dir/")
    s3.delete_object(Bucket="one", Key=key)


def test_sharing_takes_the_key_of_the_index_and_makes_none(tmp_path: Path) -> None:
    """Of a server whose keys another shell does not have."""
    with Gateway(tmp_path / "data", env={"SLUICE_DEFAULT_BUCKETS": "one"}) as gateway:
        gateway.env = {"SLUICE_ROOT_ACCESS_KEY": "", "SLUICE_ROOT_SECRET_KEY": ""}
        put = gateway.run("share", "s3://one/key", "--upload").stdout.strip()
        with urlopen(Request(put, b"shared", method="PUT")) as answer:
            assert answer.status == 200
        assert not (tmp_path / "data" / "credentials").exists()


def test_status(gateway: Gateway, tmp_path: Path) -> None:
    found = json.loads(gateway.run("status", "--json").stdout)
    assert (found["state"], found["listens"]["s3"]) == ("ready", gateway.endpoint)
    (store,) = found["stores"]
    assert 0 < store["free_bytes"] < store["total_bytes"]
    shown = gateway.run("status").stdout
    assert f"s3         {gateway.endpoint}\n" in shown
    with Gateway(tmp_path / "data") as other:
        assert other.run("status", "--quiet").stdout == ""
    assert other.run("status", check=False).returncode == 3


def test_users_beside_a_running_server(gateway: Gateway) -> None:
    made = added(gateway, "--id", "user-1", "--display-name", "User 1", "--email", "u1@example.org")
    s3 = client(gateway.endpoint, made["access_key"], made["secret_key"])
    answer = s3.list_buckets()
    assert (answer["Owner"], answer["Buckets"]) == ({"ID": "user-1", "DisplayName": "User 1"}, [])
    assert gateway.run("user", "add", "--access-key", made["access_key"], check=False).returncode == 3
    listed = json.loads(gateway.run("user", "list", "--json").stdout)
    assert [entry["access_keys"] for entry in listed if entry["id"] == "user-1"] == [[made["access_key"]]]
    assert made["secret_key"] not in gateway.run("user", "list").stdout
    s3.create_bucket(Bucket="of-user-1")
    assert gateway.run("user", "remove", "user-1", check=False).returncode == 4
    s3.delete_bucket(Bucket="of-user-1")
    assert gateway.run("user", "remove", made["access_key"]).returncode == 0
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        s3.list_buckets()
    assert gateway.run("user", "remove", "user-1", check=False).returncode == 3


def test_a_disabled_key_stops_at_once_in_every_worker(gateway: Gateway) -> None:
    made = added(gateway, "--secret-key", "a-secret-of-my-own")
    assert "secret_key" not in made, "a given secret is not repeated"
    # connections that are open already, spread over the workers
    clients = [client(gateway.endpoint, made["access_key"], "a-secret-of-my-own") for _ in range(12)]
    for s3 in clients:
        s3.list_buckets()
    gateway.run("user", "disable", made["id"])
    for s3 in clients:
        with pytest.raises(ClientError, match="InvalidAccessKeyId"):
            s3.list_buckets()
    gateway.run("user", "enable", made["id"])
    for s3 in clients:
        s3.list_buckets()


def test_secret_from_the_environment(gateway: Gateway) -> None:
    gateway.env["SLUICE_USER_SECRET_KEY"] = "secret-from-environment"
    try:
        made = added(gateway)
    finally:
        del gateway.env["SLUICE_USER_SECRET_KEY"]
    client(gateway.endpoint, made["access_key"], "secret-from-environment").list_buckets()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--access-key", "a/b", "an access key has"),
        ("--access-key", "ab", "an access key has"),
        ("--access-key", "a,b,c", "an access key has"),
        ("--secret-key", "short", "a secret key has"),
        ("--secret-key", "not of\ntwo lines", "a secret key has"),
        ("--id", "x" * 129, "an id has"),
        ("--id", "a/b", "an id has"),
        ("--id", "\N{GREEK SMALL LETTER ALPHA}", "an id has"),
        ("--display-name", "bell \a", "no control characters"),
        ("--display-name", os.fsdecode(b"\xff"), "no control characters"),
        ("--email", "x" * 257, "at most 256 characters"),
    ],
)
def test_bad_accounts_are_refused(gateway: Gateway, option: str, value: str, says: str) -> None:
    before = gateway.run("user", "list", "--json").stdout
    refused = gateway.run("user", "add", option, value, check=False)
    assert refused.returncode == 1
    assert says in refused.stderr
    assert value not in refused.stderr
    assert gateway.run("user", "list", "--json").stdout == before


def test_fsck_beside_a_running_server(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    s3.put_object(Bucket="one", Key="k", Body=b"0123456789")
    *progress, report = map(json.loads, gateway.run("fsck", "--json", "--progress").stdout.splitlines())
    assert progress
    assert set(progress[0]) == {"looked"}
    assert report["clean"]
    assert report["missing"] == []


def test_fsck_exit_codes(tmp_path: Path) -> None:
    stopped = Gateway(tmp_path / "data", workers=1)
    assert stopped.run("fsck", check=False).returncode == 1
    with stopped:
        client(stopped.start().endpoint if stopped.process is None else stopped.endpoint).create_bucket(Bucket="one")
        client(stopped.endpoint).put_object(Bucket="one", Key="k", Body=b"x")
        stopped.stop()
    assert stopped.run("fsck").stdout.endswith("clean\n")
    orphan = tmp_path / "data" / "data" / "01" / "0000000000000001"
    orphan.write_bytes(b"x")
    assert stopped.run("fsck", check=False).returncode == 4
    assert stopped.run("fsck", "--repair").stdout.startswith("1 rows")
    assert orphan.exists(), "it is in quarantine"
    assert stopped.run("fsck").stdout.endswith("clean\n")
    unknown = tmp_path / "data" / "data" / "ff" / "7fffffffffffffff"
    unknown.write_bytes(b"x")
    kept = stopped.run("fsck", "--repair", check=False)
    assert (kept.returncode, "KEPT     f:7fffffffffffffff" in kept.stdout) == (8, True)
    unknown.unlink()
    for blob in (tmp_path / "data" / "data").glob("*/*"):
        blob.unlink()
    found = stopped.run("fsck", check=False)
    assert found.returncode == 8
    assert "MISSING" in found.stdout


def test_a_quota_that_cannot_be_kept_is_a_wrong_option(gateway: Gateway) -> None:
    ended = gateway.run("bucket", "quota", "any", "--bytes", str(2**64), check=False)
    assert ended.returncode == 2
    assert "at most" in ended.stderr


def test_wrong_settings_exit_with_2(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", env={"SLUICE_PORT": "none"})
    assert gateway.run("serve", check=False).returncode == 2


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"SLUICE_STORES": '{"a":{"path":"/secret",'}, '"stores"'),
        ({"SLUICE_NOTIFY_TARGETS": "secret"}, '"notify_targets"'),
        ({"SLUICE_COMMIT_TIMEOUT": "inf"}, "commit_timeout"),
        ({"SLUICE_DISCARD_GRACE": "inf"}, "discard_grace"),
    ],
)
def test_what_no_setting_can_be_is_one_line(tmp_path: Path, env: dict[str, str], said: str) -> None:
    ended = Gateway(tmp_path / "data", env=env).run("serve", check=False)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "secret" not in ended.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"SLUICE_TLS_CERT": "/none.pem", "SLUICE_TLS_KEY": "/none.key"}, "/none.pem with the key /none.key cannot be"),
        ({"SLUICE_ROOT_ACCESS_KEY": "minioadmin", "SLUICE_ROOT_SECRET_KEY": "minioadmin"}, "well-known"),
        ({"SLUICE_DEFAULT_BUCKETS": "fine,Not A Bucket"}, "'Not A Bucket' in SLUICE_DEFAULT_BUCKETS is no bucket name"),
        ({"SLUICE_DEFAULT_BUCKETS": "one,two", "SLUICE_MAX_BUCKETS": "1"}, "'two' would be one more than SLUICE_MAX_"),
    ],
)
def test_what_refuses_to_start_says_why(tmp_path: Path, env: dict[str, str], said: str) -> None:
    ended = Gateway(tmp_path / "data", env=env).run("serve", check=False)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_wrong_default_bucket_leaves_nothing_behind(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", env={"SLUICE_DEFAULT_BUCKETS": "fine,..", "SLUICE_WORKERS": "1"})
    assert gateway.run("serve", check=False).returncode == 1
    assert not (tmp_path / "data" / "index" / "sluice.db").exists()


def test_default_buckets_that_are_there_stay(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1, env={"SLUICE_DEFAULT_BUCKETS": "one"})
    with gateway.start():
        client(gateway.endpoint).put_object(Bucket="one", Key="k", Body=b"kept")
    # a full account, names twice, and commas to spare
    gateway.env |= {"SLUICE_DEFAULT_BUCKETS": " one,,two ,one,", "SLUICE_MAX_BUCKETS": "2"}
    for _ in range(2):
        with gateway.start():
            s3 = client(gateway.endpoint)
            assert [entry["Name"] for entry in s3.list_buckets()["Buckets"]] == ["one", "two"]
            assert s3.get_object(Bucket="one", Key="k")["Body"].read() == b"kept"


def test_another_store_under_the_index_is_refused(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1, options=("--index", f"sqlite:///{tmp_path}/index.db"))
    gateway.start()
    gateway.stop()
    (tmp_path / "data").rename(tmp_path / "away")
    with pytest.raises(RuntimeError, match="exit code 1"):
        gateway.start()
    assert "is the mount missing" in (tmp_path / "data.log").read_text()


def test_a_damaged_index_is_refused_with_the_remedy(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1)
    gateway.start()
    gateway.stop()
    (tmp_path / "data" / "index" / "sluice.db").write_bytes(b"no database " * 1000)
    with pytest.raises(RuntimeError, match="exit code 1"):
        gateway.start()
    assert "is damaged: `sluice rebuild --replace` makes it again" in (tmp_path / "data.log").read_text()


def test_generated_keys_are_not_printed_when_nobody_looks(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1)
    environment = {name: value for name, value in gateway.environment().items() if "ROOT_" not in name}
    gateway.environment = lambda: environment  # type: ignore[method-assign]
    with gateway.start():
        kept = json.loads((tmp_path / "data" / "credentials").read_text())
        client(gateway.endpoint, kept["access_key"], kept["secret_key"]).list_buckets()
        assert kept["secret_key"] not in (tmp_path / "data.log").read_text()


def test_status_of_a_store_that_hangs_ends(gateway: Gateway, tmp_path: Path) -> None:
    """Python would wait at its end for the thread that hangs with the mount."""
    hang = tmp_path / "hang.py"
    hang.write_text(
        "import os, sys, threading\n"
        "real = os.statvfs\n"
        f"os.statvfs = lambda at: threading.Event().wait() if str(at) == {str(gateway.data)!r} else real(at)\n"
        "from sluice_s3.app.cli.main import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, str(hang), "status", "--json", *gateway.where()],
        env=gateway.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["state"], found["stores"][0]["answers"]) == (0, "ready", False)
