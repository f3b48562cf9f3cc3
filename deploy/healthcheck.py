"""The image's health check: exit code 0 when the gateway in this container is ready. Standard library only, and quick.

The environment or the settings file says where it listens, as for the gateway itself.
"""

from __future__ import annotations

import os
import sys


def setting(name: str, default: str) -> str:
    """Return a setting of the gateway."""
    given = os.environ.get(f"SLUICE_{name.upper()}")
    if given:
        return given
    config = os.environ.get("SLUICE_CONFIG")
    if config:
        import tomllib

        with open(config, "rb") as file:
            return str(tomllib.load(file).get(name, default))
    return default


def main() -> int:
    """Ask as a balancer would."""
    import socket

    host, port = setting("host", "127.0.0.1"), int(setting("port", "9000"))
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    try:
        connection = socket.create_connection((host, port), 7)
        if setting("tls_cert", ""):
            import ssl

            context = ssl.create_default_context()
            # the certificate is for the outside, and this is the same container
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            connection = context.wrap_socket(connection)
        with connection:
            connection.sendall(b"GET /-/health/ready HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
            status = connection.recv(16)
    except OSError as error:
        print(error)
        return 1
    print(status.decode("latin-1"))
    return 0 if status.startswith(b"HTTP/1.1 200 ") else 1


if __name__ == "__main__":
    sys.exit(main())
