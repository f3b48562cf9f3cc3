"""The line about an error that an operator reads."""

from __future__ import annotations

import pytest

from sluice_s3.app.errors import StoreUnavailable, WriterDead, describe


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FileNotFoundError(2, "No such file or directory", "/data"), "No such file or directory: /data"),
        (StoreUnavailable(reason="the disk is gone"), "the disk is gone"),
        (StoreUnavailable(store="main"), "store='main'"),
        (WriterDead(), "WriterDead"),
        (ValueError(), "ValueError"),
    ],
)
def test_an_error_is_described(error: Exception, line: str) -> None:
    assert describe(error) == line
