"""Signatures of HTML forms, versions 4 and 2: they cover the policy exactly as sent.

Sources: "Authenticating requests in browser-based uploads using POST (AWS Signature Version 4)", Amazon S3 API
Reference; "Browser-based uploads using POST (AWS signature version 2)", Amazon S3 User Guide.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures.request_signature import UNSIGNED_PAYLOAD, RequestSignature, sign
from sluice_s3.app.s3.auth.signatures.sigv4 import ALGORITHM, credential_scope
from sluice_s3.app.s3.wire.dates import parse_basic

V4 = {
    "x-amz-algorithm": "X-Amz-Algorithm",
    "x-amz-credential": "X-Amz-Credential",
    "x-amz-date": "X-Amz-Date",
    "x-amz-signature": "X-Amz-Signature",
}
"""Fields of a signature, and their names in the error for a missing one."""
V2 = {"awsaccesskeyid": "AWSAccessKeyId", "signature": "signature"}


class FormSignature(RequestSignature):
    """The signature of a form."""

    __slots__ = ("_day", "_policy", "_region", "_signature", "date")

    def __init__(
        self,
        version: str,
        access_key: str,
        policy: str,
        signature: str,
        token: str | None,
        day: str = "",
        region: str = "",
        date: str = "",
    ) -> None:
        self.access_key = access_key
        self.payload = UNSIGNED_PAYLOAD
        self.version = version
        self.via = "form"
        self.token = token
        self.date = date
        """The date in the form; empty for version 2."""
        self._policy = policy
        self._signature = signature
        self._day, self._region = day, region

    def verify(self, secret: str) -> None:
        """Check the signature. Raises SignatureDoesNotMatch."""
        if self.version == "v4":
            expected = sign(secret, self._day, self._region, self._policy)
        else:
            digest = hmac.digest(secret.encode("utf-8"), self._policy.encode("utf-8"), "sha1")
            expected = b64encode(digest).decode("ascii")
        if not hmac.compare_digest(expected.encode("ascii"), self._signature.encode("utf-8")):
            raise errors.SignatureDoesNotMatch(AWSAccessKeyId=self.access_key, StringToSign=self._policy)


def parse_form(fields: Mapping[str, str], *, region: str | None, sigv2: str) -> FormSignature | None:
    """Return the signature of a form's fields; None for an unsigned form.

    Names are in lower case. Raises InvalidArgument when a part of the signature is missing, InvalidRequest for version
    2 where it is off, and AuthorizationQueryParametersError for an invalid scope.
    """
    v4, v2 = not V4.keys().isdisjoint(fields), not V2.keys().isdisjoint(fields)
    if not v4 and not v2 and "policy" not in fields:
        return None
    if v4 and v2:
        raise errors.InvalidArgument("Only one auth mechanism allowed", ArgumentName="X-Amz-Algorithm")
    required = V4 if v4 else V2
    for field, name in {**required, "policy": "policy"}.items():
        if not fields.get(field):
            raise errors.InvalidArgument(
                f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the order of the "
                "fields.",
                ArgumentName=name,
                ArgumentValue="",
            )
    policy, token = fields["policy"], fields.get("x-amz-security-token")
    if v2 or not v4:
        if sigv2 == "off":
            raise errors.InvalidRequest(
                "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."
            )
        return FormSignature("v2", fields["awsaccesskeyid"], policy, fields["signature"], token)
    if fields["x-amz-algorithm"] != ALGORITHM:
        raise errors.InvalidArgument(f'X-Amz-Algorithm only supports "{ALGORITHM}"', ArgumentName="X-Amz-Algorithm")
    access_key, day, signed_region, *_ = credential_scope(fields["x-amz-credential"], region)
    date = fields["x-amz-date"]
    if parse_basic(date) is None or date[:8] != day:
        raise errors.InvalidArgument(
            "X-Amz-Date must be of the day of X-Amz-Credential, in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"",
            ArgumentName="X-Amz-Date",
            ArgumentValue=date[:64],
        )
    return FormSignature("v4", access_key, policy, fields["x-amz-signature"], token, day, signed_region, date)
