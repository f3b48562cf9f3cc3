"""How ARNs and policies name an account and its identities."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from sluice_s3.app.access.policy.principals import Caller
from sluice_s3.app.index.iam.rows import Identity


@lru_cache(maxsize=4096)
def caller_of(account_id: str) -> Caller:
    """Return an account as policies name it."""
    number = account_number(account_id)
    return Caller(account_id, number, f"arn:aws:iam::{number}:root")


def account_number(account_id: str) -> str:
    """Return the 12-digit number of an account in ARNs. It is the id if that is one, else derived from it."""
    if len(account_id) == 12 and account_id.isascii() and account_id.isdigit():
        return account_id
    digest = hashlib.sha256(b"account number:" + account_id.encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big') % 10**12:012d}"


def arn_of(identity: Identity) -> str:
    """Return the ARN of a user, a group or a role."""
    return arn(identity.account_id, identity.kind, identity.path, identity.name)


def session_arn(role: Identity, session: str) -> str:
    """Return the ARN of a session of a role."""
    return f"arn:aws:sts::{account_number(role.account_id)}:assumed-role/{role.name}/{session}"


def arn(account_id: str, kind: str, path: str, name: str) -> str:
    """Return the ARN of a user, group or role by name. It need not exist."""
    return f"arn:aws:iam::{account_number(account_id)}:{kind}{path}{name}"
