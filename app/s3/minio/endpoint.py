"""Answers requests below `/minio/admin/`: those of the table, and 501 for all others.

Clients sign them with the region "". A bucket named `minio` keeps its keys below `admin/`: requests that are signed
with any other region, or not at all, are S3's then.
"""

from __future__ import annotations

import re
import time
from functools import partial
from typing import TYPE_CHECKING

from sluice_s3.app.access.iam.actions import Call, refuse_session
from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.key_uses import IAM
from sluice_s3.app.s3.audit import record_change, trail_of
from sluice_s3.app.s3.auth import authentication, signatures
from sluice_s3.app.s3.auth.condition_context import ConditionContext
from sluice_s3.app.s3.errors import AccessDenied
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.minio import access_keys, groups, information, policies, quotas, users
from sluice_s3.app.s3.minio.call import AdminCall
from sluice_s3.app.s3.minio.errors import from_iam, not_here
from sluice_s3.app.s3.minio.routes import ROUTES
from sluice_s3.app.s3.wire import query_parameters
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.s3.wire.target import bucket_of_host, parse_query

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

_REGISTERED = (access_keys, groups, information, policies, quotas, users)

BUCKET = "minio"
PREFIXES = (b"/minio/admin/", b"/minio/kms/")
_PATH = re.compile(rb"/minio/admin/v[34]/([a-z0-9/-]{1,128})")
RESOURCES = ("accessKey", "userOrGroup", "group", "policyName", "name", "bucket")
"""Parameters of queries that name what is changed."""
NO_REGION = "//s3/aws4_request"
"""Part of an Authorization header with the region ""."""


async def answer(services: Services, request: S3Request) -> Response | None:
    """Return the answer of the admin API; None for a request that is not for it. Raises S3Error, DomainError."""
    if not request.raw_path.startswith(PREFIXES) or not await _is_for_it(services, request):
        return None
    match = _PATH.fullmatch(request.raw_path)
    path = request.raw_path.decode("latin-1").partition("/minio/")[2][:128] if match is None else match[1].decode()
    handler = ROUTES.get((request.method, path))
    caller = None if handler is None else await _authenticate(services, request)
    if services.rates is not None:
        services.rates.check(request)
    if handler is None or caller is None:
        raise not_here(f"{request.method} {path}")
    try:
        refuse_session(caller.principal)
        run = partial(handler, AdminCall(services, request, caller))
        if request.method == "GET":
            return await run()
        trail = trail_of(request, "minio", f"minio:{path}", _resource(request))
        return await record_change(services.audit, trail, run, _code_of)
    except IamError as error:
        raise from_iam(error) from None


def _resource(request: S3Request) -> str:
    """Return what a change is about, as far as its query names it."""
    return next((request.query[name] for name in RESOURCES if request.query.get(name)), "")


def _code_of(error: Exception) -> str:
    return error.code if isinstance(error, IamError) else to_s3_error(error).code


async def _is_for_it(services: Services, request: S3Request) -> bool:
    headers, settings = request.headers, services.settings
    host = headers.get("host", "")
    if any(bucket_of_host(host, domains) is not None for domains in (settings.domains, settings.website_domains)):
        return False
    return NO_REGION in headers.get("authorization", "") or await services.cache.bucket(BUCKET) is None


async def _authenticate(services: Services, request: S3Request) -> Call:
    """Verify the signature, of any region. Raises S3Error."""
    query_parameters.parse_content_length(request)
    request.query = parse_query(request.raw_query)
    settings = services.settings
    region = "" if NO_REGION in request.headers.get("authorization", "") else None
    signature = signatures.parse_signature(
        request, now=time.time(), region=region, clock_skew=settings.clock_skew, sigv2="off"
    )
    if signature is None:
        raise AccessDenied()
    key = authentication.verify(request, signature, await services.cache.key(signature.access_key))
    services.key_uses.note(key, IAM)
    assert request.account_id is not None
    values = ConditionContext(request, None).find_values
    return Call(services.index, request.account_id, request.principal, Parameters({}), values)
