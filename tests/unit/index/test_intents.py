"""Plain files: intents lock keys, and what others did to files comes in only when nothing else happened meanwhile."""

from __future__ import annotations

import orjson
import pytest

from sluice_s3.app.errors import (
    BucketNotEmpty,
    InvalidPart,
    KeyBusy,
    NoSuchBucket,
    NoSuchKey,
    NoSuchUpload,
    PreconditionFailed,
    SourceGone,
    WriterDead,
)
from sluice_s3.app.index.buckets import transactions as buckets
from sluice_s3.app.index.multipart import transactions as multipart
from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion, Version
from sluice_s3.app.index.plain_files import transactions as plain_files
from sluice_s3.app.index.plain_files.rows import (
    ExternalFile,
    Intent,
    is_plain_file,
    tree_upload,
    with_upload,
    without_upload,
)
from tests.unit.index.tools import OWNER, Memory, new, part

ME = 7
FIRST, SECOND = "t:4.10.1:bucket/key", "t:5.20.2:bucket/key"
CREATE = Conditions(if_none_match=True)


@pytest.fixture
def bucket_id(memory: Memory) -> int:
    return memory.run(buckets.create_bucket("bucket", OWNER, "r", 10, "default")).id


def begin(memory: Memory, bucket_id: int, body: str = FIRST, conditions: Conditions | None = None) -> Intent:
    return memory.run(plain_files.start_put(ME, bucket_id, "key", 100, new(body), conditions))


def current(memory: Memory, bucket_id: int, key: str = "key") -> Version | None:
    return memory.run(objects.version(bucket_id, key, None))


def put(memory: Memory, bucket_id: int, body: str = FIRST) -> CommitResult:
    made = memory.run(plain_files.commit_intent(begin(memory, bucket_id, body).id))
    assert made is not None
    return made


def found(body: str, seen: int, key: str = "key", modified: int = 1000) -> ExternalFile:
    return ExternalFile(key, seen, 4, "0" * 32 + "-1", "{}", body, modified)


@pytest.mark.parametrize(
    ("body", "tree"),
    [
        ("t:1.2.3:bucket/key", True),
        ("slow/t:1.2.3:bucket/key", True),
        ("t:1.2.3+ff:bucket/t:/key", True),
        ("f:00000000000000a1", False),
        ("slow/f:00000000000000a1", False),
        ("p:1.2.3.4", False),
        ("pieces:12", False),
        ("", False),
    ],
)
def test_which_bodies_are_plain_files(body: str, tree: bool) -> None:
    assert is_plain_file(body) is tree


@pytest.mark.parametrize("name", ["", "slow/"])
@pytest.mark.parametrize("path", ["bucket/key", "bucket/t:1+2:3"])
def test_a_body_tells_the_upload_that_made_it(name: str, path: str) -> None:
    locator = f"{name}t:1.2.3:{path}"
    body = with_upload(locator, 255)
    assert tree_upload(body) == 255
    assert tree_upload(locator) == 0
    assert without_upload(body) == without_upload(locator) == locator


def test_an_intent_shows_nothing_and_locks_the_key(memory: Memory, bucket_id: int) -> None:
    intent = begin(memory, bucket_id)
    assert current(memory, bucket_id) is None
    with pytest.raises(KeyBusy):
        begin(memory, bucket_id, SECOND)
    with pytest.raises(KeyBusy):
        memory.run(plain_files.start_delete(ME, bucket_id, "key", None, None))
    assert memory.run(plain_files.intent_for_key(bucket_id, "key")) == intent
    assert memory.run(plain_files.intents_of(ME)) == [intent]
    assert memory.run(plain_files.intents_of(ME + 1)) == []
    made = memory.run(plain_files.commit_intent(intent.id))
    row = current(memory, bucket_id)
    assert row is not None
    assert made is not None
    assert (row.seq, row.body) == (made.seq, FIRST)
    assert memory.run(plain_files.intent_for_key(bucket_id, "key")) is None


def test_it_is_committed_once(memory: Memory, bucket_id: int) -> None:
    intent = begin(memory, bucket_id)
    assert memory.run(plain_files.commit_intent(intent.id)) is not None
    assert memory.run(plain_files.commit_intent(intent.id)) is None


def test_one_that_is_dropped_changes_nothing(memory: Memory, bucket_id: int) -> None:
    made = put(memory, bucket_id)
    memory.run(plain_files.abort_intent(begin(memory, bucket_id, SECOND).id))
    row = current(memory, bucket_id)
    assert row is not None
    assert (row.seq, row.body) == (made.seq, FIRST)
    put(memory, bucket_id, SECOND)


