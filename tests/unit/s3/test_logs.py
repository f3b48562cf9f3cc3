"""Access logs without a server: where they may go, their keys, and what is collected."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.logging.rows import Lines, Waiting
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.s3 import handlers
from sluice_s3.app.s3.errors import MalformedXML
from sluice_s3.app.s3.logging import record
from sluice_s3.app.s3.logging import xml as configuration
from sluice_s3.app.s3.logging.collector import MAX_PENDING, Collector
from sluice_s3.app.s3.logging.delivery import KEPT_MS, LogDelivery, group_by_day, key_of, may_deliver
from sluice_s3.app.s3.logging.record import SecondaryRecord
from sluice_s3.app.s3.logging.xml import Logging
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response, render_headers

handlers.register()  # a line names what its operation needs

SOURCE = Bucket(1, "source", "1" * 12, "us-east-1", 0)


def target(**statement: Any) -> Bucket:
    usual = {
        "Effect": "Allow",
        "Principal": {"Service": "logging.s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": "arn:aws:s3:::target/*",
    }
    return with_policy(usual | statement)


def with_policy(*statements: dict[str, Any]) -> Bucket:
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    return Bucket(2, "target", "1" * 12, "us-east-1", 0, settings=json.dumps({"policy": policy}))


EVERYBODY = {"Effect": "Allow", "Principal": "*", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::target/*"}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ({}, True),
        ({"Resource": "arn:aws:s3:::target/logs/*"}, True),
        ({"Resource": "arn:aws:s3:::target/logs/"}, True),
        ({"Resource": "arn:aws:s3:::target/other/*"}, False),
        ({"Principal": {"AWS": "*"}}, False),
        ({"Principal": {"Service": "s3.amazonaws.com"}}, False),
        ({"Action": "s3:GetObject"}, False),
        ({"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::source"}}}, True),
        ({"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::other"}}}, False),
        ({"Condition": {"StringEquals": {"aws:SourceAccount": "1" * 12}}}, True),
        ({"Condition": {"StringEquals": {"aws:SourceAccount": "2" * 12}}}, False),
        ({"Condition": {"Bool": {"aws:PrincipalIsAWSService": "true"}}}, True),
        ({"Condition": {"Bool": {"aws:SecureTransport": "false"}}}, False),
    ],
)
def test_the_policy_decides(statement: dict[str, Any], expected: bool) -> None:
    assert may_deliver(SOURCE, target(**statement), "logs/") is expected


def test_a_deny_of_everybody_is_one_of_services() -> None:
    allowed = json.loads(json.loads(target().settings)["policy"])["Statement"][0]
    denied = EVERYBODY | {"Effect": "Deny"}
    assert may_deliver(SOURCE, with_policy(allowed), "")
    assert not may_deliver(SOURCE, with_policy(allowed, denied), "")
    but = {"Condition": {"Bool": {"aws:PrincipalIsAWSService": "false"}}}
    assert may_deliver(SOURCE, with_policy(allowed, denied | but), "")
    assert not may_deliver(SOURCE, with_policy(EVERYBODY), "")


def test_no_policy_and_one_that_cannot_be_read() -> None:
    assert not may_deliver(SOURCE, SOURCE._replace(name="target"), "")
    assert not may_deliver(SOURCE, SOURCE._replace(name="target", settings='{"policy": "nonsense"}'), "")


def test_keys() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert key_of(SOURCE, Logging("t", "p-"), now, "").startswith("p-2026-01-02-03-04-05-")
    by_event = key_of(SOURCE, Logging("t", "", "EventTime"), now, "2025-12-31")
    assert by_event.startswith("111111111111/us-east-1/source/2025/12/31/2025-12-31-00-00-00-")
    delivered = key_of(SOURCE, Logging("t", "", "DeliveryTime"), now, "")
    assert delivered.startswith("111111111111/us-east-1/source/2026/01/02/2026-01-02-03-04-05-")


def test_lines_of_two_days() -> None:
    lines = ["o b [31/Dec/2025:23:59:59 +0000] x\n", "o b [01/Jan/2026:00:00:00 +0000] y\n"]
    assert group_by_day(lines, Logging("t", "", "EventTime")) == {"2025-12-31": lines[0], "2026-01-01": lines[1]}
    assert group_by_day(lines, Logging("t", "")) == {"": "".join(lines)}


def test_a_day_is_of_lines_that_end_by_a_newline_only() -> None:
    line = "o b [31/Dec/2025:23:59:59 +0000] x\x85\x0b\x0c\x1c\u2028\rb\n"
    by_event = Logging("t", "", "EventTime")
    assert group_by_day([line, "no day\n"], by_event) == {"2025-12-31": line + "no day\n"}
    assert list(group_by_day(["no day\n"], by_event).values()) == ["no day\n"]


EVIL = ["a\x85b", "x\nforged line", "a b", '"', "[", "\x00", "\x0b\x0c\r\x1c\x1d\x1e\x7f", "ü\xa0", ""]


def requested(text: str) -> S3Request:
    """A refused request, whose every field says a text."""
    request = S3Request()
    request.method, request.request_id, request.client, request.key = "GET", "1F", text, text
    request.raw_path = request.raw_query = text.encode("latin-1")
    request.query = {"versionId": text + "\u2028\ud800"}
    names = [b"referer", b"user-agent", b"host"]
    request.set_headers(names, [text.encode("latin-1")] * len(names))
    return request


@pytest.mark.parametrize("text", EVIL, ids=ascii)
def test_no_text_of_a_client_adds_a_line_or_shifts_a_field(text: str) -> None:
    request = requested(text)
    done = SecondaryRecord(SOURCE, "BATCH.DELETE.OBJECT", text, text + "\u2028")
    lines = [
        record.format_line(request, SOURCE, Response(403), "AccessDenied", 0, 0.0, 0.0),
        record.secondary_line(request, done, None, 0.0),
    ]
    for line in lines:
        assert line.endswith("\n")
        assert re.fullmatch("[ -~]+", line[:-1])
        fields = re.findall(r'\[[^]]*\]|"[^"]*"|\S+', line)
        assert len(fields) == 26
        assert (fields[1], fields[-1]) == ("source", "-")


def test_no_key_of_an_object_is_told() -> None:
    request = requested("a")
    name = b"X-Amz-Server-Side-Encryption-Customer-"
    request.raw_query = name + b"Algorithm=AES256&" + name + b"Key=c2VjcmV0&" + name + b"Key-MD5=md5&x=y"
    line = record.format_line(request, SOURCE, Response(403), "", 0, 0.0, 0.0)
    assert "c2VjcmV0" not in line
    assert "Customer-Algorithm=AES256&" in line
    assert "Customer-Key=&X-Amz-Server-Side-Encryption-Customer-Key-MD5=md5&x=y HTTP/1.1" in line


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ([(b"x-amz-meta-note", b"x-amz-version-id: forged"), (b"x-amz-version-id", b"true")], "true"),
        ([(b"x-amz-meta-note", b"x-amz-version-id: forged")], "-"),
        ([(b"x-amz-version-id", b"first")], "first"),
    ],
)
def test_the_version_id_is_the_answers_own(headers: list[tuple[bytes, bytes]], shown: str) -> None:
    request = requested("a")
    request.query = {}
    response = Response(200, head=render_headers(headers))
    fields = re.findall(r'\[[^]]*\]|"[^"]*"|\S+', record.format_line(request, SOURCE, response, "", 0, 0.0, 0.0))
    assert fields[17] == shown


def test_what_is_encoded_can_be_read_again() -> None:
    request = requested("a\x85 b%")
    fields = re.findall(r'\[[^]]*\]|"[^"]*"|\S+', record.format_line(request, SOURCE, Response(403), "", 0, 0.0, 0.0))
    assert fields[7] == "a%C2%85%20b%25"
    assert fields[8] == '"GET a%85 b%?a%85 b% HTTP/1.1"'
    assert fields[15:18] == ['"a%85 b%"', '"a%85 b%"', "a%C2%85%20b%25%E2%80%A8%ED%A0%80"]
    assert fields[22] == "a%85%20b%"


@pytest.mark.parametrize(
    "content",
    [
        "<LoggingEnabled><TargetPrefix/></LoggingEnabled>",
        "<LoggingEnabled><TargetBucket>t</TargetBucket></LoggingEnabled>",
        "<LoggingEnabled/><LoggingEnabled/>",
        "<Other/>",
        "<LoggingEnabled><TargetBucket>t</TargetBucket><TargetPrefix/><RecordsBatchSize>1</RecordsBatchSize></LoggingEnabled>",
    ],
)
def test_wrong_documents(content: str) -> None:
    with pytest.raises(MalformedXML):
        configuration.parse(f"<BucketLoggingStatus>{content}</BucketLoggingStatus>".encode())


class Rows:
    """Takes lines, or does not."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, str, str]] = []
        self.away = False

    async def add_log_lines(self, collected: list[tuple[int, str, str]]) -> None:
        if self.away:
            raise StoreUnavailable(reason="away")
        self.taken += collected


