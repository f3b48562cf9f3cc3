"""The packages of the distribution: every package of these folders, below `sluice_s3`.

All else is in pyproject.toml, which cannot say this. See docs/contributing.md, "One import package".
"""

from setuptools import find_packages, setup

FOLDERS = ("app", "loadtests", "migrations", "storage_drivers")
PATTERNS = [*FOLDERS, *(f"{folder}.*" for folder in FOLDERS)]
# users import it, and it imports nothing of `app`: it has a short name, and only that one
TESTING = "app.testing"

packages = find_packages(include=PATTERNS, exclude=[TESTING])
setup(packages=["sluice_s3.testing", *(f"sluice_s3.{name}" for name in packages)])
