"""What can be wrong with a bucket, an object or an upload, in domain words.

The index decides these inside its transactions, the store passes them on, and `app.s3.errors` gives each its S3
answer. The tree:

    DomainError
      NoSuchBucket, BucketAlreadyExists, BucketAlreadyOwnedByYou, BucketNotEmpty, TooManyBuckets, BucketBusy
      QuotaExceeded       the bucket may not hold more
      NoSuchKey, NoSuchVersion, PreconditionFailed, ConditionalRequestConflict, SourceGone
      ObjectLocked        a retention or a legal hold keeps the version as it is
      InvalidBucketState  versioning and object lock of the bucket do not allow it
      TokenReused         another request was made by this token
      KeyBusy             something is being done to the key's file: nothing was done, try again
      NoSuchUpload, InvalidPart, InvalidPartOrder, EntityTooSmall
      AccountExists, NoSuchAccount
      IdentityExists, NoSuchIdentity, IdentityInUse, TooManyIdentities: users, groups, roles, their keys and policies
      CustomerKeyNeeded, CustomerKeyWrong  the object is encrypted with a key that only its customer has
      KeyUnavailable, KeyDisabled          a key of the key ring
      NoKeyRing                            no master key was ever given
      Overloaded          a queue, lock or limit said no: nothing was done, try again
      StoreUnavailable    the backing store or the index cannot be used now
        StoreFull         no space, inodes or quota left
        DataDamaged       a committed blob is missing or wrong (an alarm, never a 404)
      CommitUnknown       a COMMIT failed and its outcome could not be learned
      WriterDead          this writer incarnation was declared dead: nothing it wrote may be committed
      LeaseLost           another process does now what only one may: nothing was done
"""


class NotNow(Exception):
    """What was asked for at once would have to wait: ask again in the way that may. No error, and nothing was done."""


class DomainError(Exception):
    """Base of all domain errors. `detail` are facts that an answer may show (never a local path)."""

    def __init__(self, **detail: object) -> None:
        super().__init__(", ".join(f"{name}={value!r}" for name, value in detail.items()))
        self.detail = detail


class NoSuchBucket(DomainError):
    """The bucket does not exist."""


class BucketAlreadyExists(DomainError):
    """Another account owns a bucket of that name."""


class BucketAlreadyOwnedByYou(DomainError):
    """The caller owns a bucket of that name already."""


class BucketNotEmpty(DomainError):
    """The bucket still holds versions."""


class TooManyBuckets(DomainError):
    """The account has as many buckets as it may have."""


class BucketBusy(DomainError):
    """The bucket is on its way to another store."""


class QuotaExceeded(DomainError):
    """The bucket may not hold so much."""


class NoSuchKey(DomainError):
    """The key has no current object."""


class NoSuchVersion(DomainError):
    """The key has no version of that id."""


class PreconditionFailed(DomainError):
    """A condition of a write does not hold. `detail["condition"]` names its header."""


class ConditionalRequestConflict(DomainError):
    """A conflicting write won while this one was under way."""


class ObjectLocked(DomainError):
    """A retention or a legal hold keeps the version as it is."""


class InvalidBucketState(DomainError):
    """Object lock needs a bucket that keeps versions, and goes on to keep them."""


class SourceGone(DomainError):
    """The version to copy from was replaced or deleted before the copy committed: look it up again."""


class TokenReused(DomainError):
    """The token of the request was another one's."""


class KeyBusy(DomainError):
    """Something is being done to the plain file of the key. Nothing was done: try again shortly."""


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
    """No such account or access key."""


class IdentityExists(DomainError):
    """The account has a user, group or role of that name. `detail` has `kind` and `name`."""


class NoSuchIdentity(DomainError):
    """The account has no such user, group or role, or that no such key or policy. `detail` has `kind` and `name`."""


class IdentityInUse(DomainError):
    """It cannot be removed while it has keys, policies, groups or members: `detail["what"]`."""


class TooManyIdentities(DomainError):
    """There are as many as there may be. `detail` has `kind` and `most`."""


class CustomerKeyNeeded(DomainError):
    """The object is encrypted with a key that its customer must give."""


class CustomerKeyWrong(DomainError):
    """The object is encrypted with another key than was given."""


class KeyUnavailable(DomainError):
    """The key ring has no such key."""


class KeyDisabled(DomainError):
    """A key of the key ring is disabled."""


class NoKeyRing(DomainError):
    """There is no key ring, because no master key was ever given."""


class Overloaded(DomainError):
    """A queue, a lock or a limit said no. Nothing was done."""


class StoreUnavailable(DomainError):
    """The backing store or the index cannot be used now."""


class StoreFull(StoreUnavailable):
    """No space, inodes or quota left on the backing store or the index."""


class DataDamaged(StoreUnavailable):
    """A committed blob is missing or is not what was written."""


class CommitUnknown(DomainError):
    """A COMMIT failed and whether it took effect could not be learned."""


class WriterDead(DomainError):
    """This writer incarnation was declared dead."""


class LeaseLost(DomainError):
    """Another process does now what only one may."""
