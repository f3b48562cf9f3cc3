"""What an administrative change is about, as it is before and after it.

Each function gets the arguments of a transaction of `Index`, and returns a JSON value without any secret, or None
where there is nothing.
"""

from __future__ import annotations

from typing import Any

import orjson

from sluice_s3.app.index.audit.statements import BUCKET_STATE
from sluice_s3.app.index.buckets.statements import BUCKET
from sluice_s3.app.index.iam.rows import Account, Identity
from sluice_s3.app.index.iam.statements import ACCOUNT, GROUPS_OF, IDENTITY_BY_NAME, KEYS_OF
from sluice_s3.app.index.meta.statements import META
from sluice_s3.app.index.sql.transaction import Transaction

State = Transaction[dict[str, Any] | None]
VERSIONING = ("Disabled", "Enabled", "Suspended")


def bucket(bucket_id: int, *_: object) -> State:
    """Return a bucket with its settings."""
    rows = yield BUCKET_STATE, (bucket_id,)
    return _bucket(*rows[0]) if rows else None


def _bucket(
    name: str, owner_id: str, region: str, store: str, source: str, versioning: int, settings: str
) -> dict[str, Any]:
    moving = {"moving_from": source} if source else {}
    return {
        "name": name,
        "owner": owner_id,
        "region": region,
        "store": store,
        **moving,
        "versioning": VERSIONING[versioning],
        "settings": orjson.loads(settings or "{}"),
    }


def named_bucket(name: str, *_: object) -> State:
    """Return the bucket of a name."""
    rows = yield BUCKET, (name,)
    if not rows:
        return None
    return (yield from bucket(rows[0][0]))


def bucket_setting(bucket_id: int, name: str, *_: object) -> State:
    """Return one setting of a bucket."""
    found = yield from bucket(bucket_id)
    if found is None or name not in found["settings"]:
        return None
    return {name: found["settings"][name]}


def bucket_versioning(bucket_id: int, *_: object) -> State:
    """Return whether a bucket keeps versions."""
    found = yield from bucket(bucket_id)
    return None if found is None else {"versioning": found["versioning"]}


def new_account(account: Account, *_: object) -> State:
    """Return the account that is added, or gets a key."""
    return (yield from account_of(account.id))


def account_of(account_id: str, *_: object) -> State:
    """Return an account."""
    rows = yield ACCOUNT, (account_id,)
    if not rows:
        return None
    found = Account._make(rows[0])
    return {"name": found.display_name, "email": found.email, "disabled": bool(found.disabled)}


def new_identity(new: Identity, *_: object) -> State:
    """Return the identity that is added."""
    return (yield from identity(new.account_id, new.kind, new.name))


def identity(account_id: str, kind: str, name: str, *_: object) -> State:
    """Return a user, group, role or policy."""
    rows = yield IDENTITY_BY_NAME, (kind, name.lower(), account_id)
    return describe(Identity._make(rows[0])) if rows else None


def describe(one: Identity) -> dict[str, Any]:
    """Return an identity as JSON, its policies parsed."""
    return {"kind": one.kind, "name": one.name, "path": one.path, **_parsed(orjson.loads(one.document))}


def _parsed(document: dict[str, Any]) -> dict[str, Any]:
    return {name: _policy(value) for name, value in document.items()}


def _policy(value: Any) -> Any:
    """Return a value with the texts of policies in it parsed, so that two can be compared line by line."""
    if isinstance(value, dict):
        return _parsed(value)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return orjson.loads(value)
        except ValueError:
            return value
    return value


def membership(account_id: str, member: tuple[str, str], group: tuple[str, str], *_: object) -> State:
    """Return the groups of a user, or the policies attached to a user, group or role."""
    kind, name = member
    rows = yield IDENTITY_BY_NAME, (kind, name.lower(), account_id)
    if not rows:
        return None
    groups = yield GROUPS_OF, (Identity._make(rows[0]).id, group[0])
    return {kind: name, group[0]: [Identity._make(row).name for row in groups]}


def key(account_id: str, identity_id: str, access_key: str, *_: object) -> State:
    """Return whether an access key exists and is active."""
    rows = yield KEYS_OF, (account_id, identity_id)
    for found, disabled, _created in rows:
        if found == access_key:
            return {"access_key": found, "status": "Inactive" if disabled else "Active"}
    return None


def json_note(name: str, *_: object) -> State:
    """Return a note that is a JSON object."""
    rows = yield META, (name,)
    return orjson.loads(rows[0][0]) if rows else None
