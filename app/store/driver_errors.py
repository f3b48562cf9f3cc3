"""Calls of a driver: their duration, and their errors as domain errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sluice_s3.app.errors import DataDamaged, StoreFull, StoreUnavailable
from sluice_s3.storage_drivers import errors as driver_errors

logger = logging.getLogger("sluice.store")

Timings = dict[str, float]
"""Phases of a request, each with its duration in seconds."""


def to_domain_error(error: Exception) -> Exception:
    """Return the domain error for a driver's error; return any other error unchanged."""
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
def translate_driver_errors() -> Iterator[None]:
    """Raise a driver's errors as domain errors."""
    try:
        yield
    except driver_errors.DriverError as error:
        raise to_domain_error(error) from error
