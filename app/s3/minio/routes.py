"""The table of calls of MinIO's admin API that are answered here, by method and path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sluice_s3.app.s3.minio.call import AdminCall
from sluice_s3.app.s3.wire.response import Response

Handler = Callable[[AdminCall], Awaitable[Response]]

ROUTES: dict[tuple[str, str], Handler] = {}
"""By method, and path after `/minio/admin/v3/`."""


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a handler. Raises ValueError for a route that is taken.

    A handler asks for the caller's rights itself: by an operation of IAM, or `AdminCall.require`.
    """

    def register(handler: Handler) -> Handler:
        if (method, path) in ROUTES:
            raise ValueError(f"{method} {path} is there already")
        ROUTES[method, path] = handler
        return handler

    return register
