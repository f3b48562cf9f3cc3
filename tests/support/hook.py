"""A webhook that remembers what it was told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import eventually


class Hook:
    """A webhook that remembers what it was told, or refuses it."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if hook.status == 200:
                    hook.told.append(body)
                    hook.headers.append(dict(self.headers.items()))
                self.send_response(hook.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/in?x=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def of(self, bucket: str) -> list[dict[str, Any]]:
        """The records about a bucket."""
        records = [record for one in list(self.told) for record in one.get("Records", ())]
        return [record for record in records if record["s3"]["bucket"]["name"] == bucket]

    def wait(self, bucket: str, count: int) -> list[dict[str, Any]]:
        eventually(lambda: len(self.of(bucket)) >= count, f"{count} records of {bucket}")
        return self.of(bucket)
