"""The admin token of a request."""

from __future__ import annotations

import base64
import hmac

from fastapi import Request


class AdminToken:
    """Finds the admin token in requests."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def is_bearer(self, request: Request) -> bool:
        """Return whether a request has it as `Bearer TOKEN`, which no browser sends by itself."""
        scheme, value = _authorization(request)
        return scheme == "bearer" and hmac.compare_digest(value.strip().encode("latin-1"), self._token)

    def is_password(self, request: Request) -> bool:
        """Return whether a request has it as the password of Basic, which browsers keep and send by themselves."""
        scheme, value = _authorization(request)
        if scheme != "basic":
            return False
        try:
            password = base64.b64decode(value, validate=True).partition(b":")[2]
        except ValueError:  # bytes that are not ASCII, too
            return False
        return hmac.compare_digest(password, self._token)


def _authorization(request: Request) -> tuple[str, str]:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return scheme.lower(), value
