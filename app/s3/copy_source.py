"""What `x-amz-copy-source` names, read by one function for the copy and for the policies that judge it (law 7)."""

from __future__ import annotations

from app.s3 import target
from app.s3.errors import InvalidArgument


def parse(value: str) -> tuple[str, str, str | None]:
    """Bucket, key and version id; `+` is a blank. Raises InvalidArgument, InvalidURI, KeyTooLongError.

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
    target.check_key(key)
    return bucket, key, target.decode(version) or None


def resource_of(value: str) -> str:
    """`BUCKET/KEY`, as conditions on `s3:x-amz-copy-source` see it. Raises like `parse`."""
    bucket, key, _ = parse(value)
    return f"{bucket}/{key}"
