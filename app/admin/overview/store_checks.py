"""What may need attention of a store, from what `app.admin.store_health` knows of it."""

from __future__ import annotations

from collections.abc import Iterator

from sluice_s3.app.admin.overview.models import Finding
from sluice_s3.app.admin.store_health.models import SpaceOut, StoreHealthOut

NEARLY_FULL_SHARE = 0.1
"""Free share of a file system below which it needs attention."""
FULL_SHARE = 0.03
BEHIND_SECONDS = 60.0
"""Seconds that a change may wait to be written down: journals are written once a second."""
CONDITIONS = {
    "down": (
        "{name} is out of service",
        "Requests for its buckets are answered with 503 until it answers. Look at the mount and at what it is made of.",
    ),
    "full": (
        "{name} is full and takes no writes",
        "Reads and deletes go on. Delete something, or give it more space; it takes writes again by itself.",
    ),
    "read-only": (
        "{name} is mounted read-only and takes no writes",
        "Kernels do that to a file system after an error. Look at its log, check it, and mount it again.",
    ),
    "failing": (
        "Writes to {name} fail",
        "Reads go on. The card of the store has the error of the last attempt.",
    ),
}


def check_store(store: StoreHealthOut, min_free: int) -> Iterator[Finding]:
    """Yield what needs attention. `min_free` is the store's limit in bytes.

    No text names a path or an error of the mount: who may see the overview may not see stores.
    """
    yield from _check_condition(store)
    if store.space.value is not None and store.breaker.condition != "full":
        yield from _check_space(store.name, store.space.value, min_free)
    yield from _check_scrub(store)
    yield from _check_journals(store)


def _check_condition(store: StoreHealthOut) -> Iterator[Finding]:
    breaker, link = store.breaker, f"stores?store={store.name}"
    if breaker.condition in CONDITIONS:
        title, advice = CONDITIONS[breaker.condition]
        seen = "" if breaker.processes == breaker.of else f" ({breaker.processes} of {breaker.of} processes)"
        yield Finding(
            kind=f"store-{breaker.condition}",
            severity="error",
            subject=store.name,
            title=title.format(name=store.name) + seen,
            advice=advice,
            command="sluice status" if breaker.condition in ("down", "failing") else None,
            link=link,
            since=breaker.since,
        )
    elif (since := store.latency.silent_since or store.space.silent_since) is not None:
        title = f"{store.name} does not answer"
        advice = "If it goes on, the store is taken out of service. Look at the mount."
        yield Finding(
            kind="store-silent",
            severity="warning",
            subject=store.name,
            title=title,
            advice=advice,
            link=link,
            since=since,
        )


def _check_space(name: str, space: SpaceOut, min_free: int) -> Iterator[Finding]:
    share = 1.0
    if space.total and space.free is not None:
        share = max(space.free - min_free, 0) / space.total
    what = "space"
    if space.inodes and space.free_inodes is not None and space.free_inodes / space.inodes < share:
        share, what = space.free_inodes / space.inodes, "inodes"
    if share < NEARLY_FULL_SHARE:
        yield Finding(
            kind="store-space",
            severity="error" if share < FULL_SHARE else "warning",
            subject=name,
            title=f"{name} has {share:.1%} of its {what} left",
            advice="Delete what is not needed, move a bucket to another store, or give it more space.",
            command="sluice bucket move BUCKET STORE",
            link=f"stores?store={name}",
        )


def _check_scrub(store: StoreHealthOut) -> Iterator[Finding]:
    scrub = store.scrub.value
    if scrub is None or not scrub.damaged:
        return
    objects = "A stored body is" if scrub.damaged == 1 else f"{scrub.damaged} stored bodies are"
    yield Finding(
        kind="damage",
        severity="error",
        subject=store.name,
        title=f"{objects} damaged on {store.name}",
        advice="Reading them answers 503. Find out which objects they are, restore them from a backup.",
        command="sluice scrub",
        link=f"stores?store={store.name}",
        since=min((one.found for one in scrub.findings), default=None),
    )


def _check_journals(store: StoreHealthOut) -> Iterator[Finding]:
    journals = store.journals.value
    if journals is None:
        return
    if journals.failing is not None:
        title = f"The journals of {store.name} cannot be written: it takes no changes"
        advice = "A lost index could not be rebuilt from the data. Make space on the store, or look at its mount."
        yield _journal_finding(store.name, title, advice, "error")
    elif journals.behind_seconds > BEHIND_SECONDS:
        title = f"The journals of {store.name} are {journals.behind_seconds:.0f} seconds behind"
        advice = f"If the index were lost now, so would be {journals.behind_changes} changes. The log has the reason."
        yield _journal_finding(store.name, title, advice, "warning")


def _journal_finding(store: str, title: str, advice: str, severity: str) -> Finding:
    return Finding.model_validate(
        {
            "kind": "journals",
            "severity": severity,
            "subject": store,
            "title": title,
            "advice": advice,
            "link": f"stores?store={store}",
        }
    )
