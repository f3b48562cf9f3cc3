"""Byte ranges: invalid ones are ignored for reads and refused for copies, as on S3."""

from __future__ import annotations

import re

from sluice_s3.app.s3 import errors

# one range; several ranges, another unit or anything else never match, however long the value is
_RANGE = re.compile(r"bytes=([0-9]*+)-([0-9]*+)")
_COPY_RANGE = re.compile(r"bytes=([0-9]{1,19})-([0-9]{1,19})")
_HUGE = 2**63


def parse_range(value: str | None, size: int) -> tuple[int, int] | None:
    """Return offset and length of a Range header in `size` bytes.

    None means the whole object. As on S3 a header with another unit, several ranges or malformed counts as absent (RFC
    9110 §14.2 allows it). Raises InvalidRange when no byte of the object is in the range.
    """
    if value is None:
        return None
    match = _RANGE.fullmatch(value.strip())
    if match is None:
        return None
    first, last = match.groups()
    if not first:
        if not last:
            return None
        length = min(_number(last), size)
        if length == 0:
            raise _unsatisfiable(value, size)
        return size - length, length
    start = _number(first)
    end = _number(last) if last else size - 1
    if last and end < start:
        return None
    if start >= size:
        raise _unsatisfiable(value, size)
    return start, min(end, size - 1) - start + 1


def parse_copy_range(value: str, size: int) -> tuple[int, int]:
    """Return offset and length of `x-amz-copy-source-range` in a source of `size` bytes.

    Raises InvalidArgument unless it is `bytes=first-last`, and InvalidRange when it exceeds the source.
    """
    match = _COPY_RANGE.fullmatch(value)
    first, last = (int(match[1]), int(match[2])) if match else (1, 0)
    if last < first:
        raise errors.InvalidArgument(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the"
            " zero-based offsets of the first and last bytes to copy",
            ArgumentName="x-amz-copy-source-range",
            ArgumentValue=value[:256],
        )
    if last >= size:
        raise errors.InvalidRange(
            f"Range specified is not valid for source object of size: {size}",
            RangeRequested=value,
            ActualObjectSize=size,
        )
    return first, last - first + 1


def _number(digits: str) -> int:
    digits = digits.lstrip("0")
    return _HUGE if len(digits) > 18 else int(digits or "0")


def _unsatisfiable(value: str, size: int) -> errors.InvalidRange:
    return errors.InvalidRange(
        headers={"content-range": f"bytes */{size}"}, RangeRequested=value[:256], ActualObjectSize=size
    )
