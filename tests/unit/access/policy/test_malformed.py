"""Texts that are no policy, and what the client is told of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice_s3.app.access.policy import Malformed, errors, parse
from sluice_s3.app.access.policy.document import MAX_BYTES, TOO_LONG
from tests.unit.access.policy.tools import BUCKET, BUCKET_ARN, OBJECTS_ARN, document, statement


def message(text: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        parse(text, BUCKET)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", errors.FIRST_BYTE),
        (b"[]", errors.FIRST_BYTE),
        (b'"{}"', errors.FIRST_BYTE),
        (b"\xef\xbb\xbf{}", errors.FIRST_BYTE),
        (b"{", errors.NOT_JSON),
        (b"{}}", errors.NOT_JSON),
        (b'{"a": NaN}', errors.NOT_JSON),
        (b'{"Version": "2012-10-17", "Version": "2008-10-17"}', errors.NOT_JSON),
        (b'{"Id": "\xff"}', errors.NOT_JSON),
        (b'{"Id": "\\ud800"}', errors.NOT_JSON),
        (b'{"a":' + b"[" * 100_000, errors.NOT_JSON),
        (b"{}", "Missing required field Statement"),
        (b'{"Statement": []}', errors.NO_STATEMENT),
        (b'{"Statement": "x"}', errors.SYNTAX),
        (b'{"Statement": [1]}', errors.SYNTAX),
        (b'{"Statement": [{}], "Condition": {}}', "Unknown field Condition"),
        (b'{"Statement": [{}]}', "Missing required field Effect"),
        (b'{"Statement": [{}], "Id": []}', errors.SYNTAX),
    ],
)
def test_documents(text: bytes, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize("version", ["2012-10-18", "", None, 2012, ["2012-10-17"]])
def test_versions(version: Any) -> None:
    assert message(document(statement(), Version=version)) == errors.VERSION


STATEMENTS: list[tuple[dict[str, Any], str]] = [
    ({"Effect": None}, "Missing required field Effect"),
    ({"Effect": "allow"}, "Invalid effect: allow"),
    ({"Principal": None}, "Missing required field Principal"),
    ({"Principal": {}}, errors.EMPTY_PRINCIPAL),
    ({"Principal": "anna"}, errors.PRINCIPAL),
    ({"Principal": ["*"]}, errors.SYNTAX),
    ({"Principal": {"Aws": "*"}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": []}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": "12345678901"}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": 5}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:iam::*:root"}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:iam::111122223333:user/*"}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:iam::111122223333:group/g"}}, errors.PRINCIPAL),
    ({"Principal": {"AWS": "arn:aws:s3:::photos"}}, errors.PRINCIPAL),
    ({"Principal": {"CanonicalUser": "*"}}, errors.PRINCIPAL),
    ({"Principal": None, "NotPrincipal": {"AWS": "111122223333"}}, errors.ALLOW_NOT_PRINCIPAL),
    ({"NotPrincipal": {"AWS": "111122223333"}}, errors.SYNTAX),
    ({"Action": None}, "Missing required field Action"),
    ({"Action": []}, errors.ACTION),
    ({"Action": "s3:Nothing"}, errors.ACTION),
    ({"Action": "ec2:*"}, errors.ACTION),
    ({"Action": "GetObject"}, errors.ACTION),
    ({"Action": ["s3:GetObject", "s3:X*"]}, errors.ACTION),
    ({"NotAction": "s3:GetObject"}, errors.SYNTAX),
    ({"Resource": None}, "Missing required field Resource"),
    ({"Resource": []}, errors.RESOURCE),
    ({"Resource": "*"}, errors.RESOURCE),
    ({"Resource": "photos/*"}, errors.RESOURCE),
    ({"Resource": "arn:aws:s3:::videos/*"}, errors.RESOURCE),
    ({"Resource": "arn:aws:s3:::photo"}, errors.RESOURCE),
    ({"Resource": "arn:aws:s3:::photosx/*"}, errors.RESOURCE),
    ({"Resource": [OBJECTS_ARN, "arn:aws:s3:::videos/*"]}, errors.RESOURCE),
    ({"Resource": BUCKET_ARN + "/${aws:username"}, errors.SYNTAX),
    ({"Resource": BUCKET_ARN + "/${}"}, errors.SYNTAX),
    ({"Resource": BUCKET_ARN + "/${aws:username, x}"}, errors.SYNTAX),
    ({"Resource": BUCKET_ARN}, errors.MISMATCH),
    ({"Action": "s3:ListBucket"}, errors.MISMATCH),
    ({"Action": ["s3:GetObject", "s3:ListBucket"]}, errors.MISMATCH),
    ({"Action": "s3:ListAllMyBuckets", "Resource": [BUCKET_ARN, OBJECTS_ARN]}, errors.MISMATCH),
    ({"Condition": []}, errors.SYNTAX),
    ({"Condition": {"StringEquals": "x"}}, errors.SYNTAX),
    ({"Condition": {"StringEquals": {"aws:Referer": []}}}, errors.SYNTAX),
    ({"Condition": {"StringEquals": {"aws:Referer": {"a": "b"}}}}, errors.SYNTAX),
    ({"Condition": {"StringSame": {"aws:Referer": "x"}}}, "Invalid Condition type : StringSame"),
    ({"Condition": {"NullIfExists": {"aws:Referer": "true"}}}, "Invalid Condition type : NullIfExists"),
    ({"Condition": {"ForSome:Bool": {"aws:Referer": "true"}}}, "Invalid Condition type : ForSome:Bool"),
    ({"Condition": {"StringEquals": {"aws:Refer": "x"}}}, errors.CONDITION_KEY),
    ({"Condition": {"StringEquals": {"s3:ExistingObjectTag/": "x"}}}, errors.CONDITION_KEY),
    ({"Condition": {"StringEquals": {"userid": "x"}}}, errors.CONDITION_KEY),
    ({"Condition": {"StringEquals": {"s3:prefix": "x"}}}, errors.CONDITION_MISMATCH),
    ({"Condition": {"NumericEquals": {"aws:EpochTime": "soon"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"DateEquals": {"aws:CurrentTime": "2026-02-30"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"DateEquals": {"aws:CurrentTime": "2026-1-1"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/33"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"IpAddress": {"aws:SourceIp": "${aws:SourceIp}"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"Bool": {"aws:SecureTransport": "yes"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"Null": {"aws:Referer": "yes"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"BinaryEquals": {"aws:Referer": "?"}}}, errors.CONDITION_VALUE),
    ({"Condition": {"ArnEquals": {"aws:SourceArn": "arn:aws:*"}}}, errors.CONDITION_VALUE),
    ({"Sid": 5.5, "Sids": 1}, "Unknown field Sids"),
    ({"Sid": []}, errors.SYNTAX),
]


@pytest.mark.parametrize(("fields", "expected"), STATEMENTS)
def test_statements(fields: dict[str, Any], expected: str) -> None:
    assert message(document(statement(**fields))) == expected
    # as wrong behind one that is right
    assert message(document(statement(), statement(**fields))) == expected


def test_names_of_statements_are_unique() -> None:
    assert message(document(statement(Sid="a"), statement(Sid="a"))) == errors.SAME_SID
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
