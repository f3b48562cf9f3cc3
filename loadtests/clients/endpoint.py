"""Where requests go, and who signs them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from sluice_s3.loadtests.clients.credentials import Credentials, Source
from sluice_s3.loadtests.clients.signing import Signer

ADDRESSING = ("auto", "path", "virtual")
"""Whether a bucket stands in the path or in the host name; auto: in the host name at AWS alone."""
AWS_HOST = re.compile(r"\.amazonaws\.com(\.cn)?$")


@dataclass(frozen=True)
class Endpoint:
    """Where requests go, and who signs them.

    Raises ValueError for a URL that is not HTTP.
    """

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    timeout: float = 60.0
    """Seconds without progress after which a request fails."""
    source: Source | None = None
    """Where the keys come from, if they are not the two above."""
    addressing: str = "path"
    """Where the bucket's name stands, one of ADDRESSING."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{self.url!r} is not http://HOST:PORT or https://HOST:PORT")

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return urlsplit(self.url).scheme == "https"

    @property
    def address(self) -> tuple[str, int]:
        """The host and port to connect to."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if self.tls else 80)

    def signer(self) -> Signer:
        """Return a signer for this endpoint's `Host` header."""
        return Signer(urlsplit(self.url).netloc, self.access_key, self.secret_key, self.region, source=self.source)

    def of_bucket(self, bucket: str) -> Endpoint | None:
        """Return the endpoint whose host name begins with the bucket's; None where buckets stand in paths."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        wanted = self.addressing == "virtual"
        if self.addressing == "auto":
            # TLS has no certificate for the dots, as no SDK that decides alone
            wanted = AWS_HOST.search(host) is not None and not ("." in bucket and self.tls)
        return replace(self, url=f"{parts.scheme}://{bucket}.{parts.netloc}", addressing="path") if wanted else None

    @property
    def key_source(self) -> Source:
        """Return where the keys come from."""
        given = Credentials(self.access_key, self.secret_key)
        return self.source or (lambda: given)
