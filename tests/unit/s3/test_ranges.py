from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire.ranges import parse_copy_range, parse_range


@pytest.mark.parametrize(
    ("value", "size", "found"),
    [
        ("bytes=0-0", 10, (0, 1)),
        ("bytes=0-9", 10, (0, 10)),
        ("bytes=4-7", 10, (4, 4)),
        ("bytes=4-", 10, (4, 6)),
        ("bytes=9-", 10, (9, 1)),
        ("bytes=4-99", 10, (4, 6)),
        ("bytes=-3", 10, (7, 3)),
        ("bytes=-99", 10, (0, 10)),
        ("bytes=007-0008", 10, (7, 2)),
        (" bytes=1-2 ", 10, (1, 2)),
        (f"bytes=0-{2**64}", 10, (0, 10)),
        ("bytes=-" + "9" * 5000, 10, (0, 10)),
    ],
)
def test_ranges(value: str, size: int, found: tuple[int, int]) -> None:
    assert parse_range(value, size) == found


@pytest.mark.parametrize(
    "value",
    [None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-4", "bytes=--1", "bytes=-1-", "bytes=1",
     "octets=0-1", "bytes=0-1,3-4", "bytes 0-1", "bytes=0 - 1", "bytes=+0-1", "bytes=0x0-0x1", "bytes=\xb2-",
     "bytes=" + "0-0," * 10_000, "bytes=9-8"],
)  # fmt: skip
def test_e85_what_s3_does_not_understand_is_no_range(value: str | None) -> None:
    assert parse_range(value, 10) is None


@pytest.mark.parametrize(
    ("value", "size"),
    [("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=0-", 0), ("bytes=-1", 0), ("bytes=-0", 10), ("bytes=40-50", 0),
     (f"bytes={2**64}-", 10), ("bytes=" + "9" * 5000 + "-", 10)],
)  # fmt: skip
def test_e85_unsatisfiable(value: str, size: int) -> None:
    with pytest.raises(errors.InvalidRange) as caught:
        parse_range(value, size)
    assert caught.value.headers == {"content-range": f"bytes */{size}"}
    assert caught.value.extra == {"RangeRequested": value[:256], "ActualObjectSize": str(size)}


@given(st.integers(1, 50), st.integers(0, 60), st.integers(0, 60))
def test_ranges_are_slices(size: int, first: int, last: int) -> None:
    data = bytes(range(size))
    if first < size and first <= last:
        offset, length = parse_range(f"bytes={first}-{last}", size) or (0, 0)
        assert data[offset : offset + length] == data[first : last + 1]
        assert offset + length <= size


@given(st.text(max_size=30), st.integers(0, 100))
def test_anything_gives_a_range_within_the_object_or_invalid_range(text: str, size: int) -> None:
    try:
        found = parse_range("bytes=" + text, size)
    except errors.InvalidRange:
        return
    assert found is None or (found[0] >= 0 and found[1] > 0 and sum(found) <= size)


@pytest.mark.parametrize(("value", "found"), [("bytes=0-0", (0, 1)), ("bytes=2-9", (2, 8))])
def test_copy_ranges(value: str, found: tuple[int, int]) -> None:
    assert parse_copy_range(value, 10) == found


@pytest.mark.parametrize(
    "value",
    ["", "0-2", "bytes=0", "bytes=hello-world", "bytes=0-bar", "bytes=hello-", "bytes=0-2,3-5", "bytes=5-4", "bytes=5-",
     "bytes=-5", "bytes=0-" + "9" * 20, " bytes=0-1"],
)  # fmt: skip
def test_h92_malformed_copy_ranges(value: str) -> None:
    with pytest.raises(errors.InvalidArgument) as caught:
        parse_copy_range(value, 10)
    assert caught.value.extra["ArgumentName"] == "x-amz-copy-source-range"


@pytest.mark.parametrize("value", ["bytes=0-10", "bytes=10-20", "bytes=0-21"])
def test_h92_copy_ranges_past_the_end(value: str) -> None:
    with pytest.raises(errors.InvalidRange, match="object of size: 10"):
        parse_copy_range(value, 10)
