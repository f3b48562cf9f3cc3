"""Who asks, and whom a statement is about.

"AWS JSON policy elements: Principal", IAM User Guide.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from app.access.policy import malformed
from app.access.policy.document import one_of, texts
from app.access.policy.malformed import Malformed

EVERYONE = "*"
ARN_START, SESSION_START = "arn:aws:iam::", "arn:aws:sts::"
KINDS = frozenset({"AWS", "CanonicalUser", "Service", "Federated"})

_ACCOUNT = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")
_NAMED = re.compile(r"(?:user|role)/(?:[\x21-\x7e]+/)?[\w+=,.@-]{1,128}", re.ASCII)
_SESSION = re.compile(r"arn:aws:sts::[0-9]{12}:(?:assumed-role/[\w+=,.@-]{1,64}/[\w+=,.@-]{2,64}|federated-user/\S+)")
UNIQUE = re.compile(r"A[A-Z0-9]{15,30}")
UNIQUE_SESSION = re.compile(r"AROA[A-Z0-9]{12,27}:[\w+=,.@-]{2,64}")
"""How `app.access.named` keeps a session."""


class Caller(NamedTuple):
    """Whoever signed a request."""

    canonical_id: str
    account: str
    """The account's number of 12 digits."""
    arn: str
    """`arn:aws:iam::ACCOUNT:root`, or that of a user of the account, or of the session of a role."""
    role: str = ""
    """The ARN of the role of a session."""
    unique_id: str = ""
    """Of the user or the role, empty for the account itself."""
    service: str = ""
    """The name of a service that asks, such as `logging.s3.amazonaws.com`; then nothing else is said."""

    @property
    def session(self) -> str:
        """A session of a role by the role's unique id."""
        return f"{self.unique_id}:{self.arn.rpartition('/')[2]}"

    @property
    def alone(self) -> Caller:
        """The same without the account: what is left to an account is then not left to this user of it.

        Of use for what is allowed only: whom a `NotPrincipal` spares is told by his account, too.
        """
        return self._replace(canonical_id="", account="")


class Principals:
    """A set of principals. Those of federation never ask here, and so are never matched."""

    def __init__(self, found: Any) -> None:
        """Raises Malformed."""
        self.everyone = found == EVERYONE
        self._services: set[str] = set()
        self._accounts: set[str] = set()
        self._arns: set[str] = set()
        self._canonical: set[str] = set()
        if self.everyone:
            return
        if not isinstance(found, dict):
            raise Malformed(malformed.PRINCIPAL if isinstance(found, str) else malformed.SYNTAX)
        if not found:
            raise Malformed(malformed.EMPTY_PRINCIPAL)
        for kind, value in found.items():
            if kind not in KINDS:
                raise Malformed(malformed.PRINCIPAL)
            for text in texts(value, malformed.PRINCIPAL):
                self._add(kind, text)

    def _add(self, kind: str, text: str) -> None:
        if kind == "AWS":
            self._add_aws(text)
        elif not text or any(sign in text for sign in "*?"):
            # CloudFront, S3 itself, … cannot come here; "*" of them would be everyone of a kind that there is none of
            if kind == "CanonicalUser" or text != EVERYONE:
                raise Malformed(malformed.PRINCIPAL)
        elif kind == "CanonicalUser":
            self._canonical.add(text)
        elif kind == "Service":
            self._services.add(text)

    def _add_aws(self, text: str) -> None:
        if text == EVERYONE:
            self.everyone = True
        elif _ACCOUNT.fullmatch(text) and (text.isdigit() or UNIQUE.fullmatch(text)):
            if text.isdigit() and len(text) != 12:
                raise Malformed(malformed.PRINCIPAL)
            self._accounts.add(text)
        elif text.startswith(ARN_START):
            account, _, rest = text.removeprefix(ARN_START).partition(":")
            if not _ACCOUNT.fullmatch(account):
                raise Malformed(malformed.PRINCIPAL)
            if rest == "root":
                self._accounts.add(account)
            elif _NAMED.fullmatch(rest):
                self._arns.add(text)
            else:
                raise Malformed(malformed.PRINCIPAL)
        elif _SESSION.fullmatch(text) or UNIQUE_SESSION.fullmatch(text):
            self._arns.add(text)
        else:
            raise Malformed(malformed.PRINCIPAL)

    def names(self, service: str) -> bool:
        """Whether a service is one of them by its name."""
        return service in self._services

    def include(self, caller: Caller | None) -> bool:
        """Whether a caller (None: anonymous) is one of them."""
        if self.everyone:
            return True
        if caller is None:
            return False
        if caller.service:
            return caller.service in self._services
        return (
            self._has_account(caller)
            or caller.arn in self._arns
            or caller.role in self._arns
            or (caller.unique_id != "" and caller.unique_id in self._accounts)
            or (caller.role != "" and caller.session in self._arns)
        )

    def cover(self, caller: Caller | None) -> bool:
        """Whether `NotPrincipal` of these passes a caller over: the user, or session and role, and the account too.

        "AWS JSON policy elements: NotPrincipal", IAM User Guide: all of them must be named.
        """
        if self.everyone:
            return True
        if caller is None:
            return False
        if caller.service:
            return caller.service in self._services
        if not self._has_account(caller):
            return False
        if not caller.unique_id:
            return True
        by_id = caller.unique_id in self._accounts
        if not caller.role:
            return by_id or caller.arn in self._arns
        return (by_id or caller.role in self._arns) and (caller.session in self._arns or caller.arn in self._arns)

    def _has_account(self, caller: Caller) -> bool:
        return (
            caller.account in self._accounts
            or caller.canonical_id in self._accounts
            or caller.canonical_id in self._canonical
        )


class About(NamedTuple):
    """The principals of a statement: these, or all but these."""

    principals: Principals
    negated: bool
    allow: bool = False

    def include(self, caller: Caller | None) -> bool:
        """Whether the statement is about a caller.

        What everybody may do is not meant for services, which act for others.
        """
        if caller is not None and caller.service and self.allow and self.principals.everyone:
            return self.principals.names(caller.service)
        return not self.principals.cover(caller) if self.negated else self.principals.include(caller)


def parse(statement: dict[str, Any], *, allow: bool) -> About:
    """Whom a statement is about. Raises Malformed."""
    found, negated = one_of(statement, "Principal")
    if negated and allow:
        raise Malformed(malformed.ALLOW_NOT_PRINCIPAL)
    return About(Principals(found), negated, allow)