def test_conditions_are_decided_when_the_key_is_locked(memory: Memory, bucket_id: int) -> None:
    put(memory, bucket_id)
    with pytest.raises(PreconditionFailed):
        begin(memory, bucket_id, SECOND, CREATE)
    with pytest.raises(NoSuchKey):
        memory.run(plain_files.start_put(ME, bucket_id, "none", 1, new(FIRST), Conditions(if_match="e1")))
    with pytest.raises(PreconditionFailed):
        memory.run(plain_files.start_delete(ME, bucket_id, "key", None, Conditions(if_match="other")))
    assert memory.run(plain_files.intents_of(ME)) == []


def test_replacing_a_plain_file_queues_nothing(memory: Memory, bucket_id: int) -> None:
    first = put(memory, bucket_id)
    second = put(memory, bucket_id, SECOND)
    assert second.seq > first.seq
    assert second.modified > first.modified
    assert memory.rows("SELECT * FROM discards") == []


def test_a_blob_in_its_place_is_discarded(memory: Memory, bucket_id: int) -> None:
    memory.run(objects.put_version(bucket_id, "key", new("f:1"), None))
    put(memory, bucket_id)
    assert memory.rows("SELECT body FROM discards") == [("f:1",)]


def test_no_two_rows_hold_a_plain_file(memory: Memory, bucket_id: int) -> None:
    made = put(memory, bucket_id)
    with pytest.raises(SourceGone):
        memory.run(objects.copy_version(made.seq, bucket_id, "copy", new(), None))
    upload = memory.run(multipart.create_upload(bucket_id, "key", "{}", "STANDARD", "", "", OWNER))
    with pytest.raises(SourceGone):
        memory.run(multipart.copy_part(made.seq, upload, part(1, FIRST)))


def test_delete(memory: Memory, bucket_id: int) -> None:
    made = put(memory, bucket_id)
    intent = memory.run(plain_files.start_delete(ME, bucket_id, "key", None, None))
    assert intent is not None
    assert intent.body == FIRST
    assert current(memory, bucket_id) is not None
    assert memory.run(plain_files.commit_intent(intent.id)) == made
    assert current(memory, bucket_id) is None
    assert memory.rows("SELECT kind, key FROM removals") == [("object", "key")]
    assert memory.run(plain_files.start_delete(ME, bucket_id, "key", None, None)) is None


def test_deleting_a_version_that_is_not_there(memory: Memory, bucket_id: int) -> None:
    put(memory, bucket_id)
    assert memory.run(plain_files.start_delete(ME, bucket_id, "key", "other", None)) is None
    assert memory.run(plain_files.start_delete(ME, bucket_id, "key", "null", None)) is not None


def test_a_bucket_with_an_intent_is_not_empty(memory: Memory, bucket_id: int) -> None:
    intent = begin(memory, bucket_id)
    with pytest.raises(BucketNotEmpty):
        memory.run(buckets.delete_bucket(bucket_id))
    memory.run(plain_files.abort_intent(intent.id))
    memory.run(buckets.delete_bucket(bucket_id))
    with pytest.raises(NoSuchBucket):
        begin(memory, bucket_id)
    with pytest.raises(NoSuchBucket):
        memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, []))


def test_nobody_without_an_incarnation_begins(memory: Memory, bucket_id: int) -> None:
    with pytest.raises(WriterDead):
        memory.run(plain_files.start_put(0, bucket_id, "key", 1, new(FIRST), None))


# multipart


@pytest.fixture
def upload(memory: Memory, bucket_id: int) -> Upload:
    made = memory.run(multipart.create_upload(bucket_id, "key", "{}", "STANDARD", "CRC32", "COMPOSITE", OWNER))
    memory.run(multipart.put_part(made, part(1, "f:1")))
    memory.run(multipart.put_part(made, part(3, "f:3", "f:4")))
    memory.run(multipart.put_part(made, part(4, "f:5")))
    return made


def begin_complete(memory: Memory, upload: Upload) -> Intent:
    chosen = memory.run(multipart.parts(upload, 0, 10))[:2]
    described: NewVersion = new(FIRST, parts=2, size=15)
    made = memory.run(plain_files.start_complete(ME, upload, chosen, 100, described, None))
    assert isinstance(made, Intent)
    return made


