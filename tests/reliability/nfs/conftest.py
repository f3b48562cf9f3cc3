"""Collects tests in the client of the lab only: see `lab.py`."""

from __future__ import annotations

from tests.reliability.nfs.power import LAB

collect_ignore_glob = [] if LAB.exists() else ["test_*.py"]
