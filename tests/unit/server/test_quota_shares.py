"""What workers let into buckets, told to the others."""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.index.buckets.queries import Usage
from sluice_s3.app.server.shared_memory.quota_ledger import PROBES, SLOTS, QuotaLedger

NOTHING = Usage(0, 0)


def test_each_sees_the_others(tmp_path: Path) -> None:
    path = tmp_path / "quotas"
    launcher = QuotaLedger(path, 3, create=True)
    first, second = (QuotaLedger(path, 3, place) for place in (0, 2))
    first.report(7, Usage(1 << 40, 2), NOTHING)
    second.report(7, Usage(5, 1), NOTHING)
    assert first.find_peer_usage(7) == (Usage(5, 1), NOTHING)
    assert second.find_peer_usage(7) == (Usage(1 << 40, 2), NOTHING)
    assert second.find_peer_usage(8) == (NOTHING, NOTHING)
    first.report(7, Usage(-(1 << 40), -2), Usage(1 << 40, 2))
    assert second.find_peer_usage(7) == (NOTHING, Usage(1 << 40, 2))
    assert second.find_peer_usage(7 + SLOTS) == second.find_peer_usage(7), "what came counts for the whole slot"
    second.report(7, Usage(5, 1), NOTHING)
    launcher.clear(2)
    assert first.find_peer_usage(7) == (NOTHING, NOTHING)
    assert second.find_peer_usage(7) == (NOTHING, Usage(1 << 40, 2)), "what came, came"


def test_what_is_on_its_way_counts_for_its_bucket_alone(tmp_path: Path) -> None:
    QuotaLedger(tmp_path / "quotas", 2, create=True)
    first, second = (QuotaLedger(tmp_path / "quotas", 2, place) for place in (0, 1))
    last = SLOTS - 1
    same = [last + SLOTS * turn for turn in range(PROBES)]
    for more, bucket_id in enumerate(same, 1):
        first.report(bucket_id, Usage(more, 1), NOTHING)
    assert [second.find_peer_usage(one)[0] for one in same] == [Usage(more, 1) for more in range(1, PROBES + 1)]
    assert second.find_peer_usage(0)[0] == second.find_peer_usage(last + SLOTS * PROBES)[0] == NOTHING
    first.report(same[0], Usage(-1, -1), NOTHING)
    first.report(same[1], Usage(1 << 40, 0), NOTHING)
    assert [second.find_peer_usage(one)[0] for one in same[:3]] == [NOTHING, Usage(2 + (1 << 40), 1), Usage(3, 1)]


def test_without_a_free_cell_nothing_is_told_until_there_is_one(tmp_path: Path) -> None:
    QuotaLedger(tmp_path / "quotas", 2, create=True)
    first, second = (QuotaLedger(tmp_path / "quotas", 2, place) for place in (0, 1))
    *same, late = [7 + SLOTS * turn for turn in range(PROBES + 1)]
    for bucket_id in [*same, late]:
        first.report(bucket_id, Usage(5, 1), NOTHING)
    assert second.find_peer_usage(late)[0] == NOTHING
    for bucket_id in same:
        first.report(bucket_id, Usage(-5, -1), NOTHING)
    first.report(late, Usage(5, 1), NOTHING)
    assert second.find_peer_usage(late)[0] == Usage(10, 2)
    first.report(late, Usage(-10, -2), NOTHING)
    assert second.find_peer_usage(late)[0] == NOTHING


def test_the_next_process_of_a_place_begins_with_nothing(tmp_path: Path) -> None:
    launcher = QuotaLedger(tmp_path / "quotas", 2, create=True)
    first, dead = (QuotaLedger(tmp_path / "quotas", 2, place) for place in (0, 1))
    dead.report(7, Usage(100, 1), NOTHING)
    launcher.clear(1)
    assert first.find_peer_usage(7)[0] == NOTHING
    follower = QuotaLedger(tmp_path / "quotas", 2, 1)
    follower.report(7 + SLOTS, Usage(5, 1), NOTHING)
    follower.report(7, Usage(6, 1), NOTHING)
    assert (first.find_peer_usage(7 + SLOTS)[0], first.find_peer_usage(7)[0]) == (Usage(5, 1), Usage(6, 1))
