"""Opens, reads and ends sessions, which are temporary keys in the index."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fastapi import HTTPException

from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.access.iam.sts import open_console_session
from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.access.root_credentials import root_account_id
from sluice_s3.app.admin.sessions.cookie import SessionCookie, csrf_token
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import AccessKey, sign_in_key
from sluice_s3.app.index.journals.rows import ROOT_NOTE
from sluice_s3.app.settings import Settings

IDLE = "You were signed out because nothing was asked of the console for a while. Sign in again."
ENDED = "Your session has ended. Sign in again."


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session in use: its temporary key, and the key that was signed in with."""

    temporary: AccessKey
    signed_in: AccessKey
    used: int
    """When it was used last, in seconds since the epoch."""

    @property
    def csrf(self) -> str:
        """The token that its changes carry."""
        return csrf_token(self.temporary.access_key, self.temporary.secret)


class SessionStore:
    """The sessions of the console."""

    def __init__(self, index: Index, settings: Settings) -> None:
        self._index = index
        self._settings = settings
        self._cache = LookupCache(index)
        self._first_account = ""

    async def first_account(self) -> str:
        """Return the account that administers the gateway; empty before its first start."""
        if not self._first_account and (root := await self._index.note(ROOT_NOTE)):
            self._first_account = root_account_id(root)
        return self._first_account

    async def open(self, key: AccessKey) -> OpenSession:
        """Open a session for somebody who has proved to hold a key. Raises HTTPException."""
        try:
            made = await open_console_session(self._index, key, self._settings.console_session)
        except IamError as error:
            raise HTTPException(403, error.text) from None
        temporary = key._replace(access_key=made.access_key, secret=made.secret, token=made.token, expires=made.expires)
        return OpenSession(temporary, key, int(time.time()))

    async def find(self, cookie: SessionCookie) -> OpenSession:
        """Return the session of a cookie. Raises HTTPException (401) for one that has ended, or never was.

        The index knows no session whose user, account or key was removed or disabled.
        """
        key = await self._cache.key(cookie.access_key)
        name = None if key is None or key.holder is None else sign_in_key(key.holder.session)
        if key is None or name is None or key.disabled or not cookie.is_signed(key.secret):
            raise HTTPException(401, ENDED)
        now = time.time()
        if now * 1000 >= key.expires:
            raise HTTPException(401, ENDED)
        if now - cookie.used > self._settings.console_idle:
            raise HTTPException(401, IDLE)
        signed_in = await self._cache.key(name)
        if signed_in is None or signed_in.disabled:
            raise HTTPException(401, ENDED)
        return OpenSession(key, signed_in, cookie.used)

    async def end(self, access_key: str) -> None:
        """End a session by its temporary key, in every gateway."""
        await self._index.remove_session(access_key)
