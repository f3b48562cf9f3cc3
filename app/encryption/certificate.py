"""When a TLS certificate ends."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509


def certificate_end(path: Path) -> float:
    """Return when the first certificate of a PEM file ends, in seconds since the epoch. Raises OSError, ValueError.

    The first one is the server's own; those that follow are of its issuers (RFC 8446 §4.4.2).
    """
    with path.open("rb") as file:
        return x509.load_pem_x509_certificate(file.read()).not_valid_after_utc.timestamp()
