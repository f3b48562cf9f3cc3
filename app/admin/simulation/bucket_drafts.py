"""A bucket with a draft in place of its policy."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluice_s3.app.access import policy
from sluice_s3.app.access.bucket_access import POLICY, access_of
from sluice_s3.app.access.policy import Malformed
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.access.policy_principals import bind_principals
from sluice_s3.app.access.simulation import BUCKET
from sluice_s3.app.admin.simulation.models import Draft
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket


async def replace_policy(
    index: Index, bucket: Bucket | None, drafts: Sequence[Draft]
) -> tuple[Bucket | None, list[str]]:
    """Return the bucket with the draft of its policy, and why S3 would refuse to store it.

    An empty text is a bucket without a policy. Raises Malformed, and ValueError for a draft without a bucket.
    """
    texts = [one.text for one in drafts if one.kind == BUCKET]
    if not texts:
        return bucket, []
    if bucket is None or len(texts) > 1:
        raise ValueError("A draft of a bucket policy needs a bucket that exists, which has one policy.")
    settings = {name: value for name, value in orjson.loads(bucket.settings or "{}").items() if name != POLICY}
    if not texts[0].strip():
        return bucket._replace(settings=orjson.dumps(settings).decode() if settings else ""), []
    try:
        parsed = policy.parse(texts[0].encode("utf-8"), bucket.name)
        settings[POLICY] = await bind_principals(index, texts[0], bucket.owner_id)
    except UnknownPrincipal as error:
        raise Malformed(f"{error}: {error.name}") from None
    except UnicodeEncodeError:
        raise Malformed("The policy is no text.") from None
    notes = []
    if access_of(bucket).block.block_policy and policy.is_public(parsed):
        notes.append("S3 refuses to store this policy: it is public, and BlockPublicPolicy is on.")
    return bucket._replace(settings=orjson.dumps(settings).decode()), notes
