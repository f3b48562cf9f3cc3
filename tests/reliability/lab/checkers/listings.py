"""Is what a LIST showed possible? Each key apart: a listing of many pages is no single moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.reliability.lab.checkers.histories import Kind, Operation, Outcome


class Listing(NamedTuple):
    """One LIST of all keys, with all its pages."""

    begun: float
    ended: float
    found: Mapping[str, str]
    """ETags by key."""


def faults(listing: Listing, histories: Mapping[str, Sequence[Operation]]) -> list[str]:
    """What in a listing nothing explains, in words."""
    wrong = [f"{key}: nobody wrote it" for key in listing.found.keys() - histories.keys()]
    for key, history in histories.items():
        changes = [
            one for one in history if one.kind is not Kind.READ and one.outcome in (Outcome.DONE, Outcome.UNKNOWN)
        ]
        seen = listing.found.get(key)
        if seen is None:
            if (write := _surely_there(changes, listing)) is not None:
                wrong.append(
                    f"{key}: not listed, though {write.value} was written {listing.begun - write.ended:.3f} s before"
                )
        elif not _can_be(changes, seen, listing):
            wrong.append(f"{key}: listed with {seen}, which it cannot have had then")
    return wrong


def _surely_there(changes: Sequence[Operation], listing: Listing) -> Operation | None:
    """A write that was answered before the listing, with no delete that can have come after it."""
    deletes = [one for one in changes if one.kind is Kind.DELETE and one.begun < listing.ended]
    for write in changes:
        known = write.kind is Kind.WRITE and write.outcome is Outcome.DONE and write.ended < listing.begun
        if known and not any(delete.ended > write.begun for delete in deletes):
            return write
    return None


def _can_be(changes: Sequence[Operation], seen: str, listing: Listing) -> bool:
    """Whether some write of that ETag had begun, and no change was certain to follow it before the listing began."""
    over = [one for one in changes if one.outcome is Outcome.DONE and one.ended < listing.begun]
    writes = [one for one in changes if one.kind is Kind.WRITE and one.value == seen and one.begun < listing.ended]
    return any(not any(one.begun > write.ended for one in over) for write in writes)
