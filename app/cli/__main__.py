"""`python -m sluice_s3.app.cli`: the command without an installation."""

from __future__ import annotations

from sluice_s3.app.cli.main import main

if __name__ == "__main__":
    main()
