"""File systems of other projects, mounted for a test or a comparison."""

from sluice_s3.loadtests.mounts.programs.known import PROGRAMS
from sluice_s3.loadtests.mounts.programs.program import Program
from sluice_s3.loadtests.mounts.programs.serving import ProgramMount, mounted_by

__all__ = ["PROGRAMS", "Program", "ProgramMount", "mounted_by"]
