"""The transactions of the index, each declared once: what it locks, what it tells others, and whether it is audited.

Each is documented at its function. See `app.index.engine.declared`.
"""

from __future__ import annotations

from operator import attrgetter

from sluice_s3.app.index import transactions as tx
from sluice_s3.app.index.audit import states
from sluice_s3.app.index.buckets import queries as bucket_queries
from sluice_s3.app.index.engine import changes as events
from sluice_s3.app.index.engine.declared import (
    AuditedWrite,
    Engine,
    OwnWrite,
    Read,
    Scan,
    SettledRead,
    Write,
    always,
)
from sluice_s3.app.index.engine.lock_keys import (
    INTENT,
    SOURCE,
    adopted_lock,
    append_lock,
    complete_lock,
    copied_part_lock,
    discard_lock,
    discards_lock,
    entries_lock,
    expired_lock,
    global_lock,
    journals_lock,
    key_lock,
    no_lock,
    own_complete_lock,
    rename_lock,
    second_key_lock,
    upload_lock,
    uploads_lock,
    uses_lock,
    vanished_lock,
)
from sluice_s3.app.index.engine.procedures import delete_procedure, deletes_procedure, put_procedure
from sluice_s3.app.index.integrity import scrub, version_repair
from sluice_s3.app.index.journals import queries as journal_queries
from sluice_s3.app.index.lifecycle import queries as lifecycle_queries
from sluice_s3.app.index.objects import listing
from sluice_s3.app.index.reclaim import queries as reference_queries
from sluice_s3.app.index.relocation import queries as relocation_queries
from sluice_s3.app.index.restore import queries as restore_queries
from sluice_s3.app.index.versioning import listing as version_listing


