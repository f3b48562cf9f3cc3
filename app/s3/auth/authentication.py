"""Authentication of requests: the signature is verified, and the caller's account is noted in the request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sluice_s3.app.access.presigned import CLIENT_PARAMETER
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.index.iam.rows import AccessKey, sign_in_key
from sluice_s3.app.s3.auth import session_tokens, signatures
from sluice_s3.app.s3.errors import InvalidAccessKeyId, InvalidRequest, SignatureDoesNotMatch
from sluice_s3.app.s3.wire import metadata, query_parameters
from sluice_s3.app.s3.wire.request import S3Request

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


def parse_signature(services: Services, request: S3Request) -> signatures.RequestSignature | None:
    """Return the signature of a request; None for an anonymous one. Raises an S3Error for an impossible one."""
    query_parameters.parse_content_length(request)
    settings, region = services.settings, services.regions.required
    signature = signatures.parse_signature(
        request, now=time.time(), region=region, clock_skew=settings.clock_skew, sigv2=settings.sigv2
    )
    if signature is None and not metadata.RESPONSE_OVERRIDES.keys().isdisjoint(request.query):
        raise InvalidRequest("Request specific response headers cannot be used for anonymous GET requests.")
    return signature


def verify(request: S3Request, signature: signatures.RequestSignature, key: AccessKey | None) -> AccessKey:
    """Verify a signature by its access key, None for an unknown one; return the key.

    Raises InvalidAccessKeyId, SignatureDoesNotMatch, InvalidToken, ExpiredToken.
    """
    if key is None:
        raise InvalidAccessKeyId(AWSAccessKeyId=signature.access_key[:128])
    try:
        signature.verify(key.secret)
    except SignatureDoesNotMatch:
        if not signature.matches_by_name(request, key.secret):
            raise
    if key.disabled:
        raise InvalidAccessKeyId(AWSAccessKeyId=signature.access_key)
    if key.token or signature.token is not None:
        session_tokens.check(key, signature.token)
        if CLIENT_PARAMETER in request.query and key.holder is not None and sign_in_key(key.holder.session) is not None:
            request.client = request.query[CLIENT_PARAMETER]  # only this gateway has the secret of such a session
    request.signature = signature
    request.secret = key.secret
    request.payload = signature.payload
    request.access_key = key.access_key
    request.account_id = key.account_id
    request.display_name = key.display_name
    if key.holder is not None:
        request.principal = build_principal(key.holder)
    return key
