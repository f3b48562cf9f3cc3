"""The statements of the hot path use the index that was made for them, and no other."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import sluice_s3.app.index
from sluice_s3.app.index.sql.transaction import Statement
from tests.unit.index.tools import Memory


def _statements() -> Iterator[tuple[str, Statement]]:
    for found in pkgutil.walk_packages(sluice_s3.app.index.__path__, "sluice_s3.app.index."):
        if found.name.endswith(".statements"):
            for name, value in vars(importlib.import_module(found.name)).items():
                if isinstance(value, Statement):
                    yield name, value


ALL = dict(_statements())

PLANS = {
    "VERSION": ["SEARCH versions USING INDEX versions_current (bucket_id=? AND key=?)"],
    "LIST_CURRENT": ["SEARCH versions USING COVERING INDEX versions_current (bucket_id=? AND key>? AND key<?)"],
    "LIST_CURRENT_WITH_HEADERS": ["SEARCH versions USING INDEX versions_current (bucket_id=? AND key>? AND key<?)"],
    "CURRENT_FOR_WRITE": [
        "SEARCH buckets USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH versions USING INDEX versions_current (bucket_id=? AND key=?) LEFT-JOIN",
    ],
    "REPLACE_VERSION": ["SEARCH versions USING INTEGER PRIMARY KEY (rowid=?)"],
    "REMOVE_VERSION": ["SEARCH versions USING INTEGER PRIMARY KEY (rowid=?)"],
    "DROP_REFERENCE": ["SEARCH shared USING PRIMARY KEY (body=?)"],
    "ACCESS_KEY": [
        "SEARCH access_keys USING PRIMARY KEY (access_key=?)",
        "SEARCH accounts USING PRIMARY KEY (id=?)",
    ],
    "SESSION": ["SEARCH sessions USING PRIMARY KEY (access_key=?)", "SEARCH accounts USING PRIMARY KEY (id=?)"],
    "IDENTITY_BY_ID": ["SEARCH identities USING PRIMARY KEY (id=?)"],
    "IDENTITY_BY_NAME": ["SEARCH identities USING INDEX identities_name (kind=? AND folded=? AND account_id=?)"],
    "IDENTITIES_NAMED": ["SEARCH identities USING INDEX identities_name (kind=? AND folded=?)"],
    "IDENTITIES_PAGE": ["SEARCH identities USING INDEX identities_account (account_id=? AND kind=? AND folded>?)"],
    "REMOVE_OLD_SESSIONS": ["SEARCH sessions USING INDEX sessions_expires (expires<?)"],
    "BUCKET": ["SEARCH buckets USING INDEX buckets_name (name=?)"],
    "BUCKETS": ["SEARCH buckets USING INDEX buckets_owner (owner_id=? AND name>? AND name<?)"],
    "COUNT_BUCKETS": ["SEARCH buckets USING COVERING INDEX buckets_owner (owner_id=?)"],
    "ANY_CURRENT": ["SEARCH versions USING COVERING INDEX versions_current (bucket_id=?)"],
    "ANY_OTHER": ["SEARCH versions USING COVERING INDEX versions_others (bucket_id=?)"],
    "OTHER_VERSION": ["SEARCH versions USING INDEX versions_others (bucket_id=? AND key=? AND modified=?)"],
    "OTHER_OF": ["SEARCH versions USING INDEX versions_others (bucket_id=? AND key=? AND modified=?)"],
    "NULL_OF": ["SEARCH versions USING INDEX versions_null (bucket_id=? AND key=?)"],
    "NULL_VERSION_OF": ["SEARCH versions USING INDEX versions_null (bucket_id=? AND key=?)"],
    "NEWEST_OTHER": ["SEARCH versions USING INDEX versions_others (bucket_id=? AND key=?)"],
    "LIST_OTHERS": ["SEARCH versions USING INDEX versions_others (bucket_id=? AND key>? AND key<?)"],
    "LIST_OTHERS_OF_KEY": ["SEARCH versions USING INDEX versions_others (bucket_id=? AND key=? AND modified<?)"],
    "LIST_CURRENT_VERSIONS": ["SEARCH versions USING INDEX versions_current (bucket_id=? AND key>? AND key<?)"],
    "CURRENT_FOR_DELETE": [
        "SEARCH buckets USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH versions USING INDEX versions_current (bucket_id=? AND key=?) LEFT-JOIN",
        "CORRELATED SCALAR SUBQUERY 1",
        "SEARCH shared USING PRIMARY KEY (body=?)",
    ],
    "MESSAGES": ["SEARCH outbox USING INDEX outbox_target (target=? AND id>?)"],
    "UPLOADS": ["SEARCH uploads USING INDEX uploads_open (bucket_id=? AND key>? AND key<?)"],
    "OPEN_UPLOADS": ["SEARCH uploads USING COVERING INDEX uploads_open (bucket_id=?)"],
    "PARTS": ["SEARCH parts USING PRIMARY KEY (upload=? AND number>?)"],
    "OBJECT_PARTS": ["SEARCH pieces USING INDEX pieces_part (upload=? AND part_number>?)"],
}


FOR_PEOPLE = {
    "ACCOUNTS",
    "ACCESS_KEYS",
    "STORES_IN_USE",
    "KEYS_OF",
    "GROUPS_OF",
    "POLICIES_OF_KEY",
    "MEMBERS_OF",
    "WAITING_BUCKETS",
}
"""Few rows each, or not for requests."""


@pytest.mark.parametrize("name", PLANS)
def test_plan(memory: Memory, name: str) -> None:
    statement = ALL[name]
    rows = memory.connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", ["1"] * len(statement.names)).fetchall()
    assert [row[3] for row in rows] == PLANS[name]


@pytest.mark.parametrize("name", ALL)
def test_no_statement_sorts_or_reads_a_whole_large_table(memory: Memory, name: str) -> None:
    statement = ALL[name]
    if statement.sql.startswith("INSERT"):
        return
    plan = memory.connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", ["1"] * len(statement.names)).fetchall()
    for *_, step in plan:
        for table in ("versions", "parts", "pieces", "uploads", "shared", "discards"):
            assert not step.startswith(f"SCAN {table}"), step
        if name not in FOR_PEOPLE:
            assert "TEMP B-TREE" not in step, step


def test_a_number_that_is_no_literal_would_not_use_a_partial_index() -> None:
    assert "versions.state = 1" in ALL["VERSION"].sql
    assert "uploads.completed_seq = 0" in ALL["UPLOADS"].sql