class DeclaredTransactions(Engine):
    """An index by what can be read and changed in it."""

    identities = Read(tx.meta.identities)
    set_identity = Write(tx.meta.set_identity, locks=global_lock)

    # accounts and keys

    access_key = Read(tx.accounts.access_key)
    account = Read(tx.accounts.account)
    accounts = Read(tx.accounts.accounts, snapshot=True)
    add_account = AuditedWrite(
        tx.accounts.add_account, locks=global_lock, state=states.new_account, grows=True, invalidates=True
    )
    replace_keys = AuditedWrite(tx.accounts.replace_keys, locks=global_lock, state=states.new_account, invalidates=True)
    remove_account = AuditedWrite(
        tx.accounts.remove_account, locks=global_lock, state=states.account_of, invalidates=True
    )
    set_disabled = AuditedWrite(tx.accounts.set_disabled, locks=global_lock, state=states.account_of, invalidates=True)

    # users, groups, roles, policies and sessions

    identity = Read(tx.identities.identity)
    identity_of_id = Read(tx.identities.identity_of_id)
    identities_named = Read(tx.identities.named)
    identities_of = Read(tx.identities.page)
    count_identities = Read(tx.identities.count)
    add_identity = AuditedWrite(tx.identities.add, locks=global_lock, state=states.new_identity, invalidates=True)
    change_identity = AuditedWrite(
        tx.identities.change, locks=global_lock, state=states.identity, outcome=states.describe, invalidates=True
    )
    remove_identity = AuditedWrite(tx.identities.remove, locks=global_lock, state=states.identity, invalidates=True)
    join_group = AuditedWrite(tx.identities.join, locks=global_lock, state=states.membership, invalidates=True)
    leave_group = AuditedWrite(tx.identities.leave, locks=global_lock, state=states.membership, invalidates=True)
    members_of = Read(tx.identities.members)
    count_members = Read(tx.identities.count_members)
    groups_of = Read(tx.identities.groups_of)
    key_owner = Read(tx.identities.holder)
    keys_of = Read(tx.identities.keys_of)
    add_key = AuditedWrite(tx.identities.add_key, locks=global_lock, state=states.key, invalidates=True)
    set_key = AuditedWrite(tx.identities.set_key, locks=global_lock, state=states.key, invalidates=True)
    set_secret = AuditedWrite(tx.identities.set_secret, locks=global_lock, state=states.key, invalidates=True)
    remove_key = AuditedWrite(tx.identities.remove_key, locks=global_lock, state=states.key, invalidates=True)
    # no `invalidates`: caches hold existing keys only
    add_session = AuditedWrite(tx.identities.add_session, locks=no_lock)
    remove_session = AuditedWrite(tx.identities.remove_session, locks=global_lock, invalidates=True)

    # last uses of keys, and what accounts and users have

    record_uses = Write(tx.uses.record_uses, locks=uses_lock, grows=True)  # no cache holds uses
    last_use = Read(tx.uses.last_use)
    uses_since = Read(tx.uses.uses_since)
    uses_of_users = Read(tx.uses.uses_of_users, snapshot=True)
    accounts_page = Read(tx.uses.accounts_page, snapshot=True)
    account_summary = Read(tx.uses.account_summary, snapshot=True)
    idle_keys = Scan(tx.uses.idle_keys)

    # buckets

    bucket = Read(tx.buckets.bucket)
    buckets = Read(tx.buckets.buckets)
    create_bucket = AuditedWrite(
        tx.buckets.create_bucket, locks=global_lock, state=states.named_bucket, grows=True, invalidates=True
    )
    configure_bucket = AuditedWrite(
        tx.buckets.configure_bucket, locks=global_lock, state=states.bucket_setting, invalidates=True
    )
    configured_buckets = Read(bucket_queries.configured_buckets)
    set_versioning = AuditedWrite(
        tx.versioning.set_versioning, locks=global_lock, state=states.bucket_versioning, invalidates=True
    )
    set_object_lock = AuditedWrite(
        tx.object_lock.set_object_lock, locks=global_lock, state=states.bucket, invalidates=True
    )
    stores_in_use = Read(tx.buckets.stores_in_use)
    delete_bucket = AuditedWrite(tx.buckets.delete_bucket, locks=global_lock, state=states.bucket, invalidates=True)
    bucket_of = Scan(bucket_queries.bucket)
    bucket_size = Scan(relocation_queries.bucket_size)
    bucket_usage = Scan(bucket_queries.usage_of_bucket)
    bucket_totals = Scan(bucket_queries.totals_of_bucket)
    stored_bytes = Scan(bucket_queries.stored_bytes)

    # objects

    version = Read(tx.objects.version)
    current_marker = Read(tx.versioning.current_marker)
    list_versions = Read(version_listing.list_versions, snapshot=True)
    list_current = Read(listing.list_current, snapshot=listing.has_delimiter)
    put_version = Write(
        tx.objects.put_version, locks=key_lock, events=events.put, grows=True, procedure=put_procedure, brief=always
    )
    copy_version = Write(
        tx.objects.copy_version, locks=second_key_lock, discovers=SOURCE, events=events.copy, grows=True, brief=always
    )
    set_headers = Write(tx.objects.set_headers, locks=key_lock, events=events.set_headers, brief=always)
    delete_version = Write(
        tx.objects.delete_version, locks=key_lock, events=events.delete, procedure=delete_procedure, brief=always
    )
    delete_versions = Write(
        tx.objects.delete_versions,
        locks=entries_lock,
        events=events.deletes,
        procedure=deletes_procedure,
        brief=tx.objects.has_few_entries,
    )
    rename_object = Write(tx.renames.rename_object, locks=rename_lock, events=events.rename)
    forget_renames = Write(tx.renames.forget_renames, locks=global_lock)
    append = Write(tx.renames.append, locks=append_lock, events=events.append, grows=True)

    # multipart uploads

    create_upload = Write(tx.multipart.create_upload, locks=no_lock, grows=True)
    upload = Read(tx.multipart.upload)
    uploads = Read(tx.multipart.uploads, snapshot=True)
    put_part = Write(tx.multipart.put_part, locks=upload_lock, grows=True)
    copy_part = Write(tx.multipart.copy_part, locks=copied_part_lock, discovers=SOURCE, grows=True)
    parts = Read(tx.multipart.parts)
    complete_upload = Write(tx.multipart.complete_upload, locks=complete_lock, events=events.complete, grows=True)
    abort_upload = Write(tx.multipart.abort_upload, locks=upload_lock)
    pieces = Read(tx.multipart.pieces)
    object_part = Read(tx.multipart.object_part)
    object_parts = Read(tx.multipart.object_parts)

    # plain files (layout *tree*). While a key has a write intent, nothing else changes its row

    begin_tree_put = OwnWrite(tx.plain_files.start_put, locks=second_key_lock, grows=True)
    begin_tree_complete = OwnWrite(tx.plain_files.start_complete, locks=own_complete_lock, grows=True)
    begin_tree_delete = OwnWrite(tx.plain_files.start_delete, locks=second_key_lock)
    commit_intent = Write(tx.plain_files.commit_intent, locks=no_lock, discovers=INTENT)
    drop_intent = Write(tx.plain_files.abort_intent, locks=no_lock, discovers=INTENT)
    intent_on = Read(tx.plain_files.intent_for_key)
    intents_of = Read(tx.plain_files.intents_of)
    position = Read(tx.plain_files.position)
    adopt = Write(tx.plain_files.adopt_external_files, locks=adopted_lock, grows=True)
    forget_vanished = Write(tx.plain_files.remove_missing_files, locks=vanished_lock)
    current_after = Read(tx.plain_files.current_keys_after)
    buckets_on = Read(tx.plain_files.buckets_on)
    unhashed = SettledRead(tx.plain_files.pending_hashes, number=attrgetter("seq"))
    set_hashes = Write(tx.plain_files.set_hashes, locks=no_lock, discovers=SOURCE)
    forget_unhashed = Write(tx.plain_files.forget_unhashed, locks=no_lock)

    # lifecycle rules and archives

    lifecycle_buckets = Scan(lifecycle_queries.buckets)
    lifecycle_page = Scan(lifecycle_queries.scan_page, snapshot=True)
    expire = Write(tx.lifecycle.expire, locks=expired_lock, events=events.expire)
    expire_uploads = Write(tx.lifecycle.expire_uploads, locks=uploads_lock)
    reclass = Write(tx.transitions.transition_versions, locks=global_lock, events=events.reclass)
    ask_restore = Write(tx.restore.request_restore, locks=key_lock, events=events.set_headers)
    restores_due = Scan(restore_queries.due_restores)
    look_later = Write(tx.restore.reschedule_restore, locks=global_lock)

    # administrative changes: those of `AuditedWrite` add their event themselves

    add_audit_events = Write(tx.audit.add_audit_events, locks=no_lock)
    audit_events = Scan(tx.audit.audit_events)
    old_audit_events = Scan(tx.audit.old_audit_events)
    forget_audit_events = Write(tx.audit.forget_audit_events, locks=no_lock)

    # messages of changes, and lines of access logs

    configure_messages = AuditedWrite(
        tx.notifications.configure_messages, locks=global_lock, state=states.bucket_setting, invalidates=True
    )
    messages = Read(tx.notifications.messages)
    messages_without = Scan(tx.notifications.messages_without, snapshot=True)
    forget_messages = Write(tx.notifications.forget_messages, locks=no_lock)
    backlog = Read(tx.notifications.backlog)
    add_log_lines = Write(tx.logging.add_log_lines, locks=no_lock)
    waiting_logs = Read(tx.logging.waiting_logs)
    log_lines = Read(tx.logging.log_lines)
    forget_log_lines = Write(tx.logging.forget_log_lines, locks=no_lock)

    # writers and their id ranges

    _register_writer = Write(tx.writers.register, locks=no_lock)
    _retire_writer = OwnWrite(tx.writers.retire, locks=no_lock)
    _forget_writer = Write(tx.writers.forget_writer, locks=global_lock)
    reserve_ids = OwnWrite(tx.writers.reserve_ids, locks=no_lock)
    retire_range = Write(tx.writers.retire_range, locks=no_lock)
    writers = Read(tx.writers.writers)
    declare_dead = Write(tx.writers.declare_dead, locks=no_lock)
    ranges = Read(tx.writers.ranges)
    noted_writers = Read(tx.gateways.noted_writers, snapshot=True)

    # several gateways on one index

    _take_lease = OwnWrite(tx.cluster.take_lease, locks=global_lock)
    holds_lease = Read(tx.cluster.holds_lease)
    release_lease = Write(tx.cluster.release_lease, locks=global_lock)

    # discards

    discards = SettledRead(tx.discards.discards, number=attrgetter("id"))
    discard_backlog = Scan(reference_queries.discard_backlog)
    expand_discard = Write(tx.multipart.expand_discard, locks=discard_lock)
    quarantine_orphans = Write(tx.discards.quarantine_orphans, locks=global_lock)
    forget_discards = Write(tx.discards.forget_discards, locks=discards_lock)

    # packs and their compaction

    open_pack = OwnWrite(tx.packs.open_pack, locks=no_lock)
    seal_pack = Write(tx.packs.seal_pack, locks=no_lock)
    packs_of = Read(tx.packs.packs_of)
    packs = Scan(tx.packs.all_packs)
    refuse_blobs = Write(tx.packs.refuse_blobs, locks=no_lock)
    count_dead = Write(tx.packs.add_dead, locks=no_lock)
    correct_dead = Write(tx.packs.correct_dead, locks=global_lock)
    retire_pack = Write(tx.packs.retire_pack, locks=global_lock)
    forget_pack = Write(tx.packs.forget_pack, locks=global_lock)
    find_holders = Scan(tx.compaction.find_holders, snapshot=True)
    move_records = Write(tx.compaction.move_records, locks=global_lock)

    # fsck, the orphan sweeper and the scrubber

    find_referenced = Scan(reference_queries.referenced)
    find_references_in_packs = Scan(reference_queries.references_in_packs, snapshot=True)
    miscounted = Scan(reference_queries.wrong_refcounts)
    newest_wrong = Scan(version_repair.keys_with_wrong_current)
    mend_newest = Write(version_repair.repair_current, locks=global_lock)
    quarantine = Read(tx.quarantine.quarantine)
    add_quarantine = Write(tx.quarantine.add_quarantine, locks=global_lock, invalidates=True)
    remove_quarantine = Write(tx.quarantine.remove_quarantine, locks=global_lock, invalidates=True)
    live = Scan(scrub.scrub_page)
    holds = Read(tx.refcounts.holds_body)

    # moves of buckets to another store

    begin_move = AuditedWrite(
        tx.bucket_migration.start_bucket_move, locks=global_lock, state=states.named_bucket, invalidates=True
    )
    turn_back = AuditedWrite(
        tx.bucket_migration.turn_bucket_back, locks=global_lock, state=states.named_bucket, invalidates=True
    )
    end_move = Write(tx.bucket_migration.finish_bucket_move, locks=global_lock, invalidates=True)
    moving = Read(tx.bucket_migration.moving_buckets)
    snapshot_is_due = Read(tx.bucket_migration.snapshot_is_due, snapshot=True)
    ever_moved = Read(tx.bucket_migration.ever_moved)
    swap = Write(tx.bucket_migration.swap_references, locks=global_lock)
    split = Write(tx.bucket_migration.unshare_body, locks=global_lock)
    bodies = Scan(relocation_queries.bodies)
    find_piece_blobs = Scan(relocation_queries.pieces)
    find_part_blobs = Scan(relocation_queries.parts)
    any_on = Scan(relocation_queries.is_store_in_use)

    # journals (app/jobs/journals/writer.py), of each store for its own buckets

    watermark = Read(tx.journals.watermark)
    announced = Read(tx.journals.announced)
    announce = Write(tx.journals.announce, locks=journals_lock)
    open_journal = OwnWrite(tx.journals.open_journal, locks=no_lock)
    journals = Read(tx.journals.journals)
    advance_watermark = Write(tx.journals.advance_watermark, locks=journals_lock)
    set_journal = Write(tx.journals.set_journal, locks=journals_lock)
    forget_journals = Write(tx.journals.forget_journals, locks=journals_lock)
    changes = Scan(journal_queries.changes_since, snapshot=True)
    settings_rows = Scan(journal_queries.export_settings)
    upload_rows = Scan(journal_queries.uploads_of)
    upload_rows_after = Scan(journal_queries.uploads_after)
    piece_rows = Scan(journal_queries.pieces_of)
    versions_count = Scan(journal_queries.versions_count)
    journal_lag = Scan(journal_queries.journal_lag)

    # notes of jobs

    note = Read(tx.meta.note)
    notes = Read(tx.meta.notes)
    set_note = Write(tx.meta.set_note, locks=global_lock)
    change_note = AuditedWrite(tx.meta.change_note, locks=global_lock, state=states.json_note, invalidates=True)
    change_keyring = AuditedWrite(tx.journals.replace_keyring, locks=global_lock, invalidates=True)
