"""What is appended to an encrypted object is encrypted as the object is, and a rename leaves it so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.functional.sealed import CHUNK, MODES, body_of, bucket, keys
from tests.integration.functional.test_versioning import refused

pytestmark = pytest.mark.place("tree", "memory")

__all__ = ["bucket", "keys"]


@pytest.mark.parametrize("name", MODES)
def test_appended_and_renamed(s3: Any, bucket: str, name: str) -> None:
    mode, whole = MODES[name], b""
    customer = mode.read if "SSECustomerKey" in mode.write else {}
    for number, size in enumerate((300, CHUNK, 3 * CHUNK + 7, 20)):
        more = mode.write if number == 0 else customer
        piece = body_of(size)
        made = s3.put_object(Bucket=bucket, Key="k", Body=piece, WriteOffsetBytes=len(whole), **more)
        whole += piece
        got = s3.get_object(Bucket=bucket, Key="k", **mode.read)
        assert (got["Body"].read(), got["ETag"], got["ContentLength"]) == (whole, made["ETag"], len(whole))
    s3.rename_object(Bucket=bucket, Key="n", RenameSource="k")
    for first, last in ((0, 0), (299, 300), (300 + CHUNK - 1, 300 + 2 * CHUNK), (len(whole) - 21, len(whole) - 1)):
        got = s3.get_object(Bucket=bucket, Key="n", Range=f"bytes={first}-{last}", **mode.read)
        assert got["Body"].read() == whole[first : last + 1]
    if customer:
        refused(s3.put_object, 400, "InvalidRequest", Bucket=bucket, Key="n", Body=b"x", WriteOffsetBytes=len(whole))
