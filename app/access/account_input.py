"""What a new account may be named, for the admin API and `sluice user add`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

_TEXT = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
"""Text that UTF-8, XML and a log line can hold."""


def _matching(pattern: str, message: str) -> AfterValidator:
    fits = re.compile(pattern).fullmatch

    def check(value: str | SecretStr) -> str | SecretStr:
        if not fits(value.get_secret_value() if isinstance(value, SecretStr) else value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


Id = Annotated[str, _matching(r"[!-.0-~]{1,128}", "an id has 1 to 128 visible ASCII characters, and no '/'")]
DisplayName = Annotated[str, _matching(_TEXT + "{0,256}", "at most 256 characters, and no control characters")]
AccessKey = Annotated[
    str,
    _matching(r"[!-+.0-<>-~-]{3,128}", "an access key has 3 to 128 visible ASCII characters, and no '/', ',' or '='"),
]
SecretKey = Annotated[
    SecretStr, _matching(_TEXT + "{8,256}", "a secret key has 8 to 256 characters, and no control characters")
]


class NewAccount(BaseModel):
    """An account with its first key, or one more key for that account."""

    model_config = ConfigDict(extra="forbid")

    id: Id | None = Field(None, description="Canonical id; generated when not given.")
    display_name: DisplayName = ""
    email: DisplayName = ""
    access_key: AccessKey | None = Field(None, description="Generated when not given.")
    secret_key: SecretKey | None = Field(None, description="Generated when not given.")
