"""What needs attention, and what does not."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sluice_s3.app.admin.notifications import TargetOut
from sluice_s3.app.admin.overview import checks, store_checks
from sluice_s3.app.admin.overview.checks import Sources
from sluice_s3.app.admin.overview.store_checks import check_store
from sluice_s3.app.admin.people.idle_keys import KeyNeedingAttention
from sluice_s3.app.admin.store_health.models import (
    BreakerOut,
    JournalsOut,
    LatencyOut,
    ScrubOut,
    SpaceOut,
    StoreHealthOut,
)
from sluice_s3.app.admin.store_health.timed_part import Part
from sluice_s3.app.cli.main import cli
from sluice_s3.app.server.processes.deaths import Death
from sluice_s3.app.settings import Settings

MODULES = (checks.__file__, store_checks.__file__)
NOW_MS = round(time.time() * 1000)


class Server:
    """A server with deaths."""

    def __init__(self, *deaths: Death) -> None:
        self._deaths = deaths

    def read_deaths(self) -> list[Death]:
        return list(self._deaths)


def sources(settings: Settings | None = None, *deaths: Death) -> Sources:
    index: Any = None
    return Sources(index, settings or Settings(data=Path("unused")), Server(*deaths))


def certificate(path: Path, days: float) -> Path:
    """Make a certificate that ends in some days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    begin = datetime.now(UTC) - timedelta(days=100)
    end = datetime.now(UTC) + timedelta(days=days)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end).sign(key, hashes.SHA256())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(("days", "severity"), [(90, None), (10, "warning"), (1, "error"), (-1, "error")])
async def test_certificates(tmp_path: Path, days: int, severity: str | None) -> None:
    path = certificate(tmp_path / "cert.pem", days)
    found = await checks.check_certificate(sources(Settings(data=tmp_path, tls_cert=path, tls_key=path)))
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all(("ended" if days < 0 else "ends") in one.title for one in found)
    path.write_text("nothing")
    (broken,) = await checks.check_certificate(sources(Settings(data=tmp_path, tls_cert=path, tls_key=path)))
    assert broken.severity == "error"
    assert str(tmp_path) not in broken.model_dump_json()
    assert await checks.check_certificate(sources()) == []


async def test_deaths_of_the_last_day() -> None:
    old = Death(NOW_MS - 2 * checks.DEATHS_MS, "worker 0", "signal 9")
    assert await checks.check_deaths(sources(None, old)) == []
    (one,) = await checks.check_deaths(sources(None, old, Death(NOW_MS, "worker 1", "signal 9")))
    assert (one.subject, one.since) == ("worker 1", NOW_MS)
    assert one.title == "A process of the gateway died in the last 24 hours"
    deaths = [Death(NOW_MS - ago, "admin", "code 1") for ago in (5, 3, 1)]
    (many,) = await checks.check_deaths(sources(None, old, *deaths))
    assert many.title.startswith("3 processes")


async def test_the_log_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data=tmp_path)
    settings.index_path.parent.mkdir(parents=True)
    assert await checks.check_log(sources(settings)) == []
    log = settings.index_path.with_name(f"{settings.index_path.name}-wal")
    log.touch()
    os.truncate(log, checks.LARGE_LOG_BYTES)
    (large,) = await checks.check_log(sources(settings))
    assert large.kind == "index-log"
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 100, 4, 4, 0, 0, 0, 0, 255)))
    assert [one.kind for one in await checks.check_log(sources(settings))] == ["index-log", "index-space"]


async def test_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    known = checks.describe_interpreter()
    for optimised in (True, False):
        monkeypatch.setattr(checks, "describe_interpreter", lambda: known._replace(optimised=optimised))  # noqa: B023
        assert bool(await checks.check_interpreter(sources())) is not optimised


@pytest.mark.parametrize(
    ("reasons", "titles"),
    [
        ([], []),
        (["old"], ["1 access key is older than 365 days"]),
        (
            ["unused", "old", "never used", "old"],
            ["2 access keys are not used for 90 days", "2 access keys are older than 365 days"],
        ),
    ],
)
async def test_keys_are_counted_and_not_named(
    monkeypatch: pytest.MonkeyPatch, reasons: list[Any], titles: list[str]
) -> None:
    async def keys(_: Any) -> list[KeyNeedingAttention]:
        return [
            KeyNeedingAttention(
                access_key="AKIASECRET", account_id="a", account="a", user=None, created=1, last_used=None, reason=one,
                advice="",
            )
            for one in reasons
        ]  # fmt: skip

    monkeypatch.setattr(checks, "keys_needing_attention", keys)
    found = await checks.check_keys(sources())
    assert [one.title for one in found] == titles
    assert "AKIASECRET" not in str(found)


