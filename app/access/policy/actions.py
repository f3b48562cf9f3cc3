"""The rights that S3 knows, and whether each is asked on buckets or on objects.

"Actions, resources, and condition keys for Amazon S3", Service Authorization Reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html).
"""

from __future__ import annotations

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
