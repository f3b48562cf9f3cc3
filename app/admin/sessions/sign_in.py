"""Finds out who signs in: by an access key and its secret."""

from __future__ import annotations

import hmac
import math
import re
import secrets

from fastapi import HTTPException

from sluice_s3.app.admin.sessions.attempts import Guesses
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import AccessKey

_ACCESS_KEY = re.compile(r"[!-~]{1,128}")
"""What may be an access key: the index is not searched for anything else."""
WRONG = "The access key or the secret key is wrong."
DISABLED = "This access key, or its account, is disabled."
TEMPORARY = "This is a temporary key. Sign in with the key of a user or of an account."
TOO_MANY = "Too many attempts to sign in. Wait a moment and try again."


class KeyCheck:
    """Checks pairs of keys, and slows down those who guess."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._guesses = Guesses()
        self._nobodys = secrets.token_urlsafe(30)

    async def check(self, access_key: str, secret_key: str, address: str) -> AccessKey:
        """Return the key. Raises HTTPException: 403 for wrong or unusable keys, 429 for too many attempts.

        An unknown key is answered like a wrong secret, after the same work.
        """
        wait = self._guesses.take(address, access_key)
        if wait:
            raise HTTPException(429, TOO_MANY, {"retry-after": str(math.ceil(wait))})
        # of the index itself: what is cached may be removed
        found = await self._index.access_key(access_key) if _ACCESS_KEY.fullmatch(access_key) else None
        secret = self._nobodys if found is None else found.secret
        is_right = hmac.compare_digest(secret.encode(), secret_key.encode("utf-8", "replace"))
        if found is None or not is_right:
            raise HTTPException(403, WRONG)
        self._guesses.succeed(address, access_key)
        if found.token:
            raise HTTPException(403, TEMPORARY)
        if found.disabled:
            raise HTTPException(403, DISABLED)
        return found
