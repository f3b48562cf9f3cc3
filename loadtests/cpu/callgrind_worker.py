"""One worker of the gateway in this process, without the launcher: valgrind has no `pidfd_open`.

    python -P callgrind_worker.py DATA FD PARENT

Whatever `sluice_s3` is on PYTHONPATH is run, also that of an earlier checkout without this file. Two lines are written
to the descriptor FD: what runs, as JSON, and `ready` once it serves, or else why it does not. It ends with the process
PARENT.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

from sluice_s3.app.server.processes import worker
from sluice_s3.app.server.processes.listen import S3, write_addresses
from sluice_s3.app.server.processes.worker import WorkerSpec, run_worker
from sluice_s3.app.server.shared_memory.counters import Counters
from sluice_s3.app.server.shared_memory.oldest_requests import OldestRequests
from sluice_s3.app.server.shared_memory.quota_ledger import QuotaLedger
from sluice_s3.app.server.shared_memory.store_states import StoreStates
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare

APP = "sluice_s3.app.main:create_app"
COUNTERS, OLDEST, QUOTAS = "counters", "oldest", "quota-shares"
"""Names of shared files, which are those of every checkout; the constants of the same names have moved."""


def _create_shared_files(settings: Settings, port: int) -> None:
    """Create the files that the launcher shares with its processes, for one process."""
    write_addresses(settings.run_dir, {S3: f"http://127.0.0.1:{port}"})
    Counters(settings.run_dir / COUNTERS, 1, create=True)
    OldestRequests(settings.run_dir / OLDEST, 1, create=True)
    QuotaLedger(settings.run_dir / QUOTAS, 1, create=True)
    StoreStates(settings.run_dir, list(settings.named_stores), 1, create=True)


def serve(data: Path, report: int, parent: int) -> None:
    """Serve `data` until SIGTERM, with all that a worker of `sluice serve` does."""
    settings = Settings(data=data, workers=1, admin_port=-1)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    found = {
        "port": port,
        "pid": os.getpid(),
        "source": str(Path(worker.__file__).parents[2].resolve()),
    }
    os.write(report, json.dumps(found).encode() + b"\n")
    prepare(settings)
    _create_shared_files(settings, port)
    spec = WorkerSpec(
        settings=settings,
        target=APP,
        kind="worker",
        slot=0,
        place=0,
        places=1,
        sockets=(listener.detach(),),
        ready_fd=report,
        parent=parent,
        tls=False,
    )
    run_worker(spec)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
