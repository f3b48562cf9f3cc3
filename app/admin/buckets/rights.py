"""What a caller of the admin API may do with a bucket: the same `authorize()` as for a request to S3."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from fastapi import HTTPException, Request

from sluice_s3.app.access.account import account_number, caller_of
from sluice_s3.app.access.authorize import authorize
from sluice_s3.app.access.policy import ALLOWED, Work
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.admin.sessions.guard import Caller
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket

SEE_ANY = "sluice:ListBuckets"
"""The right to see any bucket, which its owner has without it."""
MOST_WORK = 32 * ALLOWED
"""Steps of the policies for all decisions of a request: less than a second."""
NO_BUCKET = "There is no such bucket. It may have been deleted in another window: go back to the list."


class BucketRights:
    """The rights of the caller of one request. Conditions see what its request to S3 would show.

    All decisions together are bounded, as those of a DeleteObjects are: above that the answer is no.
    """

    def __init__(self, caller: Caller, request: Request) -> None:
        self.caller = caller
        self._fixed = _fixed_values(caller, request)
        self._left = MOST_WORK

    def may(self, action: str, bucket: Bucket | None = None, name: str | None = None) -> bool:
        """Return whether the caller may do an S3 action to a bucket (or its `name`, before it exists)."""
        caller = self.caller
        granted = max(min(ALLOWED, self._left), 0)
        work = Work(granted)
        verdict = authorize(
            caller.account_id,
            action,
            bucket,
            values=self.values(bucket),
            principal=caller.principal,
            name=name,
            work=work,
        )
        self._left -= granted - max(work.left, 0)
        return bool(verdict)

    def values(self, bucket: Bucket | None) -> Values:
        """Return the condition keys of a request about a bucket; without one, about the caller's account."""
        caller = self.caller
        owner = account_number(caller.account_id if bucket is None else bucket.owner_id)
        about = {"aws:resourceaccount": owner, "s3:resourceaccount": owner}
        if bucket is not None:
            about["aws:requestedregion"] = bucket.region

        def values(key: str) -> Sequence[str] | None:
            found = about.get(key) or self._fixed.get(key)
            return (found,) if found else caller.values(key)

        return values

    def may_see(self, bucket: Bucket) -> bool:
        """Return whether the caller may see a bucket with its store and contents: its lister, or an operator."""
        return self.may("s3:ListBucket", bucket) or self.caller.may(SEE_ANY)

    def require(self, action: str, bucket: Bucket | None = None) -> None:
        """Raise HTTPException (403) unless the caller may do an S3 action."""
        if not self.may(action, bucket):
            where = "" if bucket is None else f" on the bucket {bucket.name}"
            raise HTTPException(403, f"You need the permission {action}{where} for this. Ask its owner.")


async def find_bucket(index: Index, name: str) -> Bucket:
    """Return a bucket. Raises HTTPException (404)."""
    bucket = await index.bucket(name)
    if bucket is None:
        raise HTTPException(404, NO_BUCKET)
    return bucket


def _fixed_values(caller: Caller, request: Request) -> Mapping[str, str]:
    """Return the condition keys that are the same for all buckets, as of a URL that was signed for the caller."""
    now, principal = time.time(), caller.principal
    found = {
        "aws:currenttime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws:epochtime": str(int(now)),
        "aws:multifactorauthpresent": "false",
        "aws:principalaccount": account_number(caller.account_id),
        "aws:principalarn": caller_of(caller.account_id).arn,
        "aws:principalisawsservice": "false",
        "aws:principaltype": "Account",
        "aws:securetransport": "true" if request.url.scheme == "https" else "false",
        "aws:sourceip": caller.address,
        "aws:useragent": request.headers.get("user-agent", ""),
        "aws:userid": account_number(caller.account_id),
        "aws:viaawsservice": "false",
        "s3:authtype": "REST-QUERY-STRING",
        "s3:signatureversion": "AWS4-HMAC-SHA256",
    }
    if principal is not None:
        found |= {
            "aws:principalarn": principal.arn,
            "aws:principaltype": principal.kind,
            "aws:userid": principal.user_id,
            "aws:username": principal.name,
        }
    return found
