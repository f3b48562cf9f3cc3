"""The buckets of `SLUICE_DEFAULT_BUCKETS`, and what each allows without a key."""

from __future__ import annotations

import logging
from typing import NamedTuple

import orjson

from sluice_s3.app.access.bucket_access import BLOCK, POLICY, initial_settings
from sluice_s3.app.errors import BucketAlreadyExists, BucketAlreadyOwnedByYou, TooManyBuckets
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.wire.target import is_bucket_name
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.buckets import create_bucket
from sluice_s3.app.store.regions import Regions
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.store")

_READ = (("s3:GetBucketLocation", "s3:ListBucket"), ("s3:GetObject",))
_WRITE = (
    ("s3:GetBucketLocation", "s3:ListBucketMultipartUploads"),
    ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:ListMultipartUploadParts", "s3:PutObject"),
)
_ACTIONS = {
    "none": None,
    "download": _READ,
    "upload": _WRITE,
    "public": tuple((*own, *(one for one in more if one not in own)) for own, more in zip(_READ, _WRITE, strict=True)),
}
"""Actions on the bucket and on its objects that everybody has: those that `mc anonymous set` gives."""


class BucketRefused(Exception):
    """A bucket of the settings cannot be made; the message has the reason for the operator."""


class WantedBucket(NamedTuple):
    """A bucket that the settings name."""

    name: str
    access: str | None
    """A name of `_ACTIONS`; None leaves policy and public access block as they are."""


def parse_buckets(text: str) -> list[WantedBucket]:
    """Return the buckets of a list such as `logs,photos:download`, each once.

    Raises BucketRefused for an invalid name or access, and for a bucket with two of them.
    """
    wanted: dict[str, str | None] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, colon, access = entry.partition(":")
        if not is_bucket_name(name):
            raise BucketRefused(f"{name!r} in SLUICE_DEFAULT_BUCKETS is no bucket name")
        if colon and access not in _ACTIONS:
            raise BucketRefused(
                f"{entry!r} in SLUICE_DEFAULT_BUCKETS: after the colon comes one of {', '.join(_ACTIONS)}"
            )
        if colon and wanted.get(name, access) not in (None, access):
            raise BucketRefused(f"{name!r} in SLUICE_DEFAULT_BUCKETS has both {wanted[name]} and {access}")
        wanted[name] = access if colon else wanted.get(name)
    return [WantedBucket(*one) for one in wanted.items()]


async def make_buckets(store: Store, settings: Settings, wanted: list[WantedBucket], owner_id: str) -> None:
    """Create the missing buckets and give each its access; another gateway may do so at the same moment.

    Raises BucketRefused.
    """
    plain_files = store.tree is not None
    bucket_settings = initial_settings(settings, plain_files=plain_files)
    bucket_fields = (owner_id, Regions(settings.region).default, settings.max_buckets, bucket_settings)
    for name, access in wanted:
        try:
            await create_bucket(store, name, *bucket_fields, with_files=True)
        except BucketAlreadyOwnedByYou:
            pass
        except BucketAlreadyExists:
            raise BucketRefused(f"the default bucket {name!r} belongs to another account") from None
        except TooManyBuckets:
            raise BucketRefused(f"the default bucket {name!r} would be one more than SLUICE_MAX_BUCKETS") from None
        bucket = await store.index.bucket(name)
        if access is not None and bucket is not None:
            await _set_access(store, bucket, access, None if settings.default_public_access_block else [])


async def _set_access(store: Store, bucket: Bucket, access: str, default_block: list[bool] | None) -> None:
    """Set policy and public access block as far as they differ: `none` closes the bucket to all but its account."""
    text = canned_policy(bucket.name, access)
    found = orjson.loads(bucket.settings or "{}")
    # in this order an interruption leaves a bucket that allows less, not more
    wanted: list[tuple[str, object]] = (
        [(POLICY, None), (BLOCK, default_block)] if text is None else [(BLOCK, []), (POLICY, text)]
    )
    changes = [(name, value) for name, value in wanted if found.get(name) != value]
    for name, value in changes:
        await store.index.configure_bucket(bucket.id, name, value)
    if changes:
        logger.info("bucket %s: without a key it now allows what `%s` says in the settings", bucket.name, access)


def canned_policy(name: str, access: str) -> str | None:
    """Return the policy of a bucket that gives everybody an access; None where there is nothing to give."""
    actions = _ACTIONS[access]
    if actions is None:
        return None
    resources = (f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*")
    statements = [
        {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": list(allowed), "Resource": [resource]}
        for allowed, resource in zip(actions, resources, strict=True)
    ]
    return orjson.dumps({"Version": "2012-10-17", "Statement": statements}).decode()
