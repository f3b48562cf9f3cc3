"""What a bucket's settings say of access, parsed once for all requests that find the same settings.

A bucket without settings is as AWS makes new ones: BucketOwnerEnforced, all public access blocked, no policy. What
cannot be read is closed to everybody but its owner, who may only repair it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from app.access import policy
from app.access.acl import Grants, from_json, to_json
from app.access.policy import Policy
from app.index.rows import Bucket
from app.settings import Settings

POLICY, BLOCK, OWNERSHIP, ACL = "policy", "public_access_block", "ownership", "acl"
PAYER = "payer"
ENCRYPTION = "encryption"
"""Names of the settings."""
REQUESTER = "Requester"
"""The one value of PAYER."""
ENFORCED, PREFERRED, WRITER = "BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"
OWNERSHIPS = frozenset({ENFORCED, PREFERRED, WRITER})


class Block(NamedTuple):
    """A public access block: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PublicAccessBlockConfiguration.html"""

    block_acls: bool = False
    ignore_acls: bool = False
    block_policy: bool = False
    restrict: bool = False


ALL_BLOCKED, NOTHING_BLOCKED = Block(True, True, True, True), Block()


class BucketAccess(NamedTuple):
    """All that decides who may do what in a bucket, besides its owner."""

    ownership: str = ENFORCED
    """Empty when the bucket's ownership controls were removed: then ACLs hold, as with ObjectWriter."""
    block: Block = ALL_BLOCKED
    has_block: bool = True
    policy: Policy | None = None
    public: bool = False
    """The policy lets the public in."""
    closed: bool = False
    """Something in the settings could not be read."""
    acl: Grants | None = None
    """None: the owner has everything."""
    requester_pays: bool = False

    @property
    def has_acls(self) -> bool:
        """ACLs of the bucket and of its objects are looked at."""
        return self.ownership != ENFORCED


USUAL = BucketAccess()
BROKEN = BucketAccess(closed=True)


def access_of(bucket: Bucket) -> BucketAccess:
    """What the settings of a bucket say of access."""
    return _parsed(bucket.name, bucket.settings) if bucket.settings else USUAL


def policy_text(bucket: Bucket) -> str | None:
    """The policy as `app.access.named` keeps it, None when there is none."""
    found = orjson.loads(bucket.settings or "{}").get(POLICY)
    return found if isinstance(found, str) else None


def initial_settings(
    settings: Settings, ownership: str | None = None, grants: Grants | None = None, *, plain_files: bool = False
) -> str:
    """The settings of a new bucket, with this object ownership (None: the usual one) and ACL; empty for AWS's own."""
    found: dict[str, Any] = {}
    ownership = ownership or settings.default_object_ownership
    if ownership != ENFORCED:
        found[OWNERSHIP] = ownership
    if not settings.default_public_access_block:
        found[BLOCK] = []
    if settings.default_encryption != "none" and not plain_files:
        found[ENCRYPTION] = [settings.default_encryption]
    if grants is not None:
        found[ACL] = to_json(grants)
    return orjson.dumps(found).decode() if found else ""


@lru_cache(maxsize=4096)
def _parsed(name: str, settings: str) -> BucketAccess:
    try:
        found = orjson.loads(settings)
        text = found.get(POLICY)
        parsed = None if text is None else policy.parse(text.encode(), name, kept=True)
        ownership = found.get(OWNERSHIP, ENFORCED)
        block = found.get(BLOCK)
        if ownership not in OWNERSHIPS | {""}:
            return BROKEN
        return BucketAccess(
            ownership=ownership,
            block=ALL_BLOCKED if block is None else Block(*map(_truth, block)),
            has_block=block != [],
            policy=parsed,
            public=parsed is not None and policy.is_public(parsed),
            acl=from_json(found[ACL]) if ACL in found else None,
            requester_pays=PAYER in found,
        )
    except (ValueError, TypeError, AttributeError):
        return BROKEN


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value
