"""File systems of other projects, mounted for a test or a comparison."""

from sluice_s3.loadtests.file_systems.known import PROGRAMS
from sluice_s3.loadtests.file_systems.program import Program
from sluice_s3.loadtests.file_systems.serving import ProgramMount, mounted_by

__all__ = ["PROGRAMS", "Program", "ProgramMount", "mounted_by"]
