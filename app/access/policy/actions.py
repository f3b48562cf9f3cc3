"""The actions that policies may name.

Those of S3 apply to buckets or to objects. "Actions, resources, and condition keys for Amazon S3", Service
Authorization Reference (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sluice_s3.app.access.admin_actions import DESCRIPTIONS
from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.wildcards import ONE, STAR, Token, tokens_of

_NAMES_BUCKET_ACTIONS = """
CreateBucket CreateBucketMetadataTableConfiguration DeleteBucket DeleteBucketMetadataTableConfiguration
DeleteBucketOwnershipControls DeleteBucketPolicy DeleteBucketWebsite GetAccelerateConfiguration
GetAnalyticsConfiguration GetBucketAbac GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging
GetBucketMetadataTableConfiguration GetBucketNotification GetBucketObjectLockConfiguration
GetBucketOwnershipControls GetBucketPolicy GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment
GetBucketTagging GetBucketVersioning GetBucketWebsite GetEncryptionConfiguration GetIntelligentTieringConfiguration
GetInventoryConfiguration GetLifecycleConfiguration GetMetricsConfiguration GetReplicationConfiguration HeadBucket
ListBucket ListBucketMultipartUploads ListBucketVersions ListTagsForResource PutAccelerateConfiguration
PutAnalyticsConfiguration PutBucketAbac PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification
PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock
PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration PutMetricsConfiguration
PutReplicationConfiguration TagResource UntagResource UpdateBucketMetadataInventoryTableConfiguration
UpdateBucketMetadataJournalTableConfiguration CreateSession
"""
BUCKET_ACTIONS = frozenset("s3:" + name for name in _NAMES_BUCKET_ACTIONS.split())
_NAMES_OBJECT_ACTIONS = """
AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion
DeleteObjectVersionTagging GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl GetObjectVersionAttributes
GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold
PutObjectRetention PutObjectTagging PutObjectVersionAcl PutObjectVersionTagging RenameObject ReplicateDelete
ReplicateObject ReplicateTags RestoreObject UpdateObjectEncryption
"""
OBJECT_ACTIONS = frozenset("s3:" + name for name in _NAMES_OBJECT_ACTIONS.split())
SERVICE_ACTIONS = frozenset({"s3:ListAllMyBuckets"})
KNOWN = BUCKET_ACTIONS | OBJECT_ACTIONS | SERVICE_ACTIONS

_NAMES_IAM_ACTIONS = """
AddUserToGroup AttachGroupPolicy AttachRolePolicy AttachUserPolicy CreateAccessKey CreateGroup CreatePolicy
CreatePolicyVersion CreateRole CreateUser DeleteAccessKey DeleteGroup DeleteGroupPolicy DeletePolicy DeletePolicyVersion
DeleteRole DeleteRolePolicy DeleteUser DeleteUserPolicy DetachGroupPolicy DetachRolePolicy DetachUserPolicy
GetAccessKeyLastUsed GetAccountSummary GetGroup GetGroupPolicy GetPolicy GetPolicyVersion GetRole GetRolePolicy GetUser
GetUserPolicy ListAccessKeys ListAttachedGroupPolicies ListAttachedRolePolicies ListAttachedUserPolicies
ListEntitiesForPolicy ListGroupPolicies ListGroups ListGroupsForUser ListOpenIDConnectProviders ListPolicies
ListPolicyVersions ListRolePolicies ListRoles ListUserPolicies ListUsers PutGroupPolicy PutRolePolicy PutUserPolicy
RemoveUserFromGroup SetDefaultPolicyVersion SimulateCustomPolicy SimulatePrincipalPolicy UpdateAccessKey
UpdateAssumeRolePolicy UpdateGroup UpdateRole UpdateRoleDescription UpdateUser
"""
IAM_ACTIONS = frozenset("iam:" + name for name in _NAMES_IAM_ACTIONS.split())
STS_ACTIONS = frozenset({"sts:AssumeRole", "sts:GetCallerIdentity", "sts:GetSessionToken"})
KMS_ACTIONS = frozenset({"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"})
"""Only those that S3 needs on behalf of its callers."""
ADMIN_ACTIONS = frozenset({"admin:GetBucketQuota", "admin:ServerInfo", "admin:SetBucketQuota"})
"""MinIO's names for what its clients administer here and AWS has no name for."""
IDENTITY_ACTIONS = KNOWN | IAM_ACTIONS | STS_ACTIONS | KMS_ACTIONS | ADMIN_ACTIONS | frozenset(DESCRIPTIONS)
"""All actions for which policies of users, groups and roles are evaluated."""
_SERVICE_ACTION = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9*?]+")


class Names:
    """Finds all names that a pattern matches at once.

    A policy may hold thousands of patterns. The names stand in one text, each with an end mark. A bit stands for a
    place up to which the pattern so far has matched a name from its first character on.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._starts = self._ends = position = 0
        self._signs: dict[str, int] = {}
        self._at: dict[int, str] = {}
        self.folded: dict[str, frozenset[str]] = {}
        for name in names:
            self.folded[name.lower()] = frozenset({name})
            self._starts |= 1 << position
            for sign in name.lower():
                self._signs[sign] = self._signs.get(sign, 0) | 1 << position
                position += 1
            self._ends |= 1 << position
            self._at[1 << position] = name
            position += 1
        self._spreads = self._spreads_of((1 << position) - 1 & ~self._starts, max(map(len, self.folded)))
        self._found: dict[int, frozenset[str]] = {}

    @staticmethod
    def _spreads_of(inside: int, longest: int) -> list[tuple[int, int]]:
        """Return shifts that spread a bit to the end of its name. Each has the places that it may reach."""
        found, shift = [], 1
        while shift <= longest:
            found.append((shift, inside))
            inside &= inside << shift
            shift *= 2
        return found

    def matching(self, tokens: Sequence[Token]) -> frozenset[str]:
        """Return the names that a pattern in lower case matches."""
        places, before = self._starts, None
        for token in tokens:
            if token is STAR:
                if before is not STAR:
                    for shift, reached in self._spreads:
                        places |= (places << shift) & reached
            elif token is ONE:
                places = (places & ~self._ends) << 1
            else:
                for sign in str(token):
                    places = (places & self._signs.get(sign, 0)) << 1
            if not places:
                return frozenset()
            before = token
        places &= self._ends
        if places not in self._found:
            if len(self._found) >= MAX_CACHED:
                self._found.clear()
            self._found[places] = frozenset(name for bit, name in self._at.items() if places & bit)
        return self._found[places]


MAX_CACHED = 1024
"""Sets of names cached in memory."""
_S3, _ALL = Names(KNOWN), Names(IDENTITY_ACTIONS)


def match_action(text: str) -> frozenset[str]:
    """Return the actions that an `Action` or `NotAction` text matches, in any case. Raises Malformed for none."""
    folded = text.lower()
    if folded in _S3.folded:
        return _S3.folded[folded]
    if folded != "*" and not folded.startswith("s3:"):
        raise Malformed(errors.ACTION)
    found = _S3.matching(tokens_of(folded))
    if not found:
        raise Malformed(errors.ACTION)
    return found


def match_any_action(text: str) -> frozenset[str]:
    """Return the actions for an identity policy, which may name unsupported services.

    Raises Malformed for what cannot be an action of any service.
    """
    if text == "*":
        return IDENTITY_ACTIONS
    if _SERVICE_ACTION.fullmatch(text) is None:
        raise Malformed(errors.VENDOR)
    return _ALL.matching(tokens_of(text.lower()))
