"""Every error that IAM and STS answer here: one class each, named after its code.

    IamError
      AccessDenied, InvalidClientTokenId, ExpiredTokenException, NotImplemented
      ValidationError, InvalidInput, MalformedInput, MalformedPolicyDocument
      NoSuchEntity, EntityAlreadyExists, DeleteConflict, LimitExceeded

"Common errors" of the IAM and STS API references, and the errors that each operation names.
"""

from __future__ import annotations

from app import errors as domain


class IamError(Exception):
    """Base of all. Its text is the message for the client."""

    status = 400

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.text = message

    @property
    def code(self) -> str:
        """As AWS calls it."""
        return type(self).__name__


class AccessDenied(IamError):
    status = 403


class InvalidClientTokenId(IamError):
    status = 403


class NotImplemented(IamError):
    status = 501


class ValidationError(IamError):
    status = 400


class InvalidInput(IamError):
    status = 400


class MalformedInput(IamError):
    """What AWS's services of the query protocol answer to lists and structures that are none."""

    status = 400


class MalformedPolicyDocument(IamError):
    status = 400


class NoSuchEntity(IamError):
    status = 404


class EntityAlreadyExists(IamError):
    status = 409


class DeleteConflict(IamError):
    status = 409


class LimitExceeded(IamError):
    status = 409


KEY, POLICY = "key", "policy"
"""Kinds of `detail["kind"]` and `["what"]` besides those of identities."""
NEEDED = {
    "key": "Cannot delete entity, must delete access keys first.",
    "policy": "Cannot delete entity, must delete policies first.",
    "attached": "Cannot delete entity, must detach all policies first.",
    "group": "Cannot delete entity, must remove users from group first.",
}


def from_domain(error: domain.DomainError) -> IamError | None:
    """The answer to what the index refused; None for what is no fault of the client's."""
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
