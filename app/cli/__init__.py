"""The command line: `sluice` and its subcommands."""

import sys

if sys.platform != "linux":  # before imports that other systems lack
    raise SystemExit(
        "sluice: Sluice runs on Linux only: use its container image or a virtual machine (on Windows, WSL)"
    )
