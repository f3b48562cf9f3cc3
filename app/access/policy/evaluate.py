"""Evaluates a whole policy. An explicit deny wins over every allow, and the default is no allow."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from sluice_s3.app.access.policy import document, statements
from sluice_s3.app.access.policy.statements import Request, Statement
from sluice_s3.app.access.policy.wildcards import TooCostly, Work


class Decision(Enum):
    """The decision of a policy on a request."""

    DENY = "deny"
    ALLOW = "allow"
    SILENT = "silent"


class Policy(NamedTuple):
    """A parsed policy."""

    statements: Sequence[Statement]

    def decide(self, request: Request, work: Work | None = None, *, gifts: bool = False) -> Decision:
        """Return the policy's decision on a request; `gifts`: by its Allow statements only.

        `work` is the remaining budget of the request, None for the budget of one decision. The decision is DENY when
        the budget does not suffice.
        """
        decision = Decision.SILENT
        if work is None:
            work = Work()
        elif work.observer is not None:
            observed: Decision = work.observer.decide(self, request, gifts=gifts)
            return observed
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
"""Decides nothing, and so allows nothing."""


def parse(text: bytes, bucket: str, *, stored: bool = False) -> Policy:
    """Parse the policy of a bucket, new or stored (`stored`). Raises Malformed with S3's message."""
    found = document.parse_document(text, stored=stored)
    return Policy([statements.parse(one, bucket, found["Version"]) for one in found["Statement"]])
