"""Encrypted objects in a store, without S3."""

from __future__ import annotations

from functools import partial

from app.encryption.customer import CustomerKey
from app.encryption.ring import OF_S3, KeyRing
from app.encryption.scheme import CUSTOMER, KMS, S3, Scheme, scheme_of
from app.index.decisions import KEYRING
from app.index.rows import Bucket, Extent, NewVersion, Part, Upload
from app.s3 import metadata
from app.store import multipart, objects, reading
from app.store.keyring import make_ring
from app.store.sealing import Seal
from app.store.store import Store
from tests.store.site import Bytes

MASTER = bytes(range(32))
CUSTOMERS = CustomerKey(bytes(32))


async def with_ring(store: Store) -> Seal:
    """Give a store a key ring; what encrypts by its first key."""
    store.keyring.master = lambda: MASTER
    if not await store.index.note(KEYRING):
        await make_ring(store.index, lambda: MASTER, given=True)
    await store.keyring.read_anew()
    return Seal(Scheme(S3), partial(store.keyring.ring.envelope, OF_S3))


def of_kms(ring: KeyRing, key: str) -> Seal:
    """What encrypts by another key."""
    return Seal(Scheme(KMS, f"arn:aws:kms:us-east-1:000000000000:key/{key}"), partial(ring.envelope, key))


def of_customer() -> Seal:
    """What encrypts by a customer's key."""
    return Seal(Scheme(CUSTOMER, ":".join(CUSTOMERS.new_check())), CUSTOMERS.envelope)


async def put_sealed(store: Store, bucket: Bucket, key: str, body: bytes, seal: Seal) -> None:
    """PutObject."""
    source = Bytes(body)

    def describe(locator: str) -> NewVersion:
        return source.describe(locator)._replace(headers=metadata.encode({}, scheme=seal.scheme))

    await objects.put(store, bucket.id, key, seal.source(source), describe, None, {})


async def upload_sealed(store: Store, bucket: Bucket, key: str, bodies: list[bytes], seal: Seal) -> None:
    """A multipart upload."""
    headers = metadata.encode({}, scheme=seal.scheme)
    upload: Upload = await store.index.create_upload(bucket.id, key, headers, "STANDARD", "", "", "owner")
    for number, body in enumerate(bodies, 1):

        def describe(extents: tuple[Extent, ...], number: int = number, body: bytes = body) -> Part:
            return Part(number, len(body), "0" * 32, 0, "", "", extents)

        await multipart.put_part(store, upload, seal.source(Bytes(body)), describe, {})
    chosen = await store.index.parts(upload, 0, 100)
    size = sum(map(len, bodies))
    new = NewVersion(size, f"{'0' * 32}-{len(bodies)}", headers, "STANDARD", "", "", "", "", len(bodies), "owner")
    await multipart.complete(store, upload, chosen, new, None, {})


async def content(store: Store, bucket: Bucket, key: str) -> bytes:
    """The bytes of an object, opened."""
    version = await objects.find(store, bucket.id, key)
    scheme = scheme_of(version.headers)
    customer = CUSTOMERS if scheme is not None and scheme.method == CUSTOMER else None
    taken = bytearray()
    await reading.feed(store, version, 0, version.size, taken.extend, customer)
    return bytes(taken)
