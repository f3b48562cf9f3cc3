"""The values of condition keys in a simulated request.

What the question does not give is what a usual request has: signed in a header, over TLS, now, from the address of who
asks. These values come from the same code as those of a real request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice_s3.app.access.policy.condition_keys import ON_TAGGED
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.auth.condition_context import TAGS_NOT_LOADED, ConditionContext
from sluice_s3.app.s3.wire.request import S3Request

SIGNED = {"s3:authtype": "REST-HEADER", "s3:signatureversion": "AWS4-HMAC-SHA256"}
"""Values of a request that is signed in a header."""
VERSION_ID = "s3:versionid"


class SimulatedConditions:
    """Finds values of condition keys, and records which a policy asked for."""

    def __init__(
        self,
        given: Mapping[str, str | Sequence[str]],
        account_id: str | None,
        principal: Principal | None,
        bucket: Bucket | None,
        *,
        action: str,
        address: str,
        tags: dict[str, str] | None = None,
    ) -> None:
        """`address` is the client's; `tags` are those of the existing object, None where they are not known."""
        self.given = {
            name.lower(): (values,) if isinstance(values, str) else tuple(values) for name, values in given.items()
        }
        self.asked: dict[str, tuple[str, ...] | None] = {}
        request = S3Request()
        request.set_headers([], [])
        request.query, request.scheme, request.client = {}, "https", address
        request.account_id, request.principal, request.region = account_id, principal, ""
        request.operation = action.partition(":")[2]
        request.location, request.bucket_tags, request.tags = "", {}, {}
        self._signed = account_id is not None
        unknown = TAGS_NOT_LOADED if action in ON_TAGGED else None
        self._context = ConditionContext(request, bucket, tags=unknown if tags is None else tags)

    def find_values(self, key: str) -> tuple[str, ...] | None:
        """Return the values of a key by its name in lower case; None when the request has none.

        Raises ConditionNotLoaded for tags of an object that is not known.
        """
        if key not in self.asked:
            self.asked[key] = self._find(key)
        return self.asked[key]

    def _find(self, key: str) -> tuple[str, ...] | None:
        if key in self.given:
            return self.given[key] or None
        if self._signed and key in SIGNED:
            return (SIGNED[key],)
        return self._context.find_values(key)
