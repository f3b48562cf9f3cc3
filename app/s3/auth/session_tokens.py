"""The token of a temporary key ("Using temporary credentials", IAM User Guide)."""

from __future__ import annotations

import hmac
import time
from enum import Enum

from sluice_s3.app.index.iam.rows import AccessKey
from sluice_s3.app.s3.errors import ExpiredToken, InvalidAccessKeyId, InvalidToken

HEADER = "x-amz-security-token"


class TokenState(Enum):
    """How a token relates to a key."""

    GOOD = 1
    """Correct, or neither present nor needed."""
    MISSING = 2
    WRONG = 3
    """Of another key, or of a key without tokens."""
    EXPIRED = 4


def check_session_token(key: AccessKey, token: str | None) -> TokenState:
    """Return how a token (None: absent) relates to a key."""
    if not key.token:
        return TokenState.GOOD if token is None else TokenState.WRONG
    if token is None:
        return TokenState.MISSING
    if not hmac.compare_digest(key.token.encode(), token.encode("utf-8", "replace")):
        return TokenState.WRONG
    return TokenState.GOOD if time.time() * 1000 < key.expires else TokenState.EXPIRED


def check(key: AccessKey, token: str | None) -> None:
    """Raise InvalidToken or ExpiredToken. InvalidAccessKeyId for a temporary key without its token, as S3 does."""
    state = check_session_token(key, token)
    if state is TokenState.MISSING:
        raise InvalidAccessKeyId(AWSAccessKeyId=key.access_key)
    if state is TokenState.WRONG:
        raise InvalidToken()
    if state is TokenState.EXPIRED:
        raise ExpiredToken()
