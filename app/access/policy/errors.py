"""Errors of policies, with S3's messages for `MalformedPolicy`."""

from __future__ import annotations


class Malformed(ValueError):
    """The text is no valid policy. Its argument is the message for the client."""


class UnknownPrincipal(Malformed):
    """The policy names a principal that does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(PRINCIPAL)
        self.kind, self.name = kind, name


NOT_JSON = "This policy contains invalid Json"
FIRST_BYTE = "Policies must be valid JSON and the first byte must be '{'"
SYNTAX = "Invalid policy syntax."
VERSION = "The policy must contain a valid version string"
NO_STATEMENT = "Could not parse the policy: Statement is empty!"
SAME_SID = "The Statement Ids in the policy are not unique"
PRINCIPAL = "Invalid principal in policy"
EMPTY_PRINCIPAL = "Missing required field Principal cannot be empty!"
ALLOW_NOT_PRINCIPAL = "Allow with NotPrincipal is not allowed."
ACTION = "Policy has invalid action"
RESOURCE = "Policy has invalid resource"
MISMATCH = "Action does not apply to any resource(s) in statement"
VENDOR = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
HAS_PRINCIPAL = "Policy document should not specify a principal."
HAS_RESOURCE = "Has prohibited field Resource"
NO_ARN = 'Resource must be in ARN format or "*".'
ONLY_ASSUME = "AssumeRole policy may only specify STS AssumeRole actions."
SID = "Statement IDs (SID) must be alpha-numeric."
CONDITION_KEY = "Policy has an invalid condition key"
CONDITION_VALUE = "Invalid value in Conditions"
CONDITION_MISMATCH = "Conditions do not apply to combination of actions and resources in statement"