def test_complete(memory: Memory, bucket_id: int, upload: Upload) -> None:
    intent = begin_complete(memory, upload)
    made = memory.run(plain_files.commit_intent(intent.id))
    row = current(memory, bucket_id)
    assert made is not None
    assert row is not None
    assert row.body == with_upload(FIRST, upload.id)
    assert [tuple(shown) for shown in memory.run(multipart.object_parts(row.body, 0, 10))] == [
        (1, 0, 5, "sum1"),
        (3, 5, 10, "sum3"),
    ]
    # the bytes of all parts were copied or not wanted
    assert memory.rows("SELECT body FROM discards") == [("f:1",), ("f:3",), ("f:4",), ("f:5",)]
    again = memory.run(plain_files.start_complete(ME, upload, [], 101, new(SECOND), None))
    assert again == made


def test_what_tells_of_parts_goes_with_the_file(memory: Memory, bucket_id: int, upload: Upload) -> None:
    memory.run(plain_files.commit_intent(begin_complete(memory, upload).id))
    memory.run(
        plain_files.adopt_external_files(bucket_id, OWNER, 1 << 40, [found(SECOND, current(memory, bucket_id).seq)])
    )  # type: ignore[union-attr]
    assert memory.rows("SELECT body FROM discards")[-1] == (f"pieces:{upload.id}",)


def test_complete_wants_the_parts_that_were_copied(memory: Memory, upload: Upload) -> None:
    chosen = memory.run(multipart.parts(upload, 0, 10))
    memory.run(multipart.put_part(upload, part(1, "f:9", etag="changed")))
    with pytest.raises(InvalidPart):
        memory.run(plain_files.start_complete(ME, upload, chosen, 100, new(FIRST), None))
    memory.run(multipart.abort_upload(upload))
    with pytest.raises(NoSuchUpload):
        memory.run(plain_files.start_complete(ME, upload, chosen, 100, new(FIRST), None))


def test_an_upload_aborted_while_its_file_was_renamed(memory: Memory, bucket_id: int, upload: Upload) -> None:
    intent = begin_complete(memory, upload)
    memory.run(multipart.abort_upload(upload))
    memory.run(plain_files.commit_intent(intent.id))
    row = current(memory, bucket_id)
    assert row is not None
    assert row.etag == "e1"
    assert memory.rows("SELECT body FROM discards") == [(f"pieces:{upload.id}",)]


# what others did


def test_a_file_that_others_made(memory: Memory, bucket_id: int) -> None:
    seq, none = memory.run(
        plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(FIRST, 0), found("t:1.1.1:bucket/b", 9, "b")])
    )
    row = current(memory, bucket_id)
    assert row is not None
    assert none == 0
    assert (row.seq, row.modified, row.body, row.etag) == (seq, 1000, FIRST, "0" * 32 + "-1")
    assert [waiting.seq for waiting in memory.run(plain_files.pending_hashes(0, 10))] == [seq]


def test_a_look_that_is_out_of_date_changes_nothing(memory: Memory, bucket_id: int) -> None:
    position = memory.run(plain_files.position())
    made = put(memory, bucket_id)
    assert memory.run(plain_files.adopt_external_files(bucket_id, OWNER, position, [found(SECOND, 0)])) == [0]
    assert memory.run(plain_files.adopt_external_files(bucket_id, OWNER, position, [found(SECOND, made.seq - 1)])) == [
        0
    ]
    intent = begin(memory, bucket_id, SECOND)
    assert memory.run(plain_files.adopt_external_files(bucket_id, OWNER, position, [found(SECOND, made.seq)])) == [0]
    assert memory.run(plain_files.remove_missing_files(bucket_id, [("key", made.seq)])) == [False]
    memory.run(plain_files.abort_intent(intent.id))
    assert memory.run(plain_files.adopt_external_files(bucket_id, OWNER, position, [found(SECOND, made.seq)])) != [0]
    assert memory.run(plain_files.remove_missing_files(bucket_id, [("key", made.seq)])) == [False]


def test_what_was_deleted_after_the_look_does_not_come_back(memory: Memory, bucket_id: int) -> None:
    put(memory, bucket_id)
    position = memory.run(plain_files.position())
    intent = memory.run(plain_files.start_delete(ME, bucket_id, "key", None, None))
    assert intent is not None
    memory.run(plain_files.commit_intent(intent.id))
    assert memory.run(plain_files.adopt_external_files(bucket_id, OWNER, position, [found(FIRST, 0)])) == [0]
    assert memory.run(
        plain_files.adopt_external_files(bucket_id, OWNER, memory.run(plain_files.position()), [found(FIRST, 0)])
    ) != [0]


