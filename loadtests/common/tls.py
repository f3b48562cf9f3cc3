"""TLS of a measurement: a certificate for the servers, and the client's sockets."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterable
from pathlib import Path
from socket import socket
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
VALID = datetime.timedelta(days=30)


class Certificate(NamedTuple):
    """Files of a certificate for this machine's loopback address, and of its key."""

    chain: Path
    key: Path

    def client(self) -> ssl.SSLContext:
        """Return what a client needs to trust it."""
        return ssl.create_default_context(cafile=str(self.chain))


def create_certificate(directory: Path) -> Certificate:
    """Create a key (ECDSA, P-256) and a certificate that it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    found = Certificate(directory / "certificate.pem", directory / "key.pem")
    found.chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    found.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    found.key.chmod(0o600)
    return found


class TlsSocket:
    """A TLS connection with the calls of a socket that the client uses. Flags of receiving have no effect."""

    def __init__(self, context: ssl.SSLContext, plain: socket) -> None:
        self._tls = context.wrap_socket(plain, server_hostname=HOST)
        self.setblocking = self._tls.setblocking
        self.fileno = self._tls.fileno
        self.close = self._tls.close

    def send(self, data: bytes | memoryview) -> int:
        """Send what fits. Raises BlockingIOError if nothing does."""
        try:
            return self._tls.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError) as error:
            raise BlockingIOError from error

    def sendmsg(self, parts: Iterable[bytes | memoryview]) -> int:
        """Send what fits of the parts, in as few records as they need."""
        return self.send(b"".join(parts))

    def recv_into(self, buffer: bytearray, size: int = 0, _flags: int = 0) -> int:
        """Receive at most one record. Raises BlockingIOError if none has arrived."""
        try:
            return self._tls.recv_into(buffer, size or len(buffer))
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError) as error:
            raise BlockingIOError from error
