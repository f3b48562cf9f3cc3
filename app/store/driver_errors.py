"""Calls of a driver: their duration, and their errors as domain errors."""

from __future__ import annotations

import logging

from sluice_s3.app.errors import DataDamaged, StoreFull, StoreUnavailable
from sluice_s3.storage_drivers import errors as driver_errors

logger = logging.getLogger("sluice.store")

Timings = dict[str, float]
"""Phases of a request, each with its duration in seconds."""


def to_domain_error(error: Exception) -> Exception:
    """Return the domain error for a driver's error; return any other error unchanged."""
    if not isinstance(error, driver_errors.DriverError):
        return error
    domain_error: Exception
    if isinstance(error, driver_errors.StoreFull):
        domain_error = StoreFull()
    elif isinstance(error, driver_errors.BlobMissing | driver_errors.BlobDamaged):
        logger.error("integrity alarm: %s: %s", type(error).__name__, error)
        domain_error = DataDamaged()
    else:
        domain_error = StoreUnavailable()
    domain_error.__cause__ = error
    return domain_error


class _Translation:
    """A context manager without state. It costs a third of a generator's."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, driver_errors.DriverError):
            raise to_domain_error(error) from error


_TRANSLATION = _Translation()


def translate_driver_errors() -> _Translation:
    """Raise a driver's errors as domain errors."""
    return _TRANSLATION