class Failing(Rows):
    """Raises at the first attempt what nobody foresaw."""

    async def add_log_lines(self, collected: list[tuple[int, str, str]]) -> None:
        if not self.away:
            self.away = True
            raise ValueError
        self.taken += collected


async def test_what_nobody_foresaw_does_not_end_the_collecting() -> None:
    index: Any = Failing()
    collector = Collector(index)
    collector._add_line(SOURCE, "a\n")
    await collector._try_flush()
    await collector._try_flush()
    assert index.taken == [(1, "source", "a\n")]


class Undelivered:
    """An index with lines of three buckets; what goes wrong with the first of them is for a test to say."""

    def __init__(self, wrong: Exception, at: int) -> None:
        self.wrong = wrong
        self.forgotten: list[int] = []
        self.lines = {1: [Lines(1, at, "a\n"), Lines(2, now_ms(), "b\n")], 2: [Lines(3, 0, "c\n")]}

    async def waiting_logs(self) -> list[Waiting]:
        return [Waiting(0, "away", 0), Waiting(1, "source", 0), Waiting(2, "gone", 0)]

    async def log_lines(self, bucket_id: int, limit: int) -> list[Lines]:
        if bucket_id == 0:
            raise self.wrong
        return self.lines[bucket_id]

    async def bucket(self, name: str) -> Bucket | None:
        if name == "source":
            raise self.wrong
        return None

    async def forget_log_lines(self, ids: list[int]) -> None:
        self.forgotten += ids


