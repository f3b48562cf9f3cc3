"""Callers, and the principals that a statement names.

"AWS JSON policy elements: Principal", IAM User Guide.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.document import find_either, texts
from sluice_s3.app.access.policy.errors import Malformed

EVERYONE = "*"
ARN_START, SESSION_START = "arn:aws:iam::", "arn:aws:sts::"
KINDS = frozenset({"AWS", "CanonicalUser", "Service", "Federated"})

_ACCOUNT = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")
_NAMED = re.compile(r"(?:user|role)/(?:[\x21-\x7e]+/)?[\w+=,.@-]{1,128}", re.ASCII)
_SESSION = re.compile(r"arn:aws:sts::[0-9]{12}:(?:assumed-role/[\w+=,.@-]{1,64}/[\w+=,.@-]{2,64}|federated-user/\S+)")
UNIQUE = re.compile(r"A[A-Z0-9]{15,30}")
UNIQUE_SESSION = re.compile(r"AROA[A-Z0-9]{12,27}:[\w+=,.@-]{2,64}")
"""The form of a session that `app.access.policy_principals` stores."""


class Caller(NamedTuple):
    """The signer of a request."""

    canonical_id: str
    account: str
    """The account's number of 12 digits."""
    arn: str
    """`arn:aws:iam::ACCOUNT:root`, or the ARN of a user of the account, or of a role's session."""
    role: str = ""
    """The ARN of the session's role."""
    unique_id: str = ""
    """The id of the user or role; empty for the account itself."""
    service: str = ""
    """The name of a calling service, such as `logging.s3.amazonaws.com`; then all other fields are empty."""

    @property
    def session(self) -> str:
        """The session of a role, by the role's unique id."""
        return f"{self.unique_id}:{self.arn.rpartition('/')[2]}"

    @property
    def alone(self) -> Caller:
        """The caller without its account, so that policies for the account do not match.

        For Allow statements only: `NotPrincipal` needs the account.
        """
        return self._replace(canonical_id="", account="")


class Principals:
    """A set of principals. Federated ones never call here, and so never match."""

    def __init__(self, found: Any) -> None:
        """Raise Malformed for an invalid principal."""
        self.everyone = found == EVERYONE
        self._services: set[str] = set()
        self._accounts: set[str] = set()
        self._arns: set[str] = set()
        self._canonical: set[str] = set()
        if self.everyone:
            return
        if not isinstance(found, dict):
            raise Malformed(errors.PRINCIPAL if isinstance(found, str) else errors.SYNTAX)
        if not found:
            raise Malformed(errors.EMPTY_PRINCIPAL)
        for kind, value in found.items():
            if kind not in KINDS:
                raise Malformed(errors.PRINCIPAL)
            for text in texts(value, errors.PRINCIPAL):
                self._add(kind, text)

    def _add(self, kind: str, text: str) -> None:
        if kind == "AWS":
            self._add_aws(text)
        elif not text or any(sign in text for sign in "*?"):
            # services such as CloudFront cannot call here; "*" would be everybody of a kind without members
            if kind == "CanonicalUser" or text != EVERYONE:
                raise Malformed(errors.PRINCIPAL)
        elif kind == "CanonicalUser":
            self._canonical.add(text)
        elif kind == "Service":
            self._services.add(text)

    def _add_aws(self, text: str) -> None:
        if text == EVERYONE:
            self.everyone = True
        elif _ACCOUNT.fullmatch(text) and (text.isdigit() or UNIQUE.fullmatch(text)):
            if text.isdigit() and len(text) != 12:
                raise Malformed(errors.PRINCIPAL)
            self._accounts.add(text)
        elif text.startswith(ARN_START):
            account, _, rest = text.removeprefix(ARN_START).partition(":")
            if not _ACCOUNT.fullmatch(account):
                raise Malformed(errors.PRINCIPAL)
            if rest == "root":
                self._accounts.add(account)
            elif _NAMED.fullmatch(rest):
                self._arns.add(text)
            else:
                raise Malformed(errors.PRINCIPAL)
        elif _SESSION.fullmatch(text) or UNIQUE_SESSION.fullmatch(text):
            self._arns.add(text)
        else:
            raise Malformed(errors.PRINCIPAL)

    def names(self, service: str) -> bool:
        """Return whether a service is one of them by its name."""
        return service in self._services

    def include(self, caller: Caller | None) -> bool:
        """Return whether a caller (None: anonymous) is one of them."""
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
        """Return whether `NotPrincipal` of these exempts a caller.

        It must name the user, or session and role, and also the account ("AWS JSON policy elements: NotPrincipal", IAM
        User Guide).
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


class PrincipalFacts(NamedTuple):
    """The principals of a statement: these, or all but these."""

    principals: Principals
    negated: bool
    allow: bool = False

    def include(self, caller: Caller | None) -> bool:
        """Return whether the statement applies to a caller.

        Allow statements for everybody do not apply to services, which act for others.
        """
        if caller is not None and caller.service and self.allow and self.principals.everyone:
            return self.principals.names(caller.service)
        return not self.principals.cover(caller) if self.negated else self.principals.include(caller)


def parse(statement: dict[str, Any], *, allow: bool) -> PrincipalFacts:
    """Return the principals of a statement. Raises Malformed."""
    found, negated = find_either(statement, "Principal")
    if negated and allow:
        raise Malformed(errors.ALLOW_NOT_PRINCIPAL)
    return PrincipalFacts(Principals(found), negated, allow)
