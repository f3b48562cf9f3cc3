"""A run: every target has its turn in every round, and all is written after each turn."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from sluice_s3.loadtests.common import targets
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.scratch import scratch
from sluice_s3.loadtests.cpu import report
from sluice_s3.loadtests.cpu.client import Stalled
from sluice_s3.loadtests.cpu.measurement import Measure, Meter
from sluice_s3.loadtests.cpu.target_run import MIX, Plan, TargetRun
from sluice_s3.loadtests.cpu.warp import WarpRun


class Bench:
    """All rounds of a run, and what was measured so far (written after every turn)."""

    def __init__(
        self,
        plan: Plan,
        chosen: list[targets.Target],
        server_core: int | None,
        client_core: int,
        directory: Path | None,
        output: Path,
        data_directory: Path | None,
        beside: int | None,
        warp: Path | None,
        console: Console,
    ) -> None:
        self._warp = warp
        self._beside = beside
        self._console = console
        self.measures: list[Measure] = []
        self._plan = plan
        self._targets = chosen
        self._server_core = server_core
        self._client_core = client_core
        self._directory = directory
        self._output = output
        self._data_directory = data_directory and data_directory.resolve()
        self._keys = targets.Keys(
            os.environ.get("AWS_ACCESS_KEY_ID", "GK" + secrets.token_hex(12)),
            os.environ.get("AWS_SECRET_ACCESS_KEY", secrets.token_hex(32)),
            os.environ.get("AWS_REGION", "us-east-1"),
        )
        self._servers: dict[str, str] = {}
        self._head = self._describe()

    def run(self, rounds: int) -> None:
        """Every target has its turn in every round, in turned order every other time."""
        with scratch("sluice-bench-", self._directory) as parent:
            targets.spread_children(parent)
            for number in range(rounds):
                for target in self._targets if number % 2 == 0 else reversed(self._targets):
                    self._run_target(number, target, parent)
                    report.write(self._output, {**self._head, "server_headers": self._servers}, self.measures)

    def _run_target(self, number: int, target: targets.Target, parent: Path) -> None:
        def report_measure(measure: Measure) -> None:
            self.measures.append(measure)
            cpu = "" if measure.cpu_us is None else f"{measure.cpu_us:,.0f} µs"
            errors = f"  {measure.errors}" if measure.errors else ""
            self._console.print(
                f"round {number + 1}  {target.name:16} {measure.cell.name:22} {measure.rate:10,.1f}/s  {cpu}{errors}",
                highlight=False,
                markup=False,
            )

        with targets.Running(target, self._keys, parent, self._server_core, self._data_directory) as running:
            self._servers[target.name] = running.server
            turn = self._turn(running, number, parent)
            try:
                turn.run(report_measure)
            except (S3CallError, Stalled, OSError) as error:
                raise S3CallError(f"{target.name}: {error}\n{running.printed()}") from error
            finally:
                if not target.launched:
                    turn.clean()

    def _turn(self, running: targets.Running, number: int, parent: Path) -> TargetRun | WarpRun:
        if self._warp is not None:
            return WarpRun(running, self._keys, self._plan, self._warp, number, parent)
        meter = Meter(running.pid, running.directory, self._server_core, self._client_core, self._beside)
        return TargetRun(running, self._plan, meter, number, f"bench-{secrets.token_hex(4)}")

    def _describe(self) -> dict[str, Any]:
        return {
            "format": 1,
            "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": report.machine(),
            "settings": {
                **asdict(self._plan),
                "mix": MIX,
                "warp": None if self._warp is None else targets.version(str(self._warp)),
                "server_core": self._server_core,
                "client_core": self._client_core,
                "environment": {
                    name: value
                    for name, value in sorted(os.environ.items())
                    if name.startswith("SLUICE_") and "SECRET" not in name and "TOKEN" not in name
                },
            },
            "targets": [{**asdict(target), "version": targets.version(target.command)} for target in self._targets],
        }
