"""A request to MinIO's admin API: its parameters and bodies, and the operations of IAM that it needs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.iam import documents
from sluice_s3.app.access.iam.actions import POLICY_KEY, Call, Result, require_action, run, with_keys
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.policy.managed import MANAGED
from sluice_s3.app.access.root_credentials import root_account_id
from sluice_s3.app.encryption.admin_bodies import Undecipherable, decrypt, encrypt
from sluice_s3.app.index.iam.rows import POLICY, Identity
from sluice_s3.app.index.journals.rows import ROOT_NOTE
from sluice_s3.app.s3.errors import AccessDenied, InvalidArgument
from sluice_s3.app.s3.minio.errors import not_here
from sluice_s3.app.s3.minio.executor import BoundedExecutor
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

MAX_BODY = 256 * 1024
PAGE = 100
_executor = BoundedExecutor()
JSON = ((b"content-type", b"application/json"),)
ENCRYPTED = ((b"content-type", b"application/octet-stream"),)


class Fields(BaseModel):
    """Base of the documents of requests. A field that is not known here would be ignored: it is refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


Document = TypeVar("Document", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class AdminCall:
    """A request whose signature is verified."""

    services: Services
    request: S3Request
    caller: Call
    """The caller, as IAM knows it; without parameters."""

    @property
    def account_id(self) -> str:
        """The account of the caller: all users, groups, policies and keys are those of it."""
        return self.caller.account_id

    async def iam(self, action: str, **parameters: str) -> Result:
        """Run an operation of IAM as the caller. Raises IamError."""
        return await run(action, self.with_parameters(**parameters))

    def with_parameters(self, **parameters: str) -> Call:
        """Return the call with parameters of IAM."""
        return replace(self.caller, parameters=Parameters(parameters))

    def require(self, action: str, resource: str, policy: str = "") -> None:
        """Raise IamError unless the caller may do `action` on an ARN of its account, with the policy of an ARN."""
        caller = self.caller
        if policy:
            caller = replace(caller, values=with_keys(caller.values, {POLICY_KEY: policy}))
        require_action(caller, action, resource)

    async def require_operator(self, action: str, resource: str) -> None:
        """Raise unless the caller is of the first account, which operates the gateway, and may do `action`."""
        if self.account_id != root_account_id(await self.caller.index.note(ROOT_NOTE)):
            raise AccessDenied(f"{action} is for the account that operates this gateway")
        self.require(action, resource)

    def parameter(self, name: str) -> str:
        """Return a required parameter of the query. Raises InvalidArgument."""
        found = self.request.query.get(name)
        if not found:
            raise InvalidArgument(f"The parameter {name} is missing.", ArgumentName=name)
        return found

    def parameters(self, name: str) -> list[str]:
        """Return all values of a parameter."""
        return parse_qs(self.request.raw_query.decode("latin-1")).get(name, [])

    async def body(self) -> bytes:
        """Return the body as sent."""
        return await read_document(self.request, MAX_BODY)

    async def read(self, model: type[Document], *, encrypted: bool = True) -> Document:
        """Return the document of the body.

        To decrypt it costs much: rights that the query names are checked before. Raises InvalidArgument, SlowDown;
        NotImplemented for a field that is not known.
        """
        body = await self.body()
        if encrypted:
            try:
                body = await _executor.run(self.request.access_key or "", decrypt, self.request.secret, body)
            except Undecipherable:
                raise InvalidArgument("The body is not encrypted by the secret key of its signature.") from None
        try:
            return model.model_validate(orjson.loads(body))
        except ValidationError as error:
            (first, *_) = error.errors(include_input=False, include_url=False)
            name = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                raise not_here(f"the field {name[:64]!r}") from None
            raise InvalidArgument(f"{name}: {first['msg']}", ArgumentName=name) from None
        except ValueError:
            raise InvalidArgument("The body is not JSON.") from None

    async def encrypted(self, document: Any) -> Response:
        """Return a response with a document that only the caller can read. Raises SlowDown, for a GET alone."""
        run = _executor.run if self.request.method == "GET" else _executor.run_always
        body = await run(self.request.access_key or "", encrypt, self.request.secret, orjson.dumps(document))
        return Response(200, list(ENCRYPTED), body)

    async def all_of(self, kind: str) -> list[Identity]:
        """Return all users, groups or policies of the account; the caller's right is checked before."""
        return [one async for one in self.each_of(kind)]

    async def each_of(self, kind: str) -> AsyncIterator[Identity]:
        """Yield them one by one, for policies: their versions are not held all at once."""
        after, more = "", True
        while more:
            page = await self.caller.index.identities_of(self.account_id, kind, "/", after, PAGE)
            for one in page:
                yield one
            more, after = len(page) == PAGE, page[-1].folded if page else ""

    async def policies_of(self, identity: Identity) -> list[str]:
        """Return the names of the policies attached to a user or group."""
        return sorted((await self.attached_to(identity)).values())

    async def attached_to(self, identity: Identity) -> dict[str, str]:
        """Return the names of these policies by their ARNs; two may have one name."""
        own = await self.caller.index.groups_of(identity.id, POLICY)
        return {arn: MANAGED[arn].name for arn in documents.attached(identity)} | {arn_of(one): one.name for one in own}

    async def policy_arn(self, name: str) -> str | None:
        """Return the ARN of the policy of a name, of the account or else built in; None if there is none."""
        found = await self.caller.find_identity(POLICY, name)
        if found is not None and found.name == name:
            return arn_of(found)
        return next((arn for arn, policy in MANAGED.items() if policy.name == name), None)


def plain(document: Any) -> Response:
    """Return a response with a document that is not encrypted."""
    return Response(200, list(JSON), orjson.dumps(document))


def done(status: int = 200) -> Response:
    """Return an empty response."""
    return Response(status)
