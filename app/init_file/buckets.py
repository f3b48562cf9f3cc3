"""Buckets and their settings: by the handlers of S3's operations."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sluice_s3.app.access.bucket_access import initial_settings
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.schema.tables import ENABLED, UNVERSIONED
from sluice_s3.app.init_file.aws_xml import cors_xml, lifecycle_xml
from sluice_s3.app.init_file.changes import Change, InitError
from sluice_s3.app.init_file.document import Block, BucketIn, Document, Encryption, Quota, Retention, policy_text
from sluice_s3.app.init_file.identities import DIFFERS, MISSING, account_id_of
from sluice_s3.app.init_file.planned_bucket import PlannedBucket, is_same, settings_of
from sluice_s3.app.s3.acl.operations import put_bucket_ownership_controls
from sluice_s3.app.s3.buckets.policy import put_bucket_policy
from sluice_s3.app.s3.buckets.public_access import put_public_access_block
from sluice_s3.app.s3.cors.operations import put_bucket_cors
from sluice_s3.app.s3.encryption.operations import put_bucket_encryption
from sluice_s3.app.s3.errors import MalformedPolicy, S3Error
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.lifecycle.operations import put_bucket_lifecycle_configuration
from sluice_s3.app.s3.object_lock.operations import put_object_lock_configuration
from sluice_s3.app.s3.services import Services
from sluice_s3.app.s3.tagging.operations import put_bucket_tagging
from sluice_s3.app.s3.versioning.operations import put_bucket_versioning
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store import quotas
from sluice_s3.app.store.buckets import create_bucket

Handler = Callable[[Services, S3Request], Awaitable[Any]]


class Step(NamedTuple):
    """A setting: its name in the file, the handler that sets it, and the document."""

    name: str
    handler: Handler
    body: bytes


class Buckets:
    """The differences of all buckets."""

    def __init__(self, services: Services, document: Document, directory: Path, root_id: str) -> None:
        self._services = services
        self._document = document
        self._directory = directory
        self._root_id = root_id

    async def changes(self) -> AsyncIterator[Change]:
        """Yield the differences. Raises InitError."""
        for name, given in self._document.buckets.items():
            async for change in self._bucket(f"buckets.{name}", name, given):
                yield change

    async def _bucket(self, where: str, name: str, given: BucketIn) -> AsyncIterator[Change]:
        owner_id = self._root_id
        if given.account is not None:
            owner_id = account_id_of(given.account, self._document.accounts[given.account])
        row = await self._services.index.bucket(name)
        if row is None:
            row = self._new_row(where, name, owner_id, given)
            yield Change(where, MISSING, partial(self._create, row))
        elif row.owner_id != owner_id:
            raise InitError(f"{where}: this bucket belongs to another account")
        elif given.store not in (None, row.store):
            raise InitError(f"{where}.store: it lies on the store {row.store!r}; `sluice bucket move` moves it")
        planned = PlannedBucket(self._services.index, row)
        services = copy.copy(self._services)
        services.index = planned  # type: ignore[assignment]
        for step in _steps(given, row, self._directory):
            before = planned.row
            try:
                await _perform(services, before, step)
            except MalformedPolicy as error:
                # it may name a user that the file has, and `check` does not make
                if "Detail" not in error.extra or not self._document_has_identities:
                    raise _refused(f"{where}.{step.name}", error) from None
            except (S3Error, DomainError) as error:
                raise _refused(f"{where}.{step.name}", error) from None
            else:
                if is_same(before, planned.row):
                    continue
            yield Change(f"{where}.{step.name}", DIFFERS, partial(self._apply, name, step))

    @property
    def _document_has_identities(self) -> bool:
        return bool(self._document.users or self._document.accounts)

    def _new_row(self, where: str, name: str, owner_id: str, given: BucketIn) -> Bucket:
        """Return the row of a new bucket: private, as all new ones are."""
        services = self._services
        if given.store is not None and given.store not in services.store.all:
            raise InitError(f"{where}.store: there is no store {given.store!r} in the settings")
        store = services.store.of(given.store or services.store.name)
        plain_files = store.tree is not None
        settings = initial_settings(services.settings, plain_files=plain_files)
        versioning = UNVERSIONED if given.object_lock is None else ENABLED
        return Bucket(0, name, owner_id, services.region, 0, store.name, settings=settings, versioning=versioning)

    async def _create(self, row: Bucket) -> None:
        services = self._services
        most = services.settings.max_buckets
        fields = (row.name, row.owner_id, row.region, most, row.settings, row.versioning)
        await create_bucket(services.store.of(row.store), *fields, with_files=True)

    async def _apply(self, name: str, step: Step) -> None:
        row = await self._services.index.bucket(name)
        if row is None:
            raise InitError(f"buckets.{name}: it was deleted meanwhile")
        await _perform(self._services, row, step)


async def _perform(services: Services, row: Bucket, step: Step) -> None:
    request = S3Request()
    request.method, request.raw_path, request.raw_query, request.query = "PUT", b"/", b"", {}
    request.set_headers([], [])
    request.bucket, request.bucket_row, request.account_id = row.name, row, row.owner_id
    request.content_length, request.timings, request.memory = len(step.body), {}, services.memory
    request.whole_body = step.body
    await step.handler(services, request)


def _refused(where: str, error: S3Error | DomainError) -> InitError:
    answer = error if isinstance(error, S3Error) else to_s3_error(error)
    return InitError(f"{where}: {answer.code}: {answer.text}")


def _steps(given: BucketIn, row: Bucket, directory: Path) -> Iterator[Step]:
    """Yield the settings that the file has for a bucket; what others depend on comes first."""
    if given.versioning is not None:
        status = xml.element("Status", given.versioning)
        yield Step("versioning", put_bucket_versioning, xml.document("VersioningConfiguration", status))
    if given.object_lock is not None and (given.object_lock is not True or "object_lock" not in settings_of(row)):
        yield Step("object_lock", put_object_lock_configuration, _lock_xml(given.object_lock))
    if given.ownership is not None:
        rule = f"<Rule>{xml.element('ObjectOwnership', given.ownership)}</Rule>"
        yield Step("ownership", put_bucket_ownership_controls, xml.document("OwnershipControls", rule))
    if given.public_access_block is not None:
        yield Step("public_access_block", put_public_access_block, _block_xml(given.public_access_block))
    if given.encryption is not None:
        yield Step("encryption", put_bucket_encryption, _encryption_xml(given.encryption))
    if given.tags is not None:
        pairs = "".join(
            f"<Tag>{xml.element('Key', key)}{xml.element('Value', value)}</Tag>" for key, value in given.tags.items()
        )
        yield Step("tags", put_bucket_tagging, xml.document("Tagging", f"<TagSet>{pairs}</TagSet>"))
    if given.quota is not None:
        yield Step("quota", partial(_put_quota, given.quota), b"")
    if given.lifecycle is not None:
        yield Step("lifecycle", put_bucket_lifecycle_configuration, lifecycle_xml(given.lifecycle))
    if given.cors is not None:
        yield Step("cors", put_bucket_cors, cors_xml(given.cors))
    if given.policy is not None:
        yield Step("policy", put_bucket_policy, policy_text(given.policy, directory).encode())


async def _put_quota(quota: Quota, services: Services, request: S3Request) -> None:
    setting = quotas.to_setting(quotas.Quota(quota.bytes, quota.objects))
    await services.index.configure_bucket(request.bucket_row.id, quotas.SETTING, setting)


def _lock_xml(given: Retention | bool) -> bytes:
    rule = ""
    if isinstance(given, Retention):
        fields = "".join(xml.element(name, value) for name, value in given.model_dump(exclude_none=True).items())
        rule = f"<Rule><DefaultRetention>{fields}</DefaultRetention></Rule>"
    return xml.document("ObjectLockConfiguration", f"<ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}")


def _block_xml(given: Block | bool) -> bytes:
    block = dict.fromkeys(Block.model_fields, given) if isinstance(given, bool) else given.model_dump()
    fields = "".join(xml.element(name, json.dumps(value)) for name, value in block.items())
    return xml.document("PublicAccessBlockConfiguration", fields)


def _encryption_xml(given: Encryption | str) -> bytes:
    default = {"SSEAlgorithm": given} if isinstance(given, str) else given.model_dump(exclude_none=True)
    fields = "".join(xml.element(name, value) for name, value in default.items())
    by_default = f"<ApplyServerSideEncryptionByDefault>{fields}</ApplyServerSideEncryptionByDefault>"
    return xml.document("ServerSideEncryptionConfiguration", f"<Rule>{by_default}</Rule>")
