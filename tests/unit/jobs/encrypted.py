"""Encrypted objects in a store, without S3."""

from __future__ import annotations

from base64 import b64encode
from functools import partial

from pydantic import SecretStr

from sluice_s3.app.encryption.keyring import OF_S3, KeyRing
from sluice_s3.app.encryption.scheme import CUSTOMER, KMS, S3, Scheme, scheme_of
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.index.multipart.rows import Extent, Part, Upload
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import multipart, objects, reading
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption
from sluice_s3.app.store.encryption.keyring import make_ring
from sluice_s3.app.store.store import Store
from tests.unit.store.site import Bytes

MASTER = bytes(range(32))
CUSTOMERS = CustomerKey(bytes(32))


async def with_ring(store: Store) -> ObjectEncryption:
    """Give a store a key ring; what encrypts by its first key."""
    store.keyring.master = lambda: MASTER
    if not await store.index.note(KEYRING):
        await make_ring(store.index, Settings(master_key=SecretStr(b64encode(MASTER).decode())))
    await store.keyring.read_anew()
    return ObjectEncryption(Scheme(S3), partial(store.keyring.ring.envelope, OF_S3))


def of_kms(ring: KeyRing, key: str) -> ObjectEncryption:
    """What encrypts by another key."""
    return ObjectEncryption(Scheme(KMS, f"arn:aws:kms:us-east-1:000000000000:key/{key}"), partial(ring.envelope, key))


def of_customer() -> ObjectEncryption:
    """What encrypts by a customer's key."""
    return ObjectEncryption(Scheme(CUSTOMER, ":".join(CUSTOMERS.new_check())), CUSTOMERS.envelope)


async def put_sealed(store: Store, bucket: Bucket, key: str, body: bytes, seal: ObjectEncryption) -> None:
    """PutObject."""
    source = Bytes(body)

    def describe(locator: str) -> NewVersion:
        return source.describe(locator)._replace(headers=metadata.pack_headers({}, scheme=seal.scheme))

    await objects.put(store, bucket.id, key, seal.source(source), describe, None, {})


async def upload_sealed(store: Store, bucket: Bucket, key: str, bodies: list[bytes], seal: ObjectEncryption) -> None:
    """A multipart upload."""
    headers = metadata.pack_headers({}, scheme=seal.scheme)
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
    await reading.feed_bytes(store, version, 0, version.size, taken.extend, customer)
    return bytes(taken)
