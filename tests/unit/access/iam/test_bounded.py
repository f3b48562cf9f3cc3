"""Policies of users that are made to be slow: what they cost is counted, not timed, and too costly is no."""

from __future__ import annotations

import json

import pytest

from sluice_s3.app.access.iam.policies import MAX_SENT_CHARACTERS
from sluice_s3.app.access.policy import Decision, Malformed, Request, parse_identity, parse_trust
from sluice_s3.app.access.policy.wildcards import Work
from sluice_s3.app.access.principal import Principal
from tests.unit.access.iam.conftest import Caller, policy
from tests.unit.access.policy.tools import BEN

MIB = 1024 * 1024


@pytest.mark.parametrize("text", [b" " * MIB + b"{}", b'{"Id":"' + b"x" * MIB + b'"}', b"{" + b"[" * MIB])
def test_i94_policies_of_a_mebibyte_are_refused(text: bytes) -> None:
    for parse in (parse_identity, parse_trust):
        with pytest.raises(Malformed):
            parse(text)


async def test_i94_they_are_refused_before_they_are_read(ours: Caller) -> None:
    await ours("CreateUser", UserName="ann")
    for text, code in (
        (" " * (MAX_SENT_CHARACTERS + 1), "InvalidInput"),
        (policy("s3:*", resource=["arn:aws:s3:::" + "*?" * 100] * 100), "MalformedPolicyDocument"),
        (policy("s3:*", resource=["arn:aws:s3:::" + "*?" * 100] * 10), "LimitExceeded"),
    ):
        await ours.refused(code, "PutUserPolicy", UserName="ann", PolicyName="p", PolicyDocument=text)


def test_i94_what_is_too_costly_is_denied() -> None:
    """All policies of one user share the steps of a decision."""
    patterns = [f"arn:aws:s3:::*?{'a' * 60}b{number}*1" for number in range(200)]
    parsed = parse_identity(policy("s3:GetObject", resource=[*patterns, "*"]).encode())
    resource = "arn:aws:s3:::photos/" + "a" * 60_000 + "1"
    work = Work()
    assert parsed.decide(Request(None, "s3:GetObject", resource, {}.get), work) is Decision.ALLOW
    assert parsed.decide(Request(None, "s3:GetObject", resource, {}.get), work) is Decision.DENY
    allowed = parse_identity(policy("s3:*").encode())
    principal = Principal(BEN, (allowed, parsed, parsed), (), BEN.arn, "AIDA", "ben", "User", None)
    assert principal.decide("s3:GetObject", resource, {}.get) is Decision.DENY
    assert principal.decide("s3:GetObject", "arn:aws:s3:::photos/short", {}.get) is Decision.ALLOW


@pytest.mark.parametrize("pattern", ["*" * 10_000, "*a" * 5_000, "a*" * 5_000 + "b"])
def test_i94_stars_do_not_backtrack(pattern: str) -> None:
    found = json.dumps({"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::" + pattern}})
    (statement,) = parse_identity(found.encode()).statements
    work = Work()
    statement.resources.include("arn:aws:s3:::" + "a" * MIB, {}.get, work, allow=True)
    assert work.left > 0, "what is read once is charged once"