@pytest.mark.parametrize("wrong", [ValueError("x"), StoreUnavailable(reason="away")], ids=repr)
@pytest.mark.parametrize(("age", "forgotten"), [(0, [3]), (KEPT_MS + 1000, [1, 3])])
async def test_a_log_that_fails_holds_up_no_other(
    wrong: Exception, age: int, forgotten: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    index = Undelivered(wrong, now_ms() - age)
    gateway: Any = SimpleNamespace(index=index, settings=SimpleNamespace(log_interval=0.0))
    delivery = LogDelivery(gateway)
    await delivery.run_once()
    assert index.forgotten == forgotten
    delivery._next = 0.0
    await delivery.run_once()
    told = [one.getMessage() for one in caplog.records]
    assert told == [
        f"the access log of bucket {name} cannot be delivered: {type(wrong).__name__}" for name in ("away", "source")
    ]


async def test_lines_are_kept_until_they_are_written_down() -> None:
    index: Any = Rows()
    collector = Collector(index)
    collector._add_line(SOURCE, "a\n")
    index.away = True
    with pytest.raises(StoreUnavailable):
        await collector.flush()
    collector._add_line(SOURCE, "b\n")
    index.away = False
    await collector.flush()
    await collector.flush()
    assert index.taken == [(1, "source", "a\nb\n")]


async def test_no_more_wait_than_may() -> None:
    index: Any = Rows()
    collector = Collector(index)
    line = "x" * (1024 * 1024)
    for _ in range(20):
        collector._add_line(SOURCE, line)
    await collector.flush()
    assert len(index.taken[0][2]) == MAX_PENDING
    collector._add_line(SOURCE, "y\n")
    await collector.flush()
    assert index.taken[1][2] == "y\n"
