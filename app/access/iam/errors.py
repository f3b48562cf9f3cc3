"""Every error that IAM and STS answer here: one class each, named after its code.

    IamError
      AccessDenied, InvalidClientTokenId, ExpiredToken, NotImplemented
      IncompleteSignature, MissingAuthenticationToken, SignatureDoesNotMatch
      ValidationError, InvalidInput, MalformedInput, MalformedPolicyDocument
      NoSuchEntity, EntityAlreadyExists, DeleteConflict, LimitExceeded
      Throttling, ServiceUnavailable, InternalFailure

"Common errors" of the IAM and STS API references, and the errors that each operation names.
"""

from __future__ import annotations

from sluice_s3.app import errors as domain


class IamError(Exception):
    """Base of all. Its text is the message for the client."""

    status = 400

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.text = message

    @property
    def code(self) -> str:
        """The code as AWS names it."""
        return type(self).__name__


class AccessDenied(IamError):
    """The caller lacks the permission."""

    status = 403


class InvalidClientTokenId(IamError):
    """The access key or session token is invalid."""

    status = 403


class ExpiredToken(IamError):
    """The session token has expired."""

    status = 403


class IncompleteSignature(IamError):
    """The signature lacks a required part."""

    status = 400


class MissingAuthenticationToken(IamError):
    """The request is not signed."""

    status = 403


class SignatureDoesNotMatch(IamError):
    """The signature does not match the secret key."""

    status = 403


class NotImplemented(IamError):
    """The operation or parameter is not supported."""

    status = 501


class ValidationError(IamError):
    """A parameter is missing or outside its constraint."""

    status = 400


class InvalidInput(IamError):
    """A parameter has an invalid value."""

    status = 400


class MalformedInput(IamError):
    """The answer of AWS's query protocol to malformed lists and structures."""

    status = 400


class MalformedPolicyDocument(IamError):
    """The policy document has a syntax error."""

    status = 400


class NoSuchEntity(IamError):
    """The named user, group, role, key or policy does not exist."""

    status = 404


class EntityAlreadyExists(IamError):
    """The name is taken."""

    status = 409


class DeleteConflict(IamError):
    """The identity still has keys, policies or members."""

    status = 409


class LimitExceeded(IamError):
    """A quota of the account is reached."""

    status = 409


class Throttling(IamError):
    """Too many requests. 400 as on IAM, since the legacy retries of AWS's SDKs expect that status."""

    status = 400


class ServiceUnavailable(IamError):
    """The service cannot answer at present."""

    status = 503


class InternalFailure(IamError):
    """An unexpected error of the gateway."""

    status = 500


KEY, POLICY = "key", "policy"
"""Values of `detail["kind"]` and `["what"]` besides those of identities."""
NEEDED = {
    "key": "Cannot delete entity, must delete access keys first.",
    "policy": "Cannot delete entity, must delete policies first.",
    "attached": "Cannot delete entity, must detach all policies first.",
    "default version": "Cannot delete the default version of a policy.",
    "entities": "Cannot delete a policy attached to entities.",
    "group": "Cannot delete entity, must remove users from group first.",
    "versions": "This policy has more than one version. Before you delete a policy, you must delete the policy's"
    " versions. The default version is deleted with the policy.",
}


def to_s3_error(error: domain.DomainError) -> IamError | None:
    """Return the IAM error for a refusal of the index. None if it is no fault of the client."""
    detail = error.detail
    kind, name = str(detail.get("kind", "")), detail.get("name")
    if isinstance(error, domain.NoSuchIdentity):
        if kind == KEY:
            return NoSuchEntity(f"The Access Key with id {name} cannot be found.")
        if kind == POLICY:
            return NoSuchEntity(f"The policy with name {name} cannot be found.")
        return NoSuchEntity(f"The {kind} with name {name} cannot be found.")
    if isinstance(error, domain.IdentityExists):
        return EntityAlreadyExists(f"{kind.capitalize()} with name {name} already exists.")
    if isinstance(error, domain.IdentityInUse):
        return DeleteConflict(NEEDED[str(detail["what"])])
    if isinstance(error, domain.TooManyIdentities):
        return LimitExceeded(f"Cannot exceed quota for {kind}: {detail['most']}")
    return None
