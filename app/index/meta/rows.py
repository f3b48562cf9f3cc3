"""Names of notes that several parts share."""

from __future__ import annotations

JOB_CONTROL = "job-control"
"""What people want of jobs: a JSON object with `paused`, a list of names, and `run`, times (milliseconds) by names."""
JOB_STATUS = "job-status:"
"""Prefix of the status of each job; its name follows."""
