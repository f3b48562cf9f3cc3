"""A run: every target has its turn in every round, and all is written after each turn."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from sluice_s3.loadtests.common import targets
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.scratch import scratch
from sluice_s3.loadtests.common.tls import Certificate, create_certificate
from sluice_s3.loadtests.cpu import report
from sluice_s3.loadtests.cpu.client import Stalled
from sluice_s3.loadtests.cpu.measurement import Measure, Meter


class Turn(Protocol):
    """The cells of one target in one round."""

    def run(self, report: Callable[[Measure], None], /) -> None:
        """Run every cell and report each measure. Raises S3CallError, Stalled and OSError."""

    def clean(self) -> None:
        """Delete everything that the turn created."""


@dataclass(frozen=True)
class Place:
    """Cores (None: any) and directories (None: the system's default) of a run.

    `data_directory` has the data alone. `beside` is the root process of a database that serves the servers.
    """

    server_core: int | None
    client_core: int | None
    directory: Path | None
    data_directory: Path | None = None
    beside: int | None = None

    def meter(self, running: targets.Running) -> Meter:
        """Return what measures a target."""
        return Meter(running.pid, running.directory, self.server_core, self.client_core, self.beside)


class Bench:
    """All rounds of a run, and what was measured so far (written after every turn).

    `turn` begins a target's turn: of what runs, in a round, with a directory for other files. `settings` are written.
    """

    def __init__(
        self,
        chosen: list[targets.Target],
        place: Place,
        settings: dict[str, Any],
        output: Path,
        console: Console,
        turn: Callable[[targets.Running, targets.Keys, int, Path], Turn],
        *,
        tls: bool = False,
    ) -> None:
        self._targets = chosen
        self._place = place
        self._settings = settings
        self._output = output
        self._console = console
        self._turn = turn
        self._tls = tls
        self.measures: list[Measure] = []
        self._keys = targets.Keys(
            os.environ.get("AWS_ACCESS_KEY_ID", "GK" + secrets.token_hex(12)),
            os.environ.get("AWS_SECRET_ACCESS_KEY", secrets.token_hex(32)),
            os.environ.get("AWS_REGION", "us-east-1"),
        )
        self._servers: dict[str, str] = {}
        self._head = self._describe()

    def run(self, rounds: int) -> None:
        """Every target has its turn in every round, in turned order every other time."""
        with scratch("sluice-bench-", self._place.directory) as parent:
            targets.spread_children(parent)
            certificate = create_certificate(parent) if self._tls else None
            for number in range(rounds):
                for target in self._targets if number % 2 == 0 else reversed(self._targets):
                    self._run_target(number, target, parent, certificate)
                    report.write(self._output, {**self._head, "server_headers": self._servers}, self.measures)

    def _run_target(self, number: int, target: targets.Target, parent: Path, certificate: Certificate | None) -> None:
        def report_measure(measure: Measure) -> None:
            self.measures.append(measure)
            cpu = "" if measure.cpu_us is None else f"{measure.cpu_us:,.0f} µs"
            errors = f"  {measure.errors}" if measure.errors else ""
            self._console.print(
                f"round {number + 1}  {target.name:16} {measure.cell.name:22} {measure.rate:10,.1f}/s  {cpu}{errors}",
                highlight=False,
                markup=False,
            )

        place = self._place
        data = place.data_directory and place.data_directory.resolve()
        with targets.Running(target, self._keys, parent, place.server_core, data, certificate) as running:
            self._servers[target.name] = running.server
            turn = self._turn(running, self._keys, number, parent)
            try:
                turn.run(report_measure)
            except (S3CallError, Stalled, OSError) as error:
                raise S3CallError(f"{target.name}: {error}\n{running.printed()}") from error
            finally:
                if not target.launched:
                    turn.clean()

    def _describe(self) -> dict[str, Any]:
        return {
            "format": 1,
            "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": report.machine(),
            "settings": {
                **self._settings,
                "tls": self._tls,
                "server_core": self._place.server_core,
                "client_core": self._place.client_core,
                "environment": {
                    name: value
                    for name, value in sorted(os.environ.items())
                    if name.startswith("SLUICE_") and "SECRET" not in name and "TOKEN" not in name
                },
            },
            "targets": [{**asdict(target), "version": targets.version(target.command)} for target in self._targets],
        }