def test_time_goes_on_whatever_the_file_says(memory: Memory, bucket_id: int) -> None:
    made = put(memory, bucket_id)
    memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(SECOND, made.seq, modified=1)]))
    row = current(memory, bucket_id)
    assert row is not None
    assert row.modified == made.modified + 1
    memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(FIRST, 0, "future", 1 << 50)]))
    later = current(memory, bucket_id, "future")
    assert later is not None
    assert later.modified < 1 << 50


def test_a_file_that_others_took_away(memory: Memory, bucket_id: int) -> None:
    made = put(memory, bucket_id)
    assert memory.run(plain_files.remove_missing_files(bucket_id, [("key", made.seq), ("none", 5)])) == [True, False]
    assert current(memory, bucket_id) is None
    assert memory.rows("SELECT kind, key FROM removals") == [("object", "key")]


def test_hashes_come_later(memory: Memory, bucket_id: int) -> None:
    (seq,) = memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(FIRST, 0)]))
    assert memory.run(plain_files.set_hashes(seq, FIRST, "f" * 32, "CRC64NVME", "AAAAAAAAAAA="))
    row = current(memory, bucket_id)
    assert row is not None
    assert (row.etag, row.checksum_type, row.modified) == ("f" * 32, "FULL_OBJECT", 1000)
    assert row.seq > seq  # so that it is written down beside the data
    assert memory.run(plain_files.pending_hashes(0, 10)) == []
    assert not memory.run(plain_files.set_hashes(seq, FIRST, "e" * 32, "", ""))


def test_what_got_tags_meanwhile_still_gets_its_hashes(memory: Memory, bucket_id: int) -> None:
    (seq,) = memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(FIRST, 0)]))
    memory.run(objects.set_headers(bucket_id, "key", seq, '{"tags":{"a":"b"}}'))
    (waiting,) = memory.run(plain_files.pending_hashes(0, 10))
    assert waiting.seq > seq
    assert not memory.run(plain_files.set_hashes(seq, FIRST, "e" * 32, "", ""))
    assert memory.run(plain_files.set_hashes(waiting.seq, FIRST, "f" * 32, "CRC64NVME", "AAAAAAAAAAA="))
    row = current(memory, bucket_id)
    assert row is not None
    assert (row.etag, row.headers) == ("f" * 32, '{"tags":{"a":"b"}}')
    assert memory.run(plain_files.pending_hashes(0, 10)) == []


def test_what_was_replaced_needs_no_hashes(memory: Memory, bucket_id: int) -> None:
    (seq,) = memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(FIRST, 0)]))
    put(memory, bucket_id, SECOND)
    assert [(waiting.seq, waiting.bucket_id) for waiting in memory.run(plain_files.pending_hashes(0, 10))] == [(seq, 0)]
    assert not memory.run(plain_files.set_hashes(seq, FIRST, "e" * 32, "", ""))
    row = current(memory, bucket_id)
    assert row is not None
    assert row.etag == "e1"
    memory.run(plain_files.adopt_external_files(bucket_id, OWNER, 0, [found(FIRST, row.seq)]))
    memory.run(plain_files.forget_unhashed([waiting.seq for waiting in memory.run(plain_files.pending_hashes(0, 10))]))
    assert memory.run(plain_files.pending_hashes(0, 10)) == []


def test_current_objects_behind_a_key(memory: Memory, bucket_id: int) -> None:
    made = put(memory, bucket_id)
    assert memory.run(plain_files.current_keys_after(bucket_id, "", 10)) == [("key", made.seq, FIRST)]
    assert memory.run(plain_files.current_keys_after(bucket_id, "key", 10)) == []


def test_an_intent_tells_all_that_is_needed_to_end_it(memory: Memory, bucket_id: int) -> None:
    intent = begin(memory, bucket_id)
    assert (intent.kind, intent.body, intent.blob_id, intent.incarnation) == ("put", FIRST, 100, ME)
    assert NewVersion(*orjson.loads(intent.new)) == new(FIRST)


def test_buckets_of_a_store(memory: Memory, bucket_id: int) -> None:
    other = memory.run(buckets.create_bucket("other", OWNER, "r", 10, "slow"))
    assert [row.id for row in memory.run(plain_files.buckets_on("default"))] == [bucket_id]
    assert memory.run(plain_files.buckets_on("slow")) == [other]
