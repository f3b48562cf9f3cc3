"""Parses `x-amz-copy-source`, alike for the copy and for policies (law 7)."""

from __future__ import annotations

from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.wire import target


def parse_copy_source(value: str) -> tuple[str, str, str | None]:
    """Return bucket, key and version id; `+` is a blank. Raises InvalidArgument, InvalidURI, KeyTooLongError.

    AWS decodes the header like a form, and s5cmd and Java's URLEncoder write blanks that way
    (https://github.com/aws/aws-cli/issues/614: a plus must be written `%2B`).
    """
    path, _, version = value.encode("latin-1").partition(b"?versionId=")
    text = target.decode(path.replace(b"+", b" ")).removeprefix("/")
    bucket, _, key = text.partition("/")
    if not bucket or not key:
        raise InvalidArgument(
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
            ArgumentName="x-amz-copy-source",
        )
    target.validate_key(key)
    return bucket, key, target.decode(version) or None


def policy_resource(value: str) -> str:
    """Return `BUCKET/KEY` for conditions on `s3:x-amz-copy-source`. Raises like `parse_copy_source`."""
    bucket, key, _ = parse_copy_source(value)
    return f"{bucket}/{key}"
