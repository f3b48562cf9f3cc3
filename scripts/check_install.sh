#!/bin/sh
# Installs the project as a user would (not editable) into a fresh environment, and uses it away from the checkout.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
# a copy of what git would clone, so that no leftover build directory is installed
(cd "$checkout" && git ls-files -z -- app storage_drivers migrations loadtests pyproject.toml setup.py README.md LICENSE |
    tar --create --null --files-from=- ) | tar --extract --directory "$work/source"
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$work/source"
# an extra of what is installed adds to it; the name `sluice` would bring another project from PyPI
"$work/venv/bin/python" -m pip show --quiet --disable-pip-version-check sluice-s3
rm -rf "$work/source"
cp "$checkout/scripts/smoke.py" "$checkout/scripts/beside_other_packages.py" "$work"
cd "$work"
exec_in="$work/venv/bin/python"
"$exec_in" -P smoke.py "$work/venv/bin/sluice" "$work/data"
"$exec_in" -P beside_other_packages.py "$work/venv/bin/sluice" "$work/project"
