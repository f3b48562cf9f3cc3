"""A gateway that can be told at which point to die, and looks at what is left."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import ClientError
from typer.testing import CliRunner

from sluice_s3.app.cli.main import cli
from tests.reliability.crash.ledger import UNKNOWN, Object, read
from tests.support import postgres
from tests.support.gateway import Gateway, client
from tests.support.places import Place
from tests.support.waiting import eventually

BUCKET = "scene"


class Look(NamedTuple):
    """All that a client can see of a key."""

    found: Object | None
    listed: tuple[int, str] | None
    uploads: list[dict[int, str]]
    """The parts of each open upload, by number."""


class Scene:
    """One data directory over many crashes."""

    def __init__(
        self, directory: Path, workers: int = 2, *, jobs: bool = True, place: Place | None = None, **env: str
    ) -> None:
        """Without `jobs` nothing happens in the background: we hold the lock of the one that is elected for it."""
        self._jobs: int | None = None
        if not jobs:
            run_dir = directory / "data" / "index" / "run"
            run_dir.mkdir(parents=True)
            self._jobs = os.open(run_dir / "jobs.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._jobs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._armed = directory / "crash-at"
        env["SLUICE_CRASH_FILE"] = str(self._armed)
        self.gateway = Gateway(directory / "data", workers, env=env, place=place or Place())
        self.s3: Any = None

    def __enter__(self) -> Scene:
        try:
            self.start()
            self.s3.create_bucket(Bucket=BUCKET)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.disarm()
        if self.gateway.process is not None:
            self.gateway.kill()
        if self._jobs is not None:
            os.close(self._jobs)

    def start(self) -> None:
        """Start (again); nothing is armed."""
        self.disarm()
        if self.gateway.process is not None:
            self.gateway.kill()
        self.gateway.start()
        self.s3 = client(self.gateway.endpoint)

    def arm(self, point: str, word: str = "") -> None:
        """From now on every worker dies that comes to `point`, with the word in what it does there."""
        self._armed.with_suffix(".new").write_text(f"{point}\n{word}")
        self._armed.with_suffix(".new").rename(self._armed)

    def disarm(self) -> None:
        """Nobody dies any more."""
        self._armed.unlink(missing_ok=True)

    def crash(self, point: str, act: Callable[[], object], key: str) -> None:
        """Let `act`, which is about `key`, run into `point`, then restart. Fails when it was answered."""
        # a commit of something else, such as a sign of life, is not what is to be cut short
        self.arm(point, repr(key) if point.startswith("index.") else "")
        self.gateway.freeze_launcher()  # a new worker would only be killed while it imports
        try:
            act()
        except UNKNOWN:
            pass
        else:
            raise AssertionError(f"the operation never came to {point}")
        self.start()

    def crash_in_background(self, point: str, act: Callable[[], object]) -> None:
        """Arm, `act`, wait until a worker has died of it, then restart. An `act` that died with it is done again."""
        workers = self.gateway.children()
        self.arm(point)
        cut = False
        try:
            act()
        except UNKNOWN:
            cut = True
        self.wait_until(lambda: not set(workers) <= set(self.gateway.children()), f"a worker came to {point}")
        self.start()
        if cut:
            act()

    def sql(self, command: str) -> None:
        """Change the index behind the gateway's back."""
        if postgres.CHOSEN == "postgres":
            url = urlsplit(postgres.environment(self.gateway.data)["SLUICE_INDEX"])
            postgres.server().sql(command, url.path.removeprefix("/"))
            return
        with closing(sqlite3.connect(self.gateway.data / "index" / "sluice.db")) as index, index:
            index.execute(command)

    def wait_until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for something that happens in the background."""
        eventually(true, what)

    def look(self, key: str) -> Look:
        """What a client sees of the key."""
        listing = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=key).get("Contents", [])
        listed = [(entry["Size"], entry["ETag"]) for entry in listing if entry["Key"] == key]
        uploads = self.s3.list_multipart_uploads(Bucket=BUCKET, Prefix=key).get("Uploads", [])
        parts = []
        for upload in uploads:
            if upload["Key"] == key:
                shown = self.s3.list_parts(Bucket=BUCKET, Key=key, UploadId=upload["UploadId"]).get("Parts", [])
                parts.append({part["PartNumber"]: part["ETag"] for part in shown})
        return Look(read(self.s3, BUCKET, key), listed[0] if listed else None, parts)

    def files(self) -> int:
        """Blobs with a file of their own."""
        return sum(1 for path in (self.gateway.data / "data").glob("*/*") if not path.suffix)

    def packs(self) -> set[str]:
        """Names of the packs."""
        return {path.name for path in (self.gateway.data / "data").glob("*/*.pack")}

    def fsck(self) -> str:
        """What `sluice fsck` has to say, empty when all is well."""
        # in this process: a new one would take longer than all else of a test
        arguments = ["fsck", "--json", *self.gateway.where()]
        report = CliRunner().invoke(cli, arguments, env=self.gateway.environment())
        return "" if report.exit_code == 0 else f"{report.exit_code}: {report.output} {report.exception}"


def already_ended(act: Callable[[], object]) -> None:
    """Repeat what may have been done: an upload that is gone is no error, nor a size that is another."""
    try:
        act()
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NoSuchUpload", "InvalidWriteOffset"):
            raise
