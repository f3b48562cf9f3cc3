"""The condition keys that a bucket policy may name.

Keys of AWS that no request here can have (VPC endpoints, organizations, federation) are known too: they are always
absent, as in a request to AWS without such a source. Sources: "AWS global condition context keys", IAM User Guide;
"Actions, resources, and condition keys for Amazon S3", Service Authorization Reference.
"""

from __future__ import annotations

from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.errors import Malformed

_NAMES_GLOBAL = """
aws:AssumedRoot aws:CalledVia aws:CalledViaFirst aws:CalledViaLast aws:ChatbotSourceArn aws:CurrentTime
aws:Ec2InstanceSourcePrivateIPv4 aws:Ec2InstanceSourceVpc aws:EpochTime aws:FederatedProvider aws:MultiFactorAuthAge
aws:MultiFactorAuthPresent aws:PrincipalAccount aws:PrincipalArn aws:PrincipalIsAWSService aws:PrincipalOrgID
aws:PrincipalOrgPaths aws:PrincipalServiceName aws:PrincipalServiceNamesList aws:PrincipalType aws:Referer
aws:RequestedRegion aws:ResourceAccount aws:ResourceOrgID aws:ResourceOrgPaths aws:SecureTransport aws:SourceAccount
aws:SourceArn aws:SourceIdentity aws:SourceIp aws:SourceOrgID aws:SourceOrgPaths aws:SourceOwner aws:SourceVpc
aws:SourceVpcArn aws:SourceVpce aws:TagKeys aws:TokenIssueTime aws:UserAgent aws:userid aws:username
aws:ViaAWSService aws:VpceAccount aws:VpceOrgID aws:VpceOrgPaths aws:VpcSourceIp
"""
GLOBAL = frozenset(_NAMES_GLOBAL.lower().split())
GLOBAL_PREFIXES = ("aws:principaltag/", "aws:requesttag/", "aws:resourcetag/")

_LISTS = frozenset({"s3:ListBucket", "s3:ListBucketVersions"})
_PUT = frozenset({"s3:PutObject"})
_LOCKS = frozenset({"s3:PutObject", "s3:PutObjectRetention", "s3:ReplicateObject", "s3:BypassGovernanceRetention"})
_GRANTS = frozenset({"s3:CreateBucket", "s3:PutBucketAcl", "s3:PutObject", "s3:PutObjectAcl", "s3:PutObjectVersionAcl"})
_NAMES_VERSIONED = """
DeleteObjectVersion DeleteObjectVersionTagging GetObjectVersion GetObjectVersionAcl GetObjectVersionTagging
GetObjectVersionAttributes GetObjectVersionTorrent PutObjectVersionAcl PutObjectVersionTagging GetObjectRetention
GetObjectLegalHold PutObjectRetention PutObjectLegalHold GetObject GetObjectAttributes BypassGovernanceRetention
"""
_VERSIONED = frozenset("s3:" + name for name in _NAMES_VERSIONED.split())

