"""Applies an init file to an index, or says how they differ."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.access.root_credentials import root_account_id
from sluice_s3.app.index.engine.audit_trail import AuditTrail, audited
from sluice_s3.app.index.journals.rows import ROOT_NOTE
from sluice_s3.app.init_file.buckets import Buckets
from sluice_s3.app.init_file.changes import Change, InitError, apply_all, compare
from sluice_s3.app.init_file.document import Document
from sluice_s3.app.init_file.identities import Identities
from sluice_s3.app.s3.services import Services
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.init")


async def apply_document(settings: Settings, store: Store, document: Document, path: Path) -> list[Change]:
    """Make what the file says that is not there, and return the changes.

    Each change is one transaction, so that it can be repeated after a crash. Raises InitError.
    """
    trail = AuditTrail("command", "sluice:ApplyInitFile", path.name, principal="init-file")
    with audited(trail):
        made = await apply_all(await _changes(settings, store, document, path))
    for change in made:
        logger.info("%s %s: applied", change.where, change.what)
    return made


async def compare_document(settings: Settings, store: Store, document: Document, path: Path) -> list[Change]:
    """Return how the index differs from the file. Raises InitError."""
    return await compare(await _changes(settings, store, document, path))


async def _changes(settings: Settings, store: Store, document: Document, path: Path) -> AsyncIterator[Change]:
    root_uuid = await store.index.note(ROOT_NOTE)
    if not root_uuid:
        raise InitError("there is no first account yet: start the server once")
    root_id = root_account_id(root_uuid)
    services = Services(settings, store, LookupCache(store.index), BodyMemoryBudget(settings.max_body_memory))
    identities = Identities(store.index, document, path.parent, root_id)
    buckets = Buckets(services, document, path.parent, root_id)

    async def both() -> AsyncIterator[Change]:
        async for change in identities.changes():
            yield change
        async for change in buckets.changes():
            yield change

    return both()
