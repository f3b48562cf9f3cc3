"""Tickets for downloads, on a clock of the test's."""

from __future__ import annotations

from sluice_s3.app.admin.archives.archive import Selection
from sluice_s3.app.admin.archives.tickets import TICKET_SECONDS, Tickets

ALL = Selection((), ("",), "")


def test_the_progress_of_a_download_that_never_began_ends_with_its_ticket() -> None:
    now = 0.0
    tickets = Tickets(lambda: now)
    unused, used = (tickets.issue("ann", "pictures", ALL, "pictures.zip") for _ in range(2))
    assert tickets.redeem(used, "ann") is not None
    assert tickets.progress(unused, "ann") is not None
    now = TICKET_SECONDS + 1.0
    assert tickets.progress(unused, "ann") is None
    assert tickets.progress(used, "ann") is not None, "it may take longer than its ticket"
