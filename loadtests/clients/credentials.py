"""Whose requests they are: given keys, or what botocore finds (profiles, roles, containers, instances)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

NO_KEYS = (
    "no keys: give --access-key and --secret-key, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or name a profile with --aws-profile"
)


class Credentials(NamedTuple):
    """A key pair, and the token that temporary keys have."""

    access_key: str
    secret_key: str
    session_token: str = ""


Source = Callable[[], Credentials]
"""Returns the credentials that are valid now: those of a role are renewed."""


class NoCredentials(Exception):
    """There are no keys; the message says what to do."""


def find_credentials(access_key: str, secret_key: str, session_token: str = "", profile: str = "") -> Source:
    """Return where the keys come from: a named profile, these keys, else botocore's chain.

    Raises NoCredentials.
    """
    if access_key and secret_key and not profile:
        given = Credentials(access_key, secret_key, session_token)
        return lambda: given
    if bool(access_key) != bool(secret_key) and not profile:
        raise NoCredentials(f"{'the secret key' if access_key else 'the access key'} is missing: {NO_KEYS}")
    if find_spec("botocore") is None:
        raise NoCredentials(f"{NO_KEYS} (profiles and roles need botocore: pip install botocore)")
    return _chain(profile)


def _chain(profile: str) -> Source:
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        found: Any = Session(profile=profile or None).get_credentials()
    except BotoCoreError as error:  # a profile that is not there
        raise NoCredentials(str(error)) from error
    if found is None:
        raise NoCredentials(f"profile {profile!r} has no keys" if profile else NO_KEYS)

    def current() -> Credentials:
        frozen = found.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token or "")

    return current
