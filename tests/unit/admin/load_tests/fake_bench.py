"""What the API needs of `sluice bench`, without a measurement: `FAKE_BENCH` says how it behaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def option(name: str) -> list[str]:
    words = sys.argv
    return [words[at + 1] for at, word in enumerate(words) if word == name]


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, "left_s": 5.0, **fields}), flush=True)


def preview() -> None:
    free = 1 << 20 if os.environ.get("FAKE_BENCH") == "full" else 1 << 40
    places = [
        {"name": one.partition("=")[0], "kind": "gateway", "where": one, "driver": "local", "mount": "/", "source": "d",
         "filesystem": "ext4", "total": 1 << 41, "free": free, "needed": 1000, "device": 1, "problem": ""}
        for one in option("--store")
    ]  # fmt: skip
    print(json.dumps({"seconds": 12.0, "repeats": 3, "places": places, "scenarios": {}, "warnings": ["a warning"]}))


def play(mode: str) -> None:
    directory = Path(option("--results")[0], option("--name")[0])
    stores = [Path(one.partition("=")[2].rpartition(":")[0]) for one in option("--store")]
    for store in stores:
        (store / "sluice-bench-x").mkdir()
        (store / "sluice-bench-x" / "data").write_text("scratch")
    say("begin", seconds=12)
    say("start", what="default: getting ready")
    say("start", what="default: mixed (1 of 3)", target="default", scenario="mixed", repeat=1)
    say("live", requests=0.0, errors=0.0, bytes=0.0, p50=None, p99=None)
    say("live", requests=100.0, errors=0.0, bytes=5e6, p50=0.001, p99=0.02)
    print("not json " + "x" * 100_000, flush=True)
    print("a word of the run", flush=True)
    state, reason = "complete", ""
    if mode == "short":
        state, reason = "partial", "the time is up"
    if mode == "fails":
        sys.exit("sluice: it cannot begin")
    if mode in ("waits", "stubborn"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
        (directory / "child").write_text(str(child.pid))
        asked: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
        (directory / "waits").touch()
        while not asked or mode == "stubborn":
            time.sleep(0.02)
        state, reason = "partial", "interrupted by SIGTERM"
    say("cell", what="default: mixed (1 of 3)", state="done", reason="", rows=1000, errors=0)
    (directory / "rows" / "default").mkdir(parents=True)
    (directory / "rows" / "default" / "mixed-1.csv.gz").write_bytes(b"rows")
    report(directory)
    say("measured")
    say("verdict", state=state, reason=reason, repeats=3, headline=["Take default for mixed load."])
    sys.exit(0 if state == "complete" else 3)


def report(directory: Path) -> None:
    (directory / "report.html").write_text("<h1>Report</h1><script>document.title = 'ran'</script>")
    (directory / "meta.json").write_text("{}")


def compare() -> None:
    over = {"call": "faster", "ratio": 1.2, "low": 1.1, "high": 1.3, "reach": 0.1}
    pair = {"target": "default", "use": "Mixed load", "figure": "", "a": "", "b": "", "over": over}
    print(json.dumps({"a": "a", "b": "b", "pairs": [pair], "remarks": ["a remark"]}))


def main() -> None:
    words = sys.argv[2:]
    if words[0] == "scenarios":
        for name in ("mixed", "sizes"):
            fields = {"name": name, "about": f"What {name} does.", "default": True, "users": 1, "seconds": 3.0}
            print(json.dumps({**fields, "bytes": 1000, "file": "/somewhere"}))
    elif words[0] == "report":
        report(Path(words[1]))
    elif words[0] == "compare":
        compare()
    elif "--dry-run" in words:
        preview()
    else:
        play(os.environ.get("FAKE_BENCH", ""))


main()
