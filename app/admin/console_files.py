"""The console's files: one page for all its paths, and static files that never change under their address."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import aiofiles
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from sluice_s3 import app as package
from sluice_s3.app.admin.sessions.guard import session_cookies
from sluice_s3.app.admin.sessions.origin import is_foreign

ROOT = Path(package.__file__).parent / "console"
PAGE = "index.html"
PAGES = "/console/"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
OPEN_ROOMS = (
    '<button class="button plain open-rooms" aria-label="Rooms">'
    '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M4 6h16M4 12h16M4 18h16"/></svg></button>'
)
"""What a phone shows instead of the brand."""
FRAMES = {
    True: (
        '<div class="shell"><nav><a class="brand">',
        f'</a></nav><div><header class="bar">{OPEN_ROOMS}</header></div></div>',
    ),
    False: ('<main class="sign-in"><form><h1 class="brand">', "</h1></form></main>"),
}
"""What is around the brand until `shell.js` (signed in) or `sign-in.js` renders into the same elements."""
ROOM = '\n<script type="module" async src="{{base}}/{}"></script>'
IMMUTABLE = "public, max-age=31536000, immutable"


class StaticFile(NamedTuple):
    """A file in memory, plain and compressed."""

    body: bytes
    compressed: bytes
    media_type: str
    etag: str


class ConsoleFiles:
    """Reads the files below a directory once, off the event loop, and keeps them."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._paths = {
            path.relative_to(root).as_posix(): path
            for path in sorted(root.rglob("*"))
            if path.suffix in MEDIA_TYPES and path.is_file()
        }
        self._bodies: dict[str, bytes] = {}
        self._files: dict[str, StaticFile] = {}
        self._version = ""
        self._template = ""

    async def find(self, version: str, name: str) -> StaticFile | None:
        """Return a file of a version by its path below the directory, None if there is none."""
        if name not in self._paths or version != await self.version():
            return None
        if name not in self._files:
            self._files[name] = await asyncio.to_thread(_compress, name, self._bodies[name])
        return self._files[name]

    async def version(self) -> str:
        """Return the digest of all files, which is part of their addresses."""
        if not self._version:
            # in one hop: some 200 files, each with hops of its own, delay the first page by a quarter of a second
            self._bodies, self._version = await asyncio.to_thread(_read_all, self._paths)
        return self._version

    async def page(self, signed_in: bool, path: str = "") -> str:
        """Return the page of a path, with the addresses of its files and the frame to paint first.

        For a session it names the modules of the path's rooms, so that they come beside `main.js`, not after it.
        """
        if not self._template:
            async with aiofiles.open(self._root / PAGE, encoding="utf-8") as file:
                self._template = await file.read()
        before, after = FRAMES[signed_in]
        rooms = "".join(map(ROOM.format, self._rooms(path))) if signed_in else ""
        text = self._template.replace("{before}", before).replace("{after}", after).replace("{rooms}", rooms)
        return text.replace("{base}", f"{PAGES}static/{await self.version()}")

    def _rooms(self, path: str) -> Iterable[str]:
        """Return the modules of the segments that name a room."""
        modules = (f"js/rooms/{name}/{name}.js" for name in dict.fromkeys(path.split("/")))
        return (module for module in modules if module in self._paths)


def _read_all(paths: Mapping[str, Path]) -> tuple[dict[str, bytes], str]:
    """Return the files by their names, and the digest of all."""
    bodies = {name: path.read_bytes() for name, path in paths.items()}
    digest = hashlib.sha256()
    for name, body in bodies.items():
        digest.update(name.encode() + b"\0" + body)
    return bodies, digest.hexdigest()[:16]


def _compress(name: str, body: bytes) -> StaticFile:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return StaticFile(body, gzip.compress(body, 9, mtime=0), MEDIA_TYPES[Path(name).suffix], etag)


def _answer(request: Request, found: StaticFile) -> Response:
    headers = {"cache-control": IMMUTABLE, "etag": found.etag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, media_type=found.media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(found.body, media_type=found.media_type, headers=headers)


def make_router(files: ConsoleFiles) -> APIRouter:
    """Return the routes of the console's page and files. Nobody needs to be signed in to load them."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def root() -> Response:
        return RedirectResponse(PAGES, 302)

    @router.get("/console/static/{version}/{name:path}")
    async def static(request: Request, version: str, name: str) -> Response:
        found = await files.find(version, name)
        if found is None:
            raise HTTPException(404, "no such file of the console")
        return _answer(request, found)

    @router.get("/console")
    @router.get("/console/{path:path}")
    async def page(request: Request, path: str = "") -> Response:
        # a link on another site brings no cookie, though the page's scripts will have it
        signed_in = is_foreign(request) or bool(session_cookies(request))
        headers = {"cache-control": "no-cache", "vary": "cookie, sec-fetch-site"}
        return Response(await files.page(signed_in, path), media_type="text/html; charset=utf-8", headers=headers)

    return router
