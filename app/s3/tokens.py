"""The token that comes with a temporary key ("Using temporary credentials", IAM User Guide)."""

from __future__ import annotations

import hmac
import time
from enum import Enum

from app.index.rows import AccessKey
from app.s3.errors import InvalidAccessKeyId, InvalidToken, S3Error

HEADER = "x-amz-security-token"


class ExpiredToken(S3Error):
    status = 400
    message = "The provided token has expired."


class TokenState(Enum):
    """What a token is to a key."""

    GOOD = 1
    """Right, or neither given nor needed."""
    MISSING = 2
    WRONG = 3
    """Of another key, or of a key that has none."""
    EXPIRED = 4


def token_state(key: AccessKey, token: str | None) -> TokenState:
    """What a token, None for none, is to a key."""
    if not key.token:
        return TokenState.GOOD if token is None else TokenState.WRONG
    if token is None:
        return TokenState.MISSING
    if not hmac.compare_digest(key.token.encode(), token.encode("utf-8", "replace")):
        return TokenState.WRONG
    return TokenState.GOOD if time.time() * 1000 < key.expires else TokenState.EXPIRED


def check(key: AccessKey, token: str | None) -> None:
    """Raises InvalidToken, ExpiredToken, and InvalidAccessKeyId for a temporary key without its token, as S3 does."""
    state = token_state(key, token)
    if state is TokenState.MISSING:
        raise InvalidAccessKeyId(AWSAccessKeyId=key.access_key)
    if state is TokenState.WRONG:
        raise InvalidToken()
    if state is TokenState.EXPIRED:
        raise ExpiredToken()
