"""What a copy is made of: order, parts, attributes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_s3.app.transfer import attributes, bodies, listing
from sluice_s3.app.transfer.errors import TransferError, describe, explain, is_fatal, is_transient
from sluice_s3.app.transfer.listing import Entry

SECOND = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Pages:
    """A client whose one listing is these entries in the order of the document: key, id, time, latest, marker."""

    def __init__(self, *entries: tuple[str, str, datetime, bool, bool]) -> None:
        self._entries = entries
        self.meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))

    def get_paginator(self, name: str) -> Any:
        assert name == "list_object_versions"
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        document = b"".join(b"<DeleteMarker>" if entry[4] else b"<Version>" for entry in self._entries)
        page: dict[str, Any] = {"Versions": [], "DeleteMarkers": []}
        listing._keep_order(SimpleNamespace(content=document), page)
        for key, version_id, modified, latest, marker in self._entries:
            one = {"Key": key, "VersionId": version_id, "LastModified": modified, "IsLatest": latest, "ETag": '"e"'}
            page["DeleteMarkers" if marker else "Versions"].append(one)
        return [page]


def ids(*entries: tuple[str, str, datetime, bool, bool]) -> list[str]:
    """The ids of one key, oldest first, as a copy takes them."""
    bucket: Any = SimpleNamespace(client=Pages(*entries), name="b", where="b", versioning="Enabled")
    return [entry.version_id for _, group in listing.keys(bucket, "") for entry in group]


def test_the_document_orders_what_times_do_not() -> None:
    mixed = [("k", name, SECOND, name == "a", name in "ac") for name in "abcd"]
    assert ids(*mixed) == ["d", "c", "b", "a"]


def test_a_version_that_is_listed_twice_is_one() -> None:
    """As at Versity, on the page after the one that it ended."""
    assert ids(*[("k", name, SECOND, False, False) for name in "ccba"]) == ["a", "b", "c"]


def test_ulids_order_versions_and_markers_that_are_listed_apart() -> None:
    """As at Versity: all markers first, and times of a second."""
    start = int(SECOND.timestamp() * 1000)

    def ulid(modified: int) -> str:
        return "".join(listing._DIGITS[modified >> shift & 31] for shift in range(45, -1, -5)) + "0" * 16

    first, second, third = (ulid(start + step) for step in (100, 200, 300))
    assert ids(
        ("k", second, SECOND, False, True), ("k", third, SECOND, True, False), ("k", first, SECOND, False, False)
    ) == [
        first,
        second,
        third,
    ]


def test_a_listing_in_another_order_is_refused() -> None:
    """Two listings are compared in one pass: another order would copy everything again."""
    bucket: Any = SimpleNamespace(name="b", where="s3://b at http://x", versioning="")
    pages = [{"Contents": [{"Key": key, "LastModified": SECOND, "Size": 1}]} for key in ("b", "a")]
    bucket.client = SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: pages))
    with pytest.raises(TransferError, match="not in the order of keys"):
        list(listing.keys(bucket, ""))


@pytest.mark.parametrize(
    ("size", "parts", "step"),
    [(12 << 20, 2, 8 << 20), (17 << 20, 2, 16 << 20), (9 << 20, 1, 16 << 20), (300 << 20, 6, 50 << 20)],
)
def test_parts_of_usual_sizes_are_found(size: int, parts: int, step: int) -> None:
    entry = Entry("k", "", 0, size, "", "")
    found = bodies.ranges(entry, parts, None)
    assert len(found) == parts
    assert found[0] == {"Range": f"bytes=0-{min(step, size) - 1}"}
    assert found[-1]["Range"].endswith(f"-{size - 1}")
    assert bodies.ranges(entry, parts, step)[-1] == {"PartNumber": parts}


def test_a_multipart_etag_is_that_of_aws() -> None:
    # two parts of 16 bytes of zeros each
    assert bodies.multipart_etag(["4ae71336e44bf9bf79d2752e234818a5"] * 2) == "d01e450c137ae90d48f88153b6e474ae-2"
    assert bodies.part_count("0" * 32 + "-17") == 17
    assert bodies.part_count("0" * 32) == bodies.part_count("0011223344556677889900aabb-crc64nvme") == 0


def test_attributes_of_a_copy() -> None:
    answer = {
        "ContentType": "text/x",
        "ContentEncoding": "gzip,aws-chunked",
        "Metadata": {"plain": "v", "sent-raw": "ä".encode().decode("latin-1")},
        "StorageClass": "THEIRS",
        "ObjectLockMode": "GOVERNANCE",
        "ObjectLockRetainUntilDate": datetime.now(UTC) - timedelta(days=1),
        "ObjectLockLegalHoldStatus": "ON",
        "ExpiresString": "soon",
    }
    assert attributes.of_response(answer, {"THEIRS": "STANDARD_IA"}) == {
        "ContentType": "text/x",
        "ContentEncoding": "gzip",
        "Metadata": {"plain": "v", "sent-raw": "=?utf-8?b?w6Q=?="},
        "StorageClass": "STANDARD_IA",
        "ObjectLockLegalHoldStatus": "ON",
        "Expires": "soon",
    }


def test_checksums_go_along() -> None:
    assert attributes.checksum({"ChecksumSHA256": "x", "ChecksumType": "FULL_OBJECT"}) == {"ChecksumSHA256": "x"}
    assert attributes.checksum({"ChecksumSHA256": "x-2", "ChecksumType": "COMPOSITE"}) == {}
    assert attributes.checksum_of_parts({"ChecksumCRC32C": "x-2"}) == {
        "ChecksumAlgorithm": "CRC32C",
        "ChecksumType": "COMPOSITE",
    }


def refusal(code: str, status: int, message: str = "") -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutObject")


def test_what_a_destination_lacks_is_left_out() -> None:
    arguments = {"Tagging": "a=b", "StorageClass": "X", "ACL": "public-read"}
    assert attributes.part_at_fault(refusal("InvalidStorageClass", 400), arguments) == "storage class"
    assert attributes.part_at_fault(refusal("NotImplemented", 501), arguments) == "tags"
    assert attributes.part_at_fault(refusal("NotImplemented", 501), {}) == ""
    assert attributes.part_at_fault(refusal("AccessDenied", 403), arguments) == "ACL"
    assert attributes.part_at_fault(refusal("AccessDenied", 403), {"Tagging": "a=b"}) == ""


def test_errors_are_of_three_kinds() -> None:
    assert is_transient(refusal("SlowDown", 503))
    assert not is_transient(refusal("AccessDenied", 403))
    assert is_fatal(refusal("SignatureDoesNotMatch", 403))
    assert not is_fatal(refusal("AccessDenied", 403))
    assert describe(refusal("Odd", 400, "two\nlines")) == "Odd: two lines"
    assert "s3://b" in str(explain(refusal("Odd", 400), "s3://b"))
