"""Differences between an init file and the index, and how they are made good."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.errors import BucketAlreadyOwnedByYou, DomainError
from sluice_s3.app.s3.errors import S3Error


class InitError(Exception):
    """The init file cannot be used; the message has the reason for the operator, without a secret."""


class Change(NamedTuple):
    """One difference."""

    where: str
    """The place in the file, such as `buckets.photos.cors`."""
    what: str
    apply: Callable[[], Awaitable[object]]


async def compare(changes: AsyncIterator[Change]) -> list[Change]:
    """Return all differences, and change nothing. Raises InitError."""
    return [change async for change in _explained(changes)]


async def apply_all(changes: AsyncIterator[Change]) -> list[Change]:
    """Make each change before the next difference is looked for, and return all. Raises InitError."""
    made: list[Change] = []
    async for change in _explained(changes):
        try:
            await change.apply()
        except BucketAlreadyOwnedByYou:
            pass  # another gateway was faster
        except IamError as error:
            if error.code != "EntityAlreadyExists":
                raise InitError(f"{change.where}: {error.code}: {error.text}") from None
        except S3Error as error:
            raise InitError(f"{change.where}: {error.code}: {error.text}") from None
        except DomainError as error:
            raise InitError(f"{change.where}: {type(error).__name__} {error}") from None
        made.append(change)
    return made


async def _explained(changes: AsyncIterator[Change]) -> AsyncIterator[Change]:
    try:
        async for change in changes:
            yield change
    except IamError as error:
        raise InitError(f"{error.code}: {error.text}") from None
