"""Zip archives as Python's zipfile reads them."""

from __future__ import annotations

import io
import zipfile

import pytest

from sluice_s3.app.admin.archives import zip_format
from sluice_s3.app.admin.archives.zip_format import ZipWriter

MOMENT = (2026, 11, 23, 12, 30, 58)


def test_entries_come_back_whole() -> None:
    writer, out = ZipWriter(), b""
    out += writer.folder("d/", MOMENT)
    for name, compress in (("d/text é.txt", True), ("d/photo.jpg", False)):
        out += writer.start(name, MOMENT, 300_000, compress=compress)
        for _ in range(3):
            out += writer.data(b"x" * 100_000)
        out += writer.end()
    out += writer.finish()
    assert len(out) == writer.written
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["d/", "d/text é.txt", "d/photo.jpg"]
        text, photo = archive.infolist()[1:]
        assert archive.read(text) == archive.read(photo) == b"x" * 300_000
        assert text.compress_size < 10_000 < 300_000 <= photo.compress_size < 301_000
        assert text.date_time == MOMENT
        assert archive.infolist()[0].is_dir()


def test_an_abandoned_entry_is_in_no_directory() -> None:
    writer = ZipWriter()
    out = writer.start("half", MOMENT, 10, compress=True) + writer.data(b"12345") + writer.abandon()
    out += writer.start("whole", MOMENT, 2, compress=True) + writer.data(b"ok") + writer.end() + writer.finish()
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.namelist() == ["whole"]
        assert archive.testzip() is None


@pytest.mark.parametrize("large", [True, False])
def test_numbers_of_64_bits(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    if large:  # as if an entry were beyond 4 GiB, and there were too many
        monkeypatch.setattr(zip_format, "LARGE_BYTES", 0)
        monkeypatch.setattr(zip_format, "LIMIT16", 1)
    writer, out = ZipWriter(), b""
    for name in ("a", "b"):
        out += writer.start(name, MOMENT, 3, compress=True) + writer.data(b"abc") + writer.end()
    out += writer.finish()
    assert (b"PK\x06\x06" in out) is large
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.testzip() is None
        assert archive.read("b") == b"abc"
        assert bool(archive.getinfo("b").extra) is large


def test_times_before_1980_become_1980() -> None:
    writer = ZipWriter()
    out = writer.start("old", (1970, 1, 1, 0, 0, 0), 0, compress=False) + writer.end() + writer.finish()
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.getinfo("old").date_time == (1980, 1, 1, 0, 0, 0)