ON: dict[str, frozenset[str]] = {
    "s3:prefix": _LISTS | {"s3:ListBucketMultipartUploads"},
    "s3:delimiter": _LISTS | {"s3:ListBucketMultipartUploads"},
    "s3:max-keys": _LISTS | {"s3:ListBucketMultipartUploads"},
    "s3:locationconstraint": frozenset({"s3:CreateBucket"}),
    "s3:versionid": _VERSIONED,
    "s3:x-amz-acl": _GRANTS,
    "s3:x-amz-grant-full-control": _GRANTS,
    "s3:x-amz-grant-read": _GRANTS,
    "s3:x-amz-grant-read-acp": _GRANTS,
    "s3:x-amz-grant-write": _GRANTS,
    "s3:x-amz-grant-write-acp": _GRANTS,
    "s3:x-amz-object-ownership": frozenset({"s3:CreateBucket", "s3:PutBucketOwnershipControls"}),
    "s3:x-amz-copy-source": _PUT,
    "s3:x-amz-metadata-directive": _PUT,
    "s3:x-amz-website-redirect-location": _PUT,
    "s3:x-amz-storage-class": _PUT | {"s3:ReplicateObject"},
    "s3:x-amz-server-side-encryption": _PUT | {"s3:ReplicateObject"},
    "s3:x-amz-server-side-encryption-aws-kms-key-id": _PUT | {"s3:ReplicateObject"},
    "s3:x-amz-server-side-encryption-customer-algorithm": _PUT | {"s3:GetObject", "s3:GetObjectVersion"},
    "s3:if-match": _PUT | {"s3:DeleteObject"},
    "s3:if-none-match": _PUT,
    "s3:objectcreationoperation": _PUT,
    "s3:requestobjecttagkeys": frozenset(
        {"s3:PutObject", "s3:PutObjectTagging", "s3:PutObjectVersionTagging", "s3:ReplicateTags"}
    ),
    "s3:object-lock-mode": _LOCKS,
    "s3:object-lock-retain-until-date": _LOCKS,
    "s3:object-lock-remaining-retention-days": _LOCKS,
    "s3:object-lock-legal-hold": _LOCKS | {"s3:PutObjectLegalHold"},
}
"""Keys of some operations only, with the actions of these."""

_NAMES_ANYWHERE = """
s3:authtype s3:signatureage s3:signatureversion s3:tlsversion s3:resourceaccount s3:x-amz-content-sha256
s3:dataaccesspointarn s3:dataaccesspointaccount s3:accesspointnetworkorigin s3:accessgrantsinstancearn
s3:inventoryaccessibleoptionalfields
"""
ANYWHERE = frozenset(_NAMES_ANYWHERE.lower().split())
"""Keys that any request may have; lower case, as all keys here."""
ANYWHERE_PREFIXES = ("s3:buckettag/", "s3:existingbuckettag/")
EXISTING_TAG, REQUEST_TAG, REQUEST_TAG_KEYS = "s3:existingobjecttag/", "s3:requestobjecttag/", "s3:requestobjecttagkeys"
_NAMES_TAGGED = """
GetObject GetObjectVersion GetObjectAcl GetObjectVersionAcl GetObjectAttributes GetObjectVersionAttributes
GetObjectTagging GetObjectVersionTagging GetObjectTorrent GetObjectVersionTorrent PutObjectAcl PutObjectVersionAcl
PutObjectTagging PutObjectVersionTagging DeleteObjectTagging DeleteObjectVersionTagging
"""
ON_TAGGED = frozenset("s3:" + name for name in _NAMES_TAGGED.split())
"""Actions whose conditions can use the object's tags. Writing and deleting it are not among them.

"Tagging and access control policies", Amazon S3 User Guide.
"""
_TAGGING = frozenset({"s3:PutObject", "s3:PutObjectTagging", "s3:PutObjectVersionTagging", "s3:ReplicateTags"})
ON_PREFIXES = {EXISTING_TAG: ON_TAGGED | {"s3:ObjectOwnerOverrideToBucketOwner"}, REQUEST_TAG: _TAGGING}
"""The same for keys with these prefixes."""


def check(key: str, actions: frozenset[str]) -> None:
    """Raise Malformed for an unknown key, or one that these actions never have. `key` is in lower case."""
    if key in ON:
        if ON[key].isdisjoint(actions):
            raise Malformed(errors.CONDITION_MISMATCH)
    elif prefix := _on_prefix(key):
        if ON_PREFIXES[prefix].isdisjoint(actions):
            raise Malformed(errors.CONDITION_MISMATCH)
    elif key not in GLOBAL and key not in ANYWHERE and not _prefixed(key):
        raise Malformed(errors.CONDITION_KEY)


def _on_prefix(key: str) -> str:
    return next((prefix for prefix in ON_PREFIXES if key.startswith(prefix) and len(key) > len(prefix)), "")


def _prefixed(key: str) -> bool:
    return any(key.startswith(prefix) and len(key) > len(prefix) for prefix in (*GLOBAL_PREFIXES, *ANYWHERE_PREFIXES))