def whole_store() -> StoreHealthOut:
    breaker = BreakerOut(
        condition="up", processes=2, of=2, since=None, reason="", running_calls=0, stuck_calls=0, history=[]
    )
    space = SpaceOut(total=1000, free=500, inodes=None, free_inodes=None)
    journals = JournalsOut(behind_changes=3, behind_seconds=1, files=1, bytes=10, failing=None)
    scrub = ScrubOut(rate=1, began=None, running=False, kind="", share=None, damaged=0, findings=[])
    return StoreHealthOut(
        name="s",
        default=True,
        driver="local",
        layout="objects",
        durability="full",
        etag="md5",
        place="/secret/place",
        hang_timeout=10,
        mount=None,
        latency=LatencyOut(points=[], silent_since=None),
        breaker=breaker,
        space=Part(value=space),
        buckets=Part(value=1),
        packs=None,
        journals=Part(value=journals),
        scrub=Part(value=scrub),
    )


def test_a_whole_store_needs_nothing() -> None:
    assert list(check_store(whole_store(), 0)) == []


@pytest.mark.parametrize(
    ("kind", "severity", "change"),
    [
        ("store-down", "error", {"breaker": {"condition": "down", "reason": "/secret/place"}}),
        ("store-full", "error", {"breaker": {"condition": "full"}, "space": {"free": 0}}),
        ("store-read-only", "error", {"breaker": {"condition": "read-only"}}),
        ("store-failing", "error", {"breaker": {"condition": "failing"}}),
        ("store-silent", "warning", {"latency": {"silent_since": 7}}),
        ("store-space", "warning", {"space": {"free": 90}}),
        ("store-space", "error", {"space": {"free": 10}}),
        ("store-space", "error", {"space": {"inodes": 100, "free_inodes": 1}}),
        ("journals", "error", {"journals": {"failing": "its journals cannot be written"}}),
        ("journals", "warning", {"journals": {"behind_seconds": 100.0}}),
        ("damage", "error", {"scrub": {"damaged": 2}}),
    ],
)
def test_what_a_store_needs(kind: str, severity: str, change: dict[str, dict[str, Any]]) -> None:
    store = whole_store()
    for part, values in change.items():
        at: Any = getattr(store, part)
        target = at.value if isinstance(at, Part) else at
        for name, value in values.items():
            assert hasattr(target, name)
            setattr(target, name, value)
    (finding,) = check_store(store, 0)
    assert (finding.kind, finding.severity, finding.subject) == (kind, severity, "s")
    assert finding.advice
    assert "/secret" not in finding.model_dump_json()


def test_the_limit_of_a_store_counts_as_its_end() -> None:
    assert [one.kind for one in check_store(whole_store(), 450)] == ["store-space"]


@pytest.mark.parametrize(
    ("target", "title"),
    [
        ({}, None),
        ({"backlog": 3}, None),
        ({"backlog": 1, "error": "http://user:pass@host refused"}, "t does not take notifications: 1 message waits"),
        ({"backlog": 3, "oldest_seconds": 600.0}, "Notifications to t are 10 minutes late"),
        ({"backlog": 3, "kind": None}, "3 messages wait for t, which no setting names"),
    ],
)
async def test_notifications(monkeypatch: pytest.MonkeyPatch, target: dict[str, Any], title: str | None) -> None:
    async def targets(*_: Any) -> list[TargetOut]:
        whole: dict[str, Any] = {"name": "t", "kind": "webhook", "backlog": 0, "oldest_seconds": 0.0}
        return [TargetOut.model_validate({**whole, **target})]

    monkeypatch.setattr(checks, "targets", targets)
    found = await checks.check_notifications(sources())
    assert [one.title for one in found] == ([title] if title else [])
    assert "pass@host" not in str(found)


def test_commands_exist() -> None:
    """What a finding tells to run is a command of this version."""
    told = set(re.findall(r'command="sluice ([a-z ]+)', "".join(Path(one).read_text() for one in MODULES)))
    assert len(told) >= 3
    for command in told:
        found: Any = typer.main.get_command(cli)
        for word in command.split():
            found = found.commands[word]
