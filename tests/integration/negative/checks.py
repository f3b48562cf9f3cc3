"""What the negative tests share: a look at every answer, documents, and tables of bad input."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.raw_http import Answer


@dataclass
class Watch:
    """What no answer may ever hold. Everything received passes `look`."""

    forbidden: tuple[bytes, ...]
    s3: bool = True
    """Errors must be S3's documents."""

    def look(self, answer: Answer) -> Answer:
        """Return the answer, if it holds nothing that it may not."""
        assert answer.status != 500, answer
        for text in (b"Traceback (most recent", b'.py", line', b"sqlite", b"Errno", *self.forbidden):
            assert text not in answer.raw, f"{text!r} in {answer.raw[:2000]!r}"
        if self.s3 and answer.status >= 400 and answer.body:
            assert answer.headers.get("content-type") == "application/xml", answer
            assert answer.code, answer
            assert answer.tree().findtext("RequestId") == answer.headers["x-amz-request-id"]
        return answer


def xml(root: str, inner: str) -> bytes:
    """A request document."""
    return f'<{root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}</{root}>'.encode()


def cases(table: dict[str, Any] | Iterable[str]) -> Any:
    """Arguments for `pytest.mark.parametrize` over a table of named bad inputs."""
    return {"argvalues": list(table), "ids": [re.sub(r"\W+", "-", name).strip("-") or "empty" for name in table]}
