"""Texts that are no policy, and what the client is told of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.access.policy import Malformed, malformed, parse
from app.access.policy.document import MAX_BYTES, TOO_LONG
from tests.access.policy.tools import BUCKET, BUCKET_ARN, OBJECTS_ARN, document, statement


def message(text: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        parse(text, BUCKET)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", malformed.FIRST_BYTE),
        (b"[]", malformed.FIRST_BYTE),
        (b'"{}"', malformed.FIRST_BYTE),
        (b"\xef\xbb\xbf{}", malformed.FIRST_BYTE),
        (b"{", malformed.NOT_JSON),
        (b"{}}", malformed.NOT_JSON),
        (b'{"a": NaN}', malformed.NOT_JSON),
        (b'{"Version": "2012-10-17", "Version": "2008-10-17"}', malformed.NOT_JSON),
        (b'{"Id": "\xff"}', malformed.NOT_JSON),
        (b'{"Id": "\\ud800"}', malformed.NOT_JSON),
        (b'{"a":' + b"[" * 100_000, malformed.NOT_JSON),
        (b"{}", "Missing required field Statement"),
        (b'{"Statement": []}', malformed.NO_STATEMENT),
        (b'{"Statement": "x"}', malformed.SYNTAX),
        (b'{"Statement": [1]}', malformed.SYNTAX),
        (b'{"Statement": [{}], "Condition": {}}', "Unknown field Condition"),
        (b'{"Statement": [{}]}', "Missing required field Effect"),
        (b'{"Statement": [{}], "Id": []}', malformed.SYNTAX),
    ],
)
def test_documents(text: bytes, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize("version", ["2012-10-18", "", None, 2012, ["2012-10-17"]])
def test_versions(version: Any) -> None:
    assert message(document(statement(), Version=version)) == malformed.VERSION


STATEMENTS: list[tuple[dict[str, Any], str]] = [
    ({"Effect": None}, "Missing required field Effect"),
    ({"Effect": "allow"}, "Invalid effect: allow"),
    ({"Principal": None}, "Missing required field Principal"),
    ({"Principal": {}}, malformed.EMPTY_PRINCIPAL),
    ({"Principal": "anna"}, malformed.PRINCIPAL),
    ({"Principal": ["*"]}, malformed.SYNTAX),
    ({"Principal": {"Aws": "*"}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": []}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": "12345678901"}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": 5}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:iam::*:root"}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:iam::111122223333:user/*"}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:iam::111122223333:group/g"}}, malformed.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:s3:::photos"}}, malformed.PRINCIPAL),
    ({"Principal": {"CanonicalUser": "*"}}, malformed.PRINCIPAL),
    ({"Principal": None, "NotPrincipal": {"AWS": "111122223333"}}, malformed.ALLOW_NOT_PRINCIPAL),
    ({"NotPrincipal": {"AWS": "111122223333"}}, malformed.SYNTAX),
    ({"Action": None}, "Missing required field Action"),
    ({"Action": []}, malformed.ACTION),
    ({"Action": "s3:Nothing"}, malformed.ACTION),
    ({"Action": "ec2:*"}, malformed.ACTION),
    ({"Action": "GetObject"}, malformed.ACTION),
    ({"Action": ["s3:GetObject", "s3:X*"]}, malformed.ACTION),
    ({"NotAction": "s3:GetObject"}, malformed.SYNTAX),
    ({"Resource": None}, "Missing required field Resource"),
    ({"Resource": []}, malformed.RESOURCE),
    ({"Resource": "*"}, malformed.RESOURCE),
    ({"Resource": "photos/*"}, malformed.RESOURCE),
    ({"Resource": "arn:aws:s3:::videos/*"}, malformed.RESOURCE),
    ({"Resource": "arn:aws:s3:::photo"}, malformed.RESOURCE),
    ({"Resource": "arn:aws:s3:::photosx/*"}, malformed.RESOURCE),
    ({"Resource": [OBJECTS_ARN, "arn:aws:s3:::videos/*"]}, malformed.RESOURCE),
    ({"Resource": BUCKET_ARN + "/${aws:username"}, malformed.SYNTAX),
    ({"Resource": BUCKET_ARN + "/${}"}, malformed.SYNTAX),
    ({"Resource": BUCKET_ARN + "/${aws:username, x}"}, malformed.SYNTAX),
    ({"Resource": BUCKET_ARN}, malformed.MISMATCH),
    ({"Action": "s3:ListBucket"}, malformed.MISMATCH),
    ({"Action": ["s3:GetObject", "s3:ListBucket"]}, malformed.MISMATCH),
    ({"Action": "s3:ListAllMyBuckets", "Resource": [BUCKET_ARN, OBJECTS_ARN]}, malformed.MISMATCH),
    ({"Condition": []}, malformed.SYNTAX),
    ({"Condition": {"StringEquals": "x"}}, malformed.SYNTAX),
    ({"Condition": {"StringEquals": {"aws:Referer": []}}}, malformed.SYNTAX),
    ({"Condition": {"StringEquals": {"aws:Referer": {"a": "b"}}}}, malformed.SYNTAX),
    ({"Condition": {"StringSame": {"aws:Referer": "x"}}}, "Invalid Condition type : StringSame"),
    ({"Condition": {"NullIfExists": {"aws:Referer": "true"}}}, "Invalid Condition type : NullIfExists"),
    ({"Condition": {"ForSome:Bool": {"aws:Referer": "true"}}}, "Invalid Condition type : ForSome:Bool"),
    ({"Condition": {"StringEquals": {"aws:Refer": "x"}}}, malformed.CONDITION_KEY),
    ({"Condition": {"StringEquals": {"s3:ExistingObjectTag/": "x"}}}, malformed.CONDITION_KEY),
    ({"Condition": {"StringEquals": {"userid": "x"}}}, malformed.CONDITION_KEY),
    ({"Condition": {"StringEquals": {"s3:prefix": "x"}}}, malformed.CONDITION_MISMATCH),
    ({"Condition": {"NumericEquals": {"aws:EpochTime": "soon"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"DateEquals": {"aws:CurrentTime": "2026-02-30"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"DateEquals": {"aws:CurrentTime": "2026-1-1"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/33"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"IpAddress": {"aws:SourceIp": "${aws:SourceIp}"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"Bool": {"aws:SecureTransport": "yes"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"Null": {"aws:Referer": "yes"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"BinaryEquals": {"aws:Referer": "?"}}}, malformed.CONDITION_VALUE),
    ({"Condition": {"ArnEquals": {"aws:SourceArn": "arn:aws:*"}}}, malformed.CONDITION_VALUE),
    ({"Sid": 5.5, "Sids": 1}, "Unknown field Sids"),
    ({"Sid": []}, malformed.SYNTAX),
]


@pytest.mark.parametrize(("fields", "expected"), STATEMENTS)
def test_statements(fields: dict[str, Any], expected: str) -> None:
    assert message(document(statement(**fields))) == expected
    # as wrong behind one that is right
    assert message(document(statement(), statement(**fields))) == expected


def test_names_of_statements_are_unique() -> None:
    assert message(document(statement(Sid="a"), statement(Sid="a"))) == malformed.SAME_SID
    parse(document(statement(Sid="a"), statement(Sid="b"), statement(), statement(Sid="")), BUCKET)


def test_resources_that_can_name_the_bucket() -> None:
    for resource in ("*", "*/*", "ph?tos/a", "${aws:username}/x", BUCKET + "*", BUCKET + "/a${*}"):
        parse(document(statement(Resource="arn:aws:s3:::" + resource)), BUCKET)
    both = statement(Action=["s3:ListBucket", "s3:GetObject"], Resource="arn:aws:s3:::photos*")
    parse(document(both), BUCKET)


def test_length() -> None:
    """White space between tokens does not count; one byte more than allowed is too much."""
    room = MAX_BYTES - len(json.dumps(json.loads(document(statement(Sid=""))), separators=(",", ":")))
    longest = json.loads(document(statement(Sid="x" * room)))
    parse(json.dumps(longest, indent=8).encode(), BUCKET)
    assert message(document(statement(Sid="x" * (room + 1)))) == TOO_LONG
    assert message(document(statement(Sid="é" * (room // 2 + 1)))) == TOO_LONG
