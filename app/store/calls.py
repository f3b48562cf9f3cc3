"""Calls of a driver: the time that they took, and what they raise in the store's own words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import DataDamaged, StoreFull, StoreUnavailable
from storage_drivers import errors as driver_errors

logger = logging.getLogger("sluice.store")

Timings = dict[str, float]
"""Phases of a request and how many seconds each took."""


def translated(error: Exception) -> Exception:
    """The domain error for what a driver raised, in one place; any other error is itself."""
    if not isinstance(error, driver_errors.DriverError):
        return error
    made: Exception
    if isinstance(error, driver_errors.StoreFull):
        made = StoreFull()
    elif isinstance(error, driver_errors.BlobMissing | driver_errors.BlobDamaged):
        logger.error("integrity alarm: %s: %s", type(error).__name__, error)
        made = DataDamaged()
    else:
        made = StoreUnavailable()
    made.__cause__ = error
    return made


@contextmanager
def driver_calls() -> Iterator[None]:
    """Raise what a driver raises as domain errors."""
    try:
        yield
    except driver_errors.DriverError as error:
        raise translated(error) from error
