"""Tokens of temporary keys."""

from __future__ import annotations

import time

import pytest

from sluice_s3.app.index.iam.rows import AccessKey
from sluice_s3.app.s3.auth.session_tokens import ExpiredToken, TokenState, check, check_session_token
from sluice_s3.app.s3.errors import InvalidAccessKeyId, InvalidToken

PLAIN = AccessKey("KEY", "secret", "account", "name", False)
TEMPORARY = PLAIN._replace(token="token", expires=int(time.time() * 1000) + 86_400_000)
ENDED = TEMPORARY._replace(expires=int(time.time() * 1000))


@pytest.mark.parametrize(
    ("key", "token", "state", "error"),
    [
        (PLAIN, None, TokenState.GOOD, None),
        (PLAIN, "", TokenState.WRONG, InvalidToken),
        (PLAIN, "token", TokenState.WRONG, InvalidToken),
        (TEMPORARY, "token", TokenState.GOOD, None),
        (TEMPORARY, None, TokenState.MISSING, InvalidAccessKeyId),
        (TEMPORARY, "", TokenState.WRONG, InvalidToken),
        (TEMPORARY, "tok\u00e9n", TokenState.WRONG, InvalidToken),
        (TEMPORARY, "token ", TokenState.WRONG, InvalidToken),
        (ENDED, "token", TokenState.EXPIRED, ExpiredToken),
        (ENDED, "other", TokenState.WRONG, InvalidToken),
    ],
)
def test_a20_what_a_token_is_to_a_key(
    key: AccessKey, token: str | None, state: TokenState, error: type[Exception] | None
) -> None:
    assert check_session_token(key, token) is state
    if error is None:
        check(key, token)
    else:
        with pytest.raises(error):
            check(key, token)
