"""The meaning of "public" ("Blocking public access to your Amazon S3 storage", Amazon S3 User Guide)."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_s3.app.access.policy import is_public, parse
from tests.unit.access.policy.tools import BUCKET, document, statement


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"Principal": {"AWS": "*"}}, True),
        ({"Principal": {"AWS": ["111122223333", "*"]}}, True),
        ({"Principal": {"AWS": "111122223333"}}, False),
        ({"Principal": {"CanonicalUser": "a" * 64}}, False),
        ({"Principal": {"Service": "logging.s3.amazonaws.com"}}, False),
        ({"Effect": "Deny"}, False),
        ({"Effect": "Deny", "Principal": None, "NotPrincipal": {"AWS": "111122223333"}}, False),
        ({"Condition": {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}}, False),
        ({"Condition": {"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}}}, True),
        ({"Condition": {"IpAddress": {"aws:SourceIp": ["203.0.113.0/24", "0.0.0.0/1"]}}}, True),
        ({"Condition": {"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}}, False),
        ({"Condition": {"IpAddress": {"aws:SourceIp": "2001::/16"}}}, True),
        ({"Condition": {"NotIpAddress": {"aws:SourceIp": "203.0.113.0/24"}}}, True),
        ({"Condition": {"IpAddressIfExists": {"aws:SourceIp": "203.0.113.0/24"}}}, True),
        ({"Condition": {"StringEquals": {"aws:SourceVpc": "vpc-91237329"}}}, False),
        ({"Condition": {"StringLike": {"aws:SourceVpc": "vpc-*"}}}, True),
        ({"Condition": {"StringLike": {"aws:SourceVpc": "vpc-1"}}}, False),
        ({"Condition": {"StringEquals": {"aws:SourceVpc": "${aws:SourceVpc}"}}}, True),
        ({"Condition": {"StringNotEquals": {"aws:SourceVpc": "vpc-91237329"}}}, True),
        ({"Condition": {"StringEqualsIfExists": {"aws:SourceVpc": "vpc-91237329"}}}, True),
        ({"Condition": {"ForAllValues:StringEquals": {"aws:SourceVpc": "vpc-91237329"}}}, True),
        ({"Condition": {"ForAnyValue:StringEquals": {"aws:SourceVpc": "vpc-91237329"}}}, False),
        ({"Condition": {"StringEquals": {"aws:Referer": "https://example.com"}}}, True),
        ({"Condition": {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:111122223333:topic"}}}, False),
        ({"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:*:*"}}}, True),
    ],
)
def test_statements(fields: dict[str, Any], expected: bool) -> None:
    assert is_public(parse(document(statement(**fields)), BUCKET)) is expected
    closed = statement(Principal={"AWS": "111122223333"})
    assert is_public(parse(document(closed, statement(**fields)), BUCKET)) is expected
