"""Rows of accounts and identities for the rest of the service.

Times are in milliseconds since the epoch.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

USER, GROUP, ROLE, POLICY = "user", "group", "role", "policy"
"""Kinds of identities, as ARNs name them. A managed policy of the account is one too."""
TEMPORARY = "ASIA"
"""Prefix of the access key of a session."""
_CONSOLE = "console:"
"""Prefix of the names of sessions of the console; no caller of STS can give one with a colon."""


class Account(NamedTuple):
    """The owner of buckets.

    `id` is the canonical user id (64 hex digits unless set by the operator).
    """

    id: str
    display_name: str
    email: str
    disabled: bool
    created: int


class Identity(NamedTuple):
    """A user, a group, a role or a managed policy of an account."""

    id: str
    account_id: str
    kind: str
    name: str
    folded: str
    """The name in lower case: names that differ only in case are the same."""
    path: str
    document: str
    """A JSON object with all other fields: see `app.access.iam.documents`."""
    created: int


class KeyOwner(NamedTuple):
    """The user, role or session that owns a key, unless the account itself does."""

    account_id: str
    identity: Identity | None
    """The user or the role; None for a session of the account itself."""
    groups: tuple[Identity, ...] = ()
    """The groups of a user, and the account's managed policies attached to it, to them or to the role."""
    session: str | None = None
    """The session name of a temporary key."""
    policies: str = ""
    """JSON list of the policies that limit the session, empty for none."""
    began: int = 0
    """When the session began."""


class AccessKey(NamedTuple):
    """A key with the account data that a request needs."""

    access_key: str
    secret: str
    account_id: str
    display_name: str
    disabled: bool
    """The key or its account is disabled."""
    holder: KeyOwner | None = None
    token: str = ""
    """The session token that a request with a temporary key must send."""
    expires: int = 0
    """When a temporary key expires."""

    def __repr__(self) -> str:
        return f"AccessKey({self.access_key!r})"


class UserKey(NamedTuple):
    """A key as its owner sees it, without the secret."""

    access_key: str
    disabled: bool
    created: int


class Session(NamedTuple):
    """A temporary key as it is stored."""

    access_key: str
    secret: str
    token: str
    account_id: str
    identity: str
    name: str
    policies: str
    created: int
    expires: int

    def __repr__(self) -> str:
        return f"Session({self.access_key!r})"


KEY, IDENTITY, ACCOUNT = "key", "identity", "account"
"""`Use.kind`: of a permanent key, or of a temporary key of a user or role, or of the account itself."""


class Use(NamedTuple):
    """The last use of a key, an identity or an account.

    `service` is `s3`, `iam`, `sts` or `console`.
    """

    kind: str
    subject: str
    """The access key, or the id of the user, role or account."""
    account_id: str
    used: int
    service: str
    region: str


class KeyUse(NamedTuple):
    """A key as its owner sees it, with its last use. `used` is 0 when none is known."""

    access_key: str
    disabled: int
    created: int
    used: int
    service: str
    region: str


class UserUses(NamedTuple):
    """The keys of a user, and when one of its temporary keys was last used; 0 when that is not known."""

    keys: list[KeyUse]
    used: int


class AccountSummary(NamedTuple):
    """An account with its own keys and what else it has.

    `used` is the last use of anything of the account, 0 when none is known.
    """

    account: Account
    keys: list[KeyUse]
    identities: dict[str, int]
    """Kinds of identities, and their numbers."""
    buckets: int
    used: int


class IdleKey(NamedTuple):
    """An active key that is old, or that nobody used for long. `used` is 0 when no use is known."""

    access_key: str
    account_id: str
    account_name: str
    user: str
    """Empty for a key of the account itself."""
    created: int
    used: int


def console_session_name(access_key: str, secret: str) -> str:
    """Return the name of a session that was opened by signing in with a key.

    It lasts as long as that key with that secret.
    """
    return f"{_CONSOLE}{access_key}:{sha256(secret.encode()).hexdigest()[:32]}"


def sign_in_key(session_name: str | None) -> str | None:
    """Return the key that a session of the console was opened with; None for other sessions."""
    if session_name is None or not session_name.startswith(_CONSOLE):
        return None
    return session_name[len(_CONSOLE) :].rpartition(":")[0]
