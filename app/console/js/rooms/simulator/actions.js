// The actions that the simulator suggests; any other action of S3 can be typed.
const OBJECT = `GetObject PutObject DeleteObject GetObjectVersion DeleteObjectVersion GetObjectTagging PutObjectTagging GetObjectAcl
PutObjectAcl GetObjectAttributes AbortMultipartUpload ListMultipartUploadParts PutObjectRetention PutObjectLegalHold
BypassGovernanceRetention RestoreObject RenameObject GetObjectRetention GetObjectLegalHold`;
const BUCKET = `ListBucket ListBucketVersions ListBucketMultipartUploads GetBucketLocation GetBucketPolicy PutBucketPolicy
DeleteBucketPolicy GetLifecycleConfiguration PutLifecycleConfiguration GetBucketVersioning PutBucketVersioning GetBucketAcl PutBucketAcl
GetBucketCORS PutBucketCORS GetBucketTagging PutBucketTagging GetEncryptionConfiguration PutEncryptionConfiguration DeleteBucket
CreateBucket GetBucketObjectLockConfiguration PutBucketObjectLockConfiguration GetBucketNotification PutBucketNotification
GetBucketWebsite PutBucketWebsite GetBucketLogging PutBucketLogging GetBucketPublicAccessBlock PutBucketPublicAccessBlock`;

const named = (names) => names.split(/\s+/).map((name) => `s3:${name}`);

/** All of them. */
export const ACTIONS = [...named(OBJECT), ...named(BUCKET), "s3:ListAllMyBuckets"];

const OF_BUCKETS = new Set([...named(BUCKET), "s3:ListAllMyBuckets"].map((name) => name.toLowerCase()));

/** Returns whether an action is on objects, and so needs a key. Actions that are not known are. */
export function isOnObject(action) {
  return !OF_BUCKETS.has(action.trim().toLowerCase());
}

/** Condition keys that are often asked for, each with an example of a value. */
export const CONDITION_KEYS = {
  "aws:SourceIp": "203.0.113.7", "aws:SecureTransport": "true", "s3:prefix": "home/", "s3:delimiter": "/", "s3:VersionId": "",
  "s3:x-amz-acl": "public-read", "s3:x-amz-server-side-encryption": "AES256", "aws:Referer": "https://example.com/",
  "aws:UserAgent": "aws-cli/2", "s3:ExistingObjectTag/team": "blue", "s3:RequestObjectTag/team": "blue", "s3:max-keys": "1000",
};
