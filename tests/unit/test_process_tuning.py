"""A process that keeps what it freed, in few arenas: its next large blocks cost no page faults."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sluice_s3.app.process_tuning import ARENA_VARIABLES, ARENAS, THRESHOLD_VARIABLES

FAULTS = """
import resource
from sluice_s3.app.process_tuning import keep_freed_memory
def blocks():
    for _ in range(20):
        kept = [b"x" * size for size in (400_000, 400_001, 400_002, 400_003)]
        del kept
if {tuned}:
    keep_freed_memory()
blocks()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
blocks()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


THREADS = """
import ctypes
import threading
from sluice_s3.app.process_tuning import keep_freed_memory
if {tuned}:
    keep_freed_memory()
library = ctypes.CDLL(None)
library.malloc.restype, library.fopen.restype = ctypes.c_void_p, ctypes.c_void_p
together = threading.Barrier(12)
def allocate():
    library.malloc(100_000)
    together.wait()
for _ in range(11):
    threading.Thread(target=allocate).start()
allocate()
info = library.fopen(b"/dev/stdout", b"w")
library.malloc_info(0, ctypes.c_void_p(info))
library.fclose(ctypes.c_void_p(info))
"""

of_glibc = pytest.mark.skipif(
    not hasattr(os, "confstr") or "glibc" not in str(os.confstr("CS_GNU_LIBC_VERSION")), reason="of glibc"
)


def run(program: str, *, tuned: bool, **environment: str) -> str:
    chosen = THRESHOLD_VARIABLES | ARENA_VARIABLES
    inherited = {name: value for name, value in os.environ.items() if name not in chosen}
    command = [sys.executable, "-c", program.format(tuned=tuned)]
    return subprocess.run(command, env=inherited | environment, check=True, capture_output=True, text=True).stdout


def faults(*, tuned: bool, **environment: str) -> int:
    """Page faults of 80 blocks of 400,000 bytes after the first 80."""
    return int(run(FAULTS, tuned=tuned, **environment))


@of_glibc
def test_freed_memory_is_kept_for_the_next_request() -> None:
    assert faults(tuned=True) < 100 < faults(tuned=False)
    assert faults(tuned=True, MALLOC_ARENA_MAX="4") < 100, "the operator chose something else"


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_what_the_operator_set_stays(name: str) -> None:
    assert faults(tuned=True, **{name: "65536"}) > 100


@of_glibc
def test_threads_share_few_arenas() -> None:
    assert run(THREADS, tuned=True).count("<heap nr=") <= ARENAS < run(THREADS, tuned=False).count("<heap nr=")
    assert run(THREADS, tuned=True, MALLOC_ARENA_MAX="4").count("<heap nr=") == 4, "the operator chose"
