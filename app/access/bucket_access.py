"""The access settings of a bucket, parsed once for equal settings.

A bucket without settings is like a new bucket on AWS: BucketOwnerEnforced, all public access blocked, no policy.
Settings that cannot be parsed close the bucket to everybody but its owner, who may only repair it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from sluice_s3.app.access import policy
from sluice_s3.app.access.acl import Grants, from_json, to_json
from sluice_s3.app.access.policy import Policy
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.settings import Settings

POLICY, BLOCK, OWNERSHIP, ACL = "policy", "public_access_block", "ownership", "acl"
PAYER = "payer"
ENCRYPTION = "encryption"
"""Names of the settings."""
REQUESTER = "Requester"
"""The only value of PAYER."""
ENFORCED, PREFERRED, WRITER = "BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"
OWNERSHIPS = frozenset({ENFORCED, PREFERRED, WRITER})


class Block(NamedTuple):
    """A public access block.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PublicAccessBlockConfiguration.html
    """

    block_acls: bool = False
    ignore_acls: bool = False
    block_policy: bool = False
    restrict: bool = False


ALL_BLOCKED, NOTHING_BLOCKED = Block(True, True, True, True), Block()


class BucketAccess(NamedTuple):
    """All settings that determine access to a bucket, besides its owner."""

    ownership: str = ENFORCED
    """Empty when the bucket's ownership controls were removed: then ACLs apply, as with ObjectWriter."""
    block: Block = ALL_BLOCKED
    has_block: bool = True
    policy: Policy | None = None
    public: bool = False
    """The policy allows public access."""
    closed: bool = False
    """A setting could not be parsed."""
    acl: Grants | None = None
    """None: only the owner has rights."""
    requester_pays: bool = False

    @property
    def has_acls(self) -> bool:
        """ACLs of the bucket and its objects apply."""
        return self.ownership != ENFORCED


DEFAULT_ACCESS = BucketAccess()
BROKEN = BucketAccess(closed=True)


def access_of(bucket: Bucket) -> BucketAccess:
    """Return the access settings of a bucket."""
    return _parsed(bucket.name, bucket.settings) if bucket.settings else DEFAULT_ACCESS


def policy_text(bucket: Bucket) -> str | None:
    """Return the policy as `app.access.policy_principals` stores it; None when there is none."""
    found = orjson.loads(bucket.settings or "{}").get(POLICY)
    return found if isinstance(found, str) else None


def initial_settings(
    settings: Settings, ownership: str | None = None, grants: Grants | None = None, *, plain_files: bool = False
) -> str:
    """Return the settings of a new bucket, empty for AWS's own.

    `ownership` None means the default object ownership; plain files have no ACLs, whatever it is.
    """
    found: dict[str, Any] = {}
    ownership = ENFORCED if plain_files else ownership or settings.default_object_ownership
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
        parsed = None if text is None else policy.parse(text.encode(), name, stored=True)
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


def clear_cache() -> None:
    """Forget the parsed settings, after drafts that nobody will ask for again."""
    _parsed.cache_clear()


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value
