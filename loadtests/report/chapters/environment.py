"""What the run was measured on and with."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sluice_s3.loadtests.compare import outlook
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Remark, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.units import decimal, significant


def chapters(model: Model) -> list[Chapter]:
    """Return the machine with versions and targets, what the probe found, and the cells."""
    meta = model.meta
    machine, versions = meta["machine"], meta["versions"]
    facts = {
        "command": shlex.join(str(one) for one in meta["command"][1:]),
        "began": _utc(meta["started"]),
        "ended": _utc(meta["ended"]),
        "machine": f"{machine['cpu']}, {machine['cores']} cores, {decimal(machine['memory_bytes'])}",
        "system": machine.get("system") or machine["kernel"],
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items() if number),
        "repeats": meta["plan"]["repeats"],
        "order of targets": f"random, seed {meta['plan'].get('seed', 0)}",
        "durability": meta["plan"]["durability"],
        "gateway's workers": meta["plan"]["workers"],
        "generator's processes": meta["plan"]["processes"],
    }
    blocks: list[Block] = [Table(["What", "Value"], [[name, str(value)] for name, value in facts.items()], "", "", 2)]
    blocks += [Remark(line) for line in outlook.sentences(meta)]
    blocks += [Remark(f"Before it began: {line}.") for line in meta.get("warnings", [])]
    found = [Chapter("machine", "Machine, versions and targets", "", [*blocks, targets(meta)])]
    if probed := probes(meta):
        found.append(Chapter("probe", "What the probe found", "Of each mount, before the first repeat.", probed))
    return [*found, Chapter("cells", "Cells", "One row for each scenario, target and repeat.", [cells(meta)])]


def _utc(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else ""


def targets(meta: Mapping[str, Any]) -> Table:
    """Render what each target is."""
    rows: list[list[str | Cell]] = []
    for one in meta["targets"]:
        mount = one.get("mount") or {}
        where = (
            one["url"] or one["path"] or {"local": "temporary directory"}.get(one.get("store", ""), "temporary mount")
        )
        slower = f"{one['slower']:g} times as long" if one.get("slower", 1.0) != 1 else ""
        costs = " ".join(word for word in (one.get("profile"), one.get("personality"), slower) if word)
        synced = {None: "", True: "each file synced", False: "not synced"}[one["synced"]]
        settings = ", ".join(f"{name}={value}" for name, value in one["settings"].items())
        mounted = " ".join(str(mount[name]) for name in ("kind", "source", "point") if mount.get(name))
        options = str(mount.get("options") or "")
        rows.append(
            [one["name"], one["kind"], one["driver"], where, Cell(mounted, title=options), costs, synced, settings]
        )
    head = ["Target", "kind", "driver", "where", "mount", "costs", "writes", "settings"]
    return Table(head, rows, "Targets", "", len(head))


def probes(meta: Mapping[str, Any]) -> list[Block]:
    """Render what `sluice probe` found: trials, refused starts, and times of calls."""
    probed = {one["name"]: one["probe"] for one in meta["targets"] if one.get("probe")}
    if not probed:
        return []
    trials = _names(probe.get("trials") or {} for probe in probed.values())
    rows: list[list[str | Cell]] = [
        [name, *(_trial((probe.get("trials") or {}).get(name)) for probe in probed.values())] for name in trials
    ]
    rows.append(["durability that is refused", *(_refused(probe.get("refused")) for probe in probed.values())])
    can = Table(["Trial", *probed], rows, "What the mounts can do", "", 1 + len(probed))
    calls = _names(probe.get("latencies_ms") or {} for probe in probed.values())
    times: list[list[str | Cell]] = [
        [name, *(_time((probe.get("latencies_ms") or {}).get(name)) for probe in probed.values())] for name in calls
    ]
    return [can, Table(["Call", *probed], times, "What a call takes there", "Milliseconds: median (worst).")]


def _names(found: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for one in found for name in one))


def _trial(found: Mapping[str, Any] | None) -> Cell:
    if not found:
        return Cell("")
    words = str(found.get("detail") or found.get("error") or "")
    return Cell("yes", title=words) if found.get("works") else Cell(f"no: {words}", "quiet")


def _refused(found: object) -> str:
    reasons = found if isinstance(found, dict) else {}
    return "; ".join(f"{level}: {why}" for level, why in reasons.items() if why) or "none"


def _time(found: Mapping[str, Any] | None) -> str:
    return f"{significant(found['median'])} ({significant(found['worst'])})" if found else ""


def cells(meta: Mapping[str, Any]) -> Table:
    """Render the state of each cell."""
    rows: list[list[str | Cell]] = []
    for one in meta["cells"]:
        took = f"{one['ended'] - one['started']:.0f} s" if one["ended"] and one["started"] else ""
        load = " → ".join(f"{value:.1f}" for value in one["load1"])
        state = Cell(one["state"], "" if one["state"] == "done" else "bad")
        rows.append([one["scenario"], one["target"], str(one["repeat"]), state, one["reason"], took, f"{one['rows']:,}",
                     f"{one['errors']:,}", load])  # fmt: skip
    head = ["Scenario", "Target", "repeat", "state", "why", "took", "requests", "errors", "load (1 min)"]
    return Table(head, rows, "", "Load: of the machine, before and after.", 5)
