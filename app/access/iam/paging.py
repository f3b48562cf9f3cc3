"""Pages of an account's identities, keys and policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sluice_s3.app.access.iam.actions import Call, Result
from sluice_s3.app.index.iam.rows import Identity

T = TypeVar("T")


async def list_identities(call: Call, kind: str, name: str, render: Callable[[Identity], Result]) -> Result:
    """Return a page of users, groups or roles. A marker is the folded name of the last one."""
    limit, path = call.parameters.limit(), call.parameters.path_prefix()
    found = await call.index.identities_of(call.account_id, kind, path, call.parameters.get("Marker"), limit + 1)
    return {name: [render(one) for one in found[:limit]], **_end([one.folded for one in found], limit)}


def list_page(
    call: Call, name: str, found: Sequence[T], marker: Callable[[T], str], render: Callable[[T], object]
) -> Result:
    """Return a page of a complete list. A marker is the place of the last entry."""
    limit, after = call.parameters.limit(), call.parameters.get("Marker")
    left = sorted((one for one in found if marker(one) > after), key=marker)
    return {name: [render(one) for one in left[:limit]], **_end([marker(one) for one in left], limit)}


def _end(markers: Sequence[str], limit: int) -> Result:
    if len(markers) <= limit:
        return {"IsTruncated": False}
    return {"IsTruncated": True, "Marker": markers[limit - 1]}
