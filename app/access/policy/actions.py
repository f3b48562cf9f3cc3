"""The rights that S3 knows, and whether each is asked on buckets or on objects.

"Actions, resources, and condition keys for Amazon S3", Service Authorization Reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html).
"""

from __future__ import annotations

import re

from app.access.policy import malformed
from app.access.policy.malformed import Malformed
from app.access.policy.wildcards import Pattern, Work, tokens_of

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
_FOLDED = {action.lower(): action for action in KNOWN}

_NAMES_IAM_ACTIONS = """
AddUserToGroup AttachGroupPolicy AttachRolePolicy AttachUserPolicy CreateAccessKey CreateGroup CreateRole CreateUser
DeleteAccessKey DeleteGroup DeleteGroupPolicy DeleteRole DeleteRolePolicy DeleteUser DeleteUserPolicy DetachGroupPolicy
DetachRolePolicy DetachUserPolicy GetAccountSummary GetGroup GetGroupPolicy GetRole GetRolePolicy GetUser GetUserPolicy
ListAccessKeys ListAttachedGroupPolicies ListAttachedRolePolicies ListAttachedUserPolicies ListGroupPolicies ListGroups
ListGroupsForUser ListOpenIDConnectProviders ListRolePolicies ListRoles ListUserPolicies ListUsers PutGroupPolicy
PutRolePolicy PutUserPolicy RemoveUserFromGroup UpdateAccessKey UpdateAssumeRolePolicy UpdateGroup UpdateRole
UpdateRoleDescription UpdateUser
"""
IAM_ACTIONS = frozenset("iam:" + name for name in _NAMES_IAM_ACTIONS.split())
STS_ACTIONS = frozenset({"sts:AssumeRole", "sts:GetCallerIdentity", "sts:GetSessionToken"})
KMS_ACTIONS = frozenset({"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"})
"""Of those that there are only what S3 needs for its callers, and what is asked for with them."""
OF_IDENTITIES = KNOWN | IAM_ACTIONS | STS_ACTIONS | KMS_ACTIONS
"""All that is ever asked of the policies of users, groups and roles."""
_FOLDED_ALL = {action.lower(): action for action in OF_IDENTITIES}
_SERVICE_ACTION = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9*?]+")


def matching(text: str) -> frozenset[str]:
    """The actions that a text of `Action` or `NotAction` means; case does not matter. Raises Malformed for none."""
    folded = text.lower()
    if folded in _FOLDED:
        return frozenset({_FOLDED[folded]})
    if folded != "*" and not folded.startswith("s3:"):
        raise Malformed(malformed.ACTION)
    pattern, work = Pattern(tokens_of(folded)), Work()
    found = frozenset(action for name, action in _FOLDED.items() if pattern.matches(name, work))
    if not found:
        raise Malformed(malformed.ACTION)
    return found


def matching_any(text: str) -> frozenset[str]:
    """The same for the policy of a user, group or role, which may name actions of services that there are none of.

    Raises Malformed for what is no action of any service.
    """
    if text == "*":
        return OF_IDENTITIES
    if _SERVICE_ACTION.fullmatch(text) is None:
        raise Malformed(malformed.VENDOR)
    pattern, work = Pattern(tokens_of(text.lower())), Work()
    return frozenset(action for name, action in _FOLDED_ALL.items() if pattern.matches(name, work))
