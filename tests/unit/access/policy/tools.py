"""Short ways to write policies and requests."""

from __future__ import annotations

import json
from typing import Any

from sluice_s3.app.access.policy import Caller, Decision, Request, parse

BUCKET = "photos"
BUCKET_ARN = f"arn:aws:s3:::{BUCKET}"
OBJECTS_ARN = f"arn:aws:s3:::{BUCKET}/*"
ANNA = Caller("a" * 64, "111122223333", "arn:aws:iam::111122223333:root")
BEN = Caller("b" * 64, "444455556666", "arn:aws:iam::444455556666:user/ben", unique_id="AIDABENBENBENBENBEN")


def statement(**fields: Any) -> dict[str, Any]:
    """One that allows everyone to get all objects; a field that is None is left out."""
    found = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": OBJECTS_ARN} | fields
    return {name: value for name, value in found.items() if value is not None}


def document(*statements: Any, **fields: Any) -> bytes:
    """A policy's text."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)} | fields).encode()


def asked(
    key: str | None = "key",
    action: str = "s3:GetObject",
    caller: Caller | None = None,
    context: dict[str, list[str]] | None = None,
) -> Request:
    """A request for an object, or for the bucket (key None)."""
    values = {name.lower(): found for name, found in (context or {}).items()}
    return Request(caller, action, BUCKET if key is None else f"{BUCKET}/{key}", values.get)


def decide(statements: Any, request: Request, version: str = "2012-10-17") -> Decision:
    """What a policy of these statements says."""
    found = statements if isinstance(statements, list) else [statements]
    return parse(document(*found, Version=version), BUCKET).decide(request)


def allows(found: dict[str, Any], request: Request, version: str = "2012-10-17") -> bool:
    """Whether a policy of one statement allows a request."""
    return decide(found, request, version) is Decision.ALLOW
