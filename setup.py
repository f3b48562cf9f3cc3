"""The packages of the distribution: every package of these folders, below `sluice_s3`.

All else is in pyproject.toml, which cannot say this. See docs/contributing.md, "One import package".
"""

from setuptools import find_packages, setup

FOLDERS = ("app", "loadtests", "migrations", "storage_drivers")

setup(
    packages=[f"sluice_s3.{name}" for name in find_packages(include=[*FOLDERS, *(f"{folder}.*" for folder in FOLDERS)])]
)
