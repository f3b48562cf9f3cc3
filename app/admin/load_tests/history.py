"""What is kept of load tests: a directory each, below the gateway's own.

All functions block, for as long as that disk does.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from sluice_s3.app.admin.load_tests.models import LoadTestOut

DIRECTORY = "load-tests"
LOCK = "lock"
NOTE = "load-test.json"
"""In each directory: what it is, as the API shows it, and its scratch directories."""
ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
REPORT = "report.html"
RESULTS = ("meta.json", "report.html", "report.json", "report.md", "resources.csv", "rows.parquet")
"""Files of `sluice bench`, beside `rows/` and `logs/`."""


class Note(LoadTestOut):
    """What is noted of a load test: also where it may have left something."""

    scratch: list[str] = []


class History:
    """The load tests that are kept, `most` at most."""

    def __init__(self, home: Path, most: int) -> None:
        self.directory = home / DIRECTORY
        self.most = most

    @property
    def lock(self) -> Path:
        """The file that is locked while a load test runs."""
        return self.directory / LOCK

    def new_id(self) -> str:
        """Return the name of a load test that begins now."""
        return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"

    def path(self, load_test: str) -> Path:
        """Return the directory of a load test."""
        assert ID.fullmatch(load_test)
        return self.directory / load_test

    def write(self, note: Note) -> None:
        """Write what is noted of a load test."""
        directory = self.path(note.id)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        making = directory / f"{NOTE}.making"
        making.write_text(note.model_dump_json(indent=1), encoding="utf-8")
        making.replace(directory / NOTE)

    def read(self, load_test: str) -> Note | None:
        """Return what is noted of a load test, None if there is no such one."""
        if not ID.fullmatch(load_test):
            return None
        try:
            note = Note.model_validate_json((self.path(load_test) / NOTE).read_bytes())
        except (OSError, ValidationError):
            return None
        note.report = (self.path(load_test) / REPORT).is_file()
        return note

    def all(self) -> list[Note]:
        """Return all load tests, the newest first."""
        try:
            names = sorted(os.listdir(self.directory), reverse=True)
        except FileNotFoundError:
            return []
        return [note for name in names if (note := self.read(name)) is not None]

    def size(self, load_test: str) -> int:
        """Return the bytes of a load test's files."""
        return sum(path.stat().st_size for path, _ in self.files(load_test))

    def free(self) -> int:
        """Return the bytes that are free where they are kept."""
        return shutil.disk_usage(self.directory).free

    def files(self, load_test: str) -> Iterator[tuple[Path, str]]:
        """Yield the files of a load test, with their paths in it; only what `sluice bench` writes, no links."""
        top = self.path(load_test)
        for directory, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = Path(directory, name)
                inside = path.relative_to(top)
                if (inside.parts[0] in ("rows", "logs") or str(inside) in RESULTS) and not path.is_symlink():
                    yield path, str(inside)

    def remove(self, load_test: str) -> None:
        """Remove a load test. Raises OSError."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.path(load_test))

    def trim(self) -> None:
        """Remove the oldest load tests beyond the number that is kept."""
        for note in [note for note in self.all() if note.state != "running"][self.most :]:
            self.remove(note.id)
