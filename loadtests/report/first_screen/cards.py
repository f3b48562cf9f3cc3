"""One card a store: what it is, and what the probe measured there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Card, Cards
from sluice_s3.loadtests.report.units import decimal, significant
from sluice_s3.loadtests.report.verdict import TOGETHER

CALLS = ("create", "write", "fsync", "read")
"""Calls of the probe that a card shows."""
UNLIMITED_BYTES = 1 << 60
"""What a file system over a bucket reports as its size, or more."""


def cards(report: Report) -> Cards:
    """Return the cards of the stores, in the order of the run."""
    known = {one["name"]: one for one in report.model.meta["targets"]}
    return Cards([_card(report, known[name], report.model.targets.index(name)) for name in report.model.stores])


def _card(report: Report, target: Mapping[str, Any], index: int) -> Card:
    plan = report.model.meta["plan"]
    lines = [("error", str(target["error"]))] if target.get("error") else []
    if target["kind"] == "endpoint":
        lines.append(("endpoint", f"{target['url']} (not started by this run)"))
    else:
        lines += [("mount", _mount(target)), ("device", _device(target))]
        lines.append(("durable", _durability(target, str(plan["durability"]))))
        lines += [("index", _index(target, str(plan.get("directory") or "")))] if target["kind"] == "gateway" else []
        lines += [("probe", _probe(target)), ("space", _space(target))]
    shown = [(name, words) for name, words in lines if words]
    uses = [one for one in report.verdict.judgements if one.use is not TOGETHER]
    won = sum(target["name"] in one.winners for one in uses)
    words = f"best in {won} of {len(uses)} uses" if won else ""
    return Card(str(target["name"]), index, shown, words)


def _mount(target: Mapping[str, Any]) -> str:
    mount = target.get("mount") or {}
    costs = " ".join(word for word in (target.get("profile"), target.get("personality")) if word and word != "none")
    kind = str(mount.get("kind") or "")
    where = str(target["path"] or {"local": "temporary directory"}.get(target.get("store", ""), "temporary mount"))
    made = f", costs of {costs}" if costs else ""
    slower = target.get("slower", 1.0)
    made += f", each call {slower:g} times as long" if slower != 1 else ""
    return f"{kind + ', ' if kind else ''}{where}{made}"


def _device(target: Mapping[str, Any]) -> str:
    mount = target.get("mount") or {}
    if mount.get("source", "").startswith("/dev/") or target["store"] == "path":
        return f"{mount.get('source', '')} on {mount.get('point', '')}" if mount else ""
    return "none: a FUSE process" if mount else ""


def _durability(target: Mapping[str, Any], durability: str) -> str:
    if target["kind"] == "direct":
        return "plain files, each synced" if target["synced"] else "plain files, not synced"
    return f"{durability}, {target['driver']} driver" if target.get("driver") else durability


def _index(target: Mapping[str, Any], directory: str) -> str:
    mount = target.get("mount") or {}
    if target.get("driver") == mount.get("driver", "local") == "local":
        return "SQLite, on the store"
    return f"SQLite, in {directory}" if directory else "SQLite, apart from it"


def _probe(target: Mapping[str, Any]) -> str:
    found = (target.get("probe") or {}).get("latencies_ms") or {}
    times = [f"{call} {significant(found[call]['median'], 2)}" for call in CALLS if call in found]
    return f"{', '.join(times)} ms" if times else ""


def _space(target: Mapping[str, Any]) -> str:
    space = target.get("space") or {}
    if space.get("total", 0) >= UNLIMITED_BYTES:
        return "not limited"
    return f"{decimal(space['free'])} free of {decimal(space['total'])}" if space.get("total") else ""
