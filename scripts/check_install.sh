#!/bin/sh
# Installs the project as a user would (not editable) into a fresh environment, and uses it away from the checkout.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
# a copy of what git would clone, so that no leftover build directory is installed
(cd "$checkout" && git ls-files -z -- app storage_drivers migrations benchmarks loadtests pyproject.toml README.md LICENSE |
    tar --create --null --files-from=- ) | tar --extract --directory "$work/source"
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$work/source"
rm -rf "$work/source"
cp "$checkout/scripts/smoke.py" "$work/smoke.py"
cd "$work"
exec_in="$work/venv/bin/python"
"$exec_in" -P smoke.py "$work/venv/bin/sluice" "$work/data"
