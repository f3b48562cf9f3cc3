"""Domain errors: what can be wrong with a bucket, an object or an upload.

The index raises them inside its transactions, the store passes them on, and `app.s3.errors` maps each to its S3
answer. The tree:

    DomainError
      NoSuchBucket, BucketAlreadyExists, BucketAlreadyOwnedByYou, BucketNotEmpty, TooManyBuckets, BucketBusy
      QuotaExceeded       the bucket would exceed its quota
      NoSuchKey, NoSuchVersion, PreconditionFailed, ConditionalRequestConflict, SourceGone
      ObjectLocked        a retention or a legal hold protects the version
      InvalidBucketState  versioning and object lock of the bucket do not allow it
      TokenReused         the token belongs to another request
      KeyBusy             another change of the key's file is under way: nothing was done, try again
      NoSuchUpload, InvalidPart, InvalidPartOrder, EntityTooSmall
      AccountExists, NoSuchAccount
      IdentityExists, NoSuchIdentity, IdentityInUse, TooManyIdentities: users, groups, roles, their keys and policies
      CustomerKeyNeeded, CustomerKeyWrong  the object is encrypted with a key that only its customer has
      KeyUnavailable, KeyDisabled          a key of the key ring
      NoKeyRing                            no master key was ever configured
      Overloaded          a queue, lock or limit refused the call: nothing was done, try again
      StoreUnavailable    the backing store or the index cannot be used now
        StoreFull         no space, inodes or quota left
        DataDamaged       a committed blob is missing or wrong (an alarm, never a 404)
        IndexBehind       the index is an older state of itself: journals, or later commits, go beyond it
        IndexForeign      the journals of a store belong to another index
      CommitUnknown       a COMMIT failed and its outcome is unknown
      WriterDead          this writer incarnation was declared dead: nothing it wrote may be committed
      LeaseLost           another process runs now what only one may: nothing was done
"""


class DomainError(Exception):
    """Base of all domain errors.

    `detail` has facts that an answer may contain (never a local path).
    """

    def __init__(self, **detail: object) -> None:
        super().__init__(", ".join(f"{name}={value!r}" for name, value in detail.items()))
        self.detail = detail


def describe(error: Exception) -> str:
    """Return one line about an error for the operator, which may name local paths. It is never empty."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    reason = error.detail.get("reason") if isinstance(error, DomainError) else None
    return str(reason or str(error) or type(error).__name__)


class NoSuchBucket(DomainError):
    """The bucket does not exist."""


class BucketAlreadyExists(DomainError):
    """Another account owns a bucket of that name."""


class BucketAlreadyOwnedByYou(DomainError):
    """The caller already owns a bucket of that name."""


class BucketNotEmpty(DomainError):
    """The bucket is not empty."""


class TooManyBuckets(DomainError):
    """The account has the most buckets that it may have."""


class BucketBusy(DomainError):
    """The bucket is moving to another store."""


class QuotaExceeded(DomainError):
    """The quota of the bucket would be exceeded."""


class NoSuchKey(DomainError):
    """The key has no current object."""


class NoSuchVersion(DomainError):
    """The key has no version of that id."""


class PreconditionFailed(DomainError):
    """A condition of a write does not hold. `detail["condition"]` names its header."""


class ConditionalRequestConflict(DomainError):
    """A conflicting write won while this one was under way."""


class ObjectLocked(DomainError):
    """A retention or a legal hold protects the version."""


class InvalidBucketState(DomainError):
    """Object lock needs a bucket with versioning, and versioning that stays enabled."""


class SourceGone(DomainError):
    """The source of a copy was replaced or deleted before the commit: find it again."""


class TokenReused(DomainError):
    """The token belongs to another request."""


class KeyBusy(DomainError):
    """Another change of the key's plain file is under way.

    Nothing was done: try again shortly.
    """


class NoSuchUpload(DomainError):
    """The multipart upload does not exist, is ended, or belongs to another key."""


class InvalidPart(DomainError):
    """A part named in Complete was never uploaded or has another ETag."""


class InvalidPartOrder(DomainError):
    """The parts named in Complete are not in ascending order."""


class EntityTooSmall(DomainError):
    """A part other than the last is below 5 MiB."""


class AccountExists(DomainError):
    """The account id, email or access key is taken."""


class NoSuchAccount(DomainError):
    """The account or access key does not exist."""


class IdentityExists(DomainError):
    """The account already has a user, group or role of that name.

    `detail` has `kind` and `name`.
    """


class NoSuchIdentity(DomainError):
    """The account has no such user, group, role, key or policy.

    `detail` has `kind` and `name`.
    """


class IdentityInUse(DomainError):
    """An identity with keys, policies, groups or members cannot be removed: `detail["what"]`."""


class TooManyIdentities(DomainError):
    """The limit of identities is reached. `detail` has `kind` and `most`."""


class CustomerKeyNeeded(DomainError):
    """The object is encrypted with a key that its customer must send."""


class CustomerKeyWrong(DomainError):
    """The object is encrypted with another key than the customer sent."""


class KeyUnavailable(DomainError):
    """The key ring has no such key."""


class KeyDisabled(DomainError):
    """A key of the key ring is disabled."""


class NoKeyRing(DomainError):
    """There is no key ring, because no master key was ever configured."""


class Overloaded(DomainError):
    """A queue, lock or limit refused the call. Nothing was done."""


class StoreUnavailable(DomainError):
    """The backing store or the index cannot be used now."""


class StoreFull(StoreUnavailable):
    """No space, inodes or quota left on the backing store or the index."""


class DataDamaged(StoreUnavailable):
    """A committed blob is missing or differs from what was written."""


class IndexBehind(StoreUnavailable):
    """The index is an older state of itself: journals or a server have later commits."""


class IndexForeign(StoreUnavailable):
    """The journals beside the data belong to another index."""


class CommitUnknown(DomainError):
    """A COMMIT failed and its outcome is unknown."""


class WriterDead(DomainError):
    """The writer incarnation of the process was declared dead."""


class LeaseLost(DomainError):
    """Another process runs now what only one may."""
