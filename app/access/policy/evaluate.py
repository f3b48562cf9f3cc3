"""A whole policy: what it says to a request. An explicit deny wins over every allow; what is not allowed is not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from app.access.policy import document, statements
from app.access.policy.statements import Request, Statement
from app.access.policy.wildcards import TooCostly, Work


class Decision(Enum):
    """What a policy says to a request."""

    DENY = "deny"
    ALLOW = "allow"
    SILENT = "silent"


class Policy(NamedTuple):
    """The policy of a bucket."""

    statements: Sequence[Statement]

    def decide(self, request: Request, *, gifts: bool = False) -> Decision:
        """What it says to a request; `gifts`: only what it allows. One that would be too costly to decide is denied."""
        work, decision = Work(), Decision.SILENT
        try:
            for statement in self.statements:
                if gifts and not statement.allow:
                    continue
                if (statement.allow and decision is Decision.ALLOW) or not statement.applies(request, work):
                    continue
                if not statement.allow:
                    return Decision.DENY
                decision = Decision.ALLOW
        except TooCostly:
            return Decision.DENY
        return decision


CLOSED = Policy([])
"""Says nothing, and so allows nothing."""


def parse(text: bytes, bucket: str, *, kept: bool = False) -> Policy:
    """The policy of a bucket, one that is put or one that is `kept`. Raises Malformed, whose text is S3's message."""
    found = document.read(text, kept=kept)
    return Policy([statements.parse(one, bucket, found["Version"]) for one in found["Statement"]])
