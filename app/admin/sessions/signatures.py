"""Presigned URLs for the browser: objects and settings of buckets go between it and S3, never through this process."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Annotated, Literal, Self, cast

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, Field, StringConstraints, field_validator, model_validator

from sluice_s3.app.access.presigned import LONGEST_SECONDS, Signer, Target, presign
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import Given
from sluice_s3.app.admin.sessions.endpoint import s3_endpoint
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.regions import FIRST

router = APIRouter(tags=["session"], route_class=StrictRoute)

MAX_REQUESTS = 1000
MAX_FIELDS = 64
"""Query parameters, and headers, of a request."""
SHARED_METHODS = frozenset({"GET", "HEAD", "PUT"})
_SHARED_PARAMETER = re.compile(r"versionId|response-[a-z-]+")
_NOT_SIGNED = re.compile(r"x-amz-(algorithm|credential|date|expires|signedheaders|signature|security-token)", re.I)
"""Parameters that signing adds."""
_OWN = "x-sluice-"
"""Prefix of parameters that S3 believes because no browser can have them signed."""
_BROWSERS = frozenset(
    {"host", "cookie", "authorization", "connection", "transfer-encoding", "content-length", "expect"}
)
"""Headers that a page cannot set, or must not."""

Name = Annotated[str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$")]
Value = Annotated[str, StringConstraints(max_length=8192, pattern=r"^[ -~\t]*$")]
Text = Annotated[str, StringConstraints(max_length=8192)]


class UnsignedRequest(Given):
    """A request for S3; without a bucket it lists them."""

    method: Literal["GET", "HEAD", "PUT", "POST", "DELETE"] = "GET"
    bucket: str | None = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$")
    key: str | None = Field(None, min_length=1, max_length=1024)
    query: dict[Text, Text] = Field(default_factory=dict, max_length=MAX_FIELDS, examples=[{"list-type": "2"}])
    headers: dict[Name, Value] = Field(
        default_factory=dict, max_length=MAX_FIELDS, description="To be sent exactly so: they are signed."
    )

    @field_validator("query")
    @classmethod
    def _check_query(cls, query: dict[str, str]) -> dict[str, str]:
        if any(_NOT_SIGNED.fullmatch(name) or name.lower().startswith(_OWN) for name in query):
            raise ValueError("the parameters of the signature, and those of the gateway itself, cannot be given")
        return query

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        folded = {name.lower(): value for name, value in headers.items()}
        if len(folded) < len(headers) or not _BROWSERS.isdisjoint(folded):
            raise ValueError("a header is repeated, or is the browser's own")
        return folded

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if self.key is not None and self.bucket is None:
            raise ValueError("a key needs its bucket")
        if self.key in (".", ".."):
            raise ValueError("browsers cannot ask for a key of dots only; use a client of S3")
        return self

    def is_shared(self) -> bool:
        """Return whether the URL may outlive the session: only to read and write an object."""
        plain = all(_SHARED_PARAMETER.fullmatch(name) for name in self.query)
        return self.method in SHARED_METHODS and self.key is not None and plain

    def target(self) -> Target:
        """Return what is signed."""
        return Target(self.method, self.bucket or "", self.key or "", self.query, self.headers)


class SignaturesIn(Given):
    """Requests to sign."""

    requests: list[UnsignedRequest] = Field(min_length=1, max_length=MAX_REQUESTS)
    expires: int = Field(900, ge=1, le=LONGEST_SECONDS, description="Seconds; at most as long as the session.")
    share: bool = Field(
        False,
        description="For links that outlive the session: signed with the key that was signed in with. They end when "
        "it is removed or disabled. Only to read or write an object.",
    )


class SignaturesOut(BaseModel):
    """Presigned URLs, in the order of the requests."""

    urls: list[str]
    expires: int = Field(description="When they end, in milliseconds since the epoch.")


@router.post("/signatures")
async def sign_requests(
    request: Request, body: SignaturesIn, caller: Annotated[Caller, Depends(require())]
) -> SignaturesOut:
    """Return presigned URLs for S3, which checks the rights when they are used."""
    if caller.session is None:
        raise HTTPException(400, "The admin token signs nothing. Sign in with an access key.")
    if body.share and not all(one.is_shared() for one in body.requests):
        raise HTTPException(422, "Only a GET, HEAD or PUT of an object can be shared.")
    settings = cast(Settings, request.app.state.settings)
    now, key = time.time(), caller.session.signed_in if body.share else caller.session.temporary
    seconds = body.expires if body.share else min(body.expires, max(int(key.expires / 1000 - now), 1))
    endpoint = s3_endpoint(request, settings, request.app.state.s3_listener)
    region = FIRST if settings.region == "auto" else settings.region
    signer = Signer(key.access_key, key.secret, key.token or None)

    def sign() -> list[str]:
        return [presign(endpoint, region, signer, one.target(), seconds) for one in body.requests]

    # a few are signed sooner than a thread starts
    urls = sign() if len(body.requests) < 32 else await asyncio.to_thread(sign)
    return SignaturesOut(urls=urls, expires=int((now + seconds) * 1000))
