"""The console's page and static files."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from sluice_s3.app.admin.console_files import ROOT, ConsoleFiles, make_router
from sluice_s3.app.admin.sessions.cookie import write_cookie
from tests.support.settings import make_settings

VENDORED = {"vendor"}
MAX_LINES = 150


@pytest.fixture
def browser(tmp_path: Path) -> AsyncClient:
    """A client of an application with nothing but the console."""
    app = FastAPI()
    app.state.settings = make_settings(tmp_path)
    app.include_router(make_router(ConsoleFiles()))
    return AsyncClient(transport=ASGITransport(app), base_url="http://admin")


async def _script(browser: AsyncClient) -> str:
    found = re.search(r'<script type="module" src="([^"]+)"', (await browser.get("/console/")).text)
    assert found is not None
    return found[1]


async def test_every_path_is_the_same_page(browser: AsyncClient) -> None:
    """Paths of the console are made by its scripts, so that a reload of any of them works."""
    assert (await browser.get("/")).headers["location"] == "/console/"
    first = await browser.get("/console/")
    assert first.status_code == 200
    assert (await browser.get("/console/buckets/some/objects?prefix=a")).text == first.text
    assert first.headers["cache-control"] == "no-cache"
    assert "{" not in first.text


COOKIE = {"cookie": write_cookie("http://admin", "ASIAAAAAAAAAAAAAAAAA", "secret", 0).partition(";")[0]}


async def test_the_frame_fits_who_comes(browser: AsyncClient) -> None:
    """The shell for a session's cookie, and for a link on another site, which hides the cookie; else the form."""
    for headers in (COOKIE, {"sec-fetch-site": "cross-site"}):
        assert 'class="shell"' in (await browser.get("/console/", headers=headers)).text
    for headers in ({}, {"sec-fetch-site": "none"}, {"cookie": "sluice-9001=old; other=1"}):
        page = await browser.get("/console/", headers=headers)
        assert 'class="sign-in"' in page.text
        assert "cookie" in page.headers["vary"]


@pytest.mark.parametrize(
    ("path", "rooms"),
    [
        ("", []),
        ("people/simulator", ["people", "simulator"]),
        ("buckets/objects/objects", ["buckets", "objects"]),
    ],
)
async def test_the_page_of_a_session_names_the_modules_of_its_rooms(
    browser: AsyncClient, path: str, rooms: list[str]
) -> None:
    """They come beside `main.js`, once each; the form needs none of them."""
    asked = f"/console/{path}"
    scripts = re.findall(r'async src="[^"]*/js/rooms/([^"]+)"', (await browser.get(asked, headers=COOKIE)).text)
    assert scripts == [f"{name}/{name}.js" for name in rooms]
    assert "async" not in (await browser.get(asked)).text


async def test_all_that_the_page_names_is_there_and_immutable(browser: AsyncClient) -> None:
    """Each address of the page answers, plain and compressed, with a strong ETag."""
    page = await browser.get("/console/people/simulator", headers=COOKIE)
    addresses = re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page.text)
    assert len(addresses) == 6
    for address in addresses:
        plain = await browser.get(address, headers={"accept-encoding": "identity"})
        assert plain.status_code == 200
        assert "immutable" in plain.headers["cache-control"]
        async with browser.stream("GET", address, headers={"accept-encoding": "gzip"}) as packed:
            assert packed.headers["content-encoding"] == "gzip"
            assert gzip.decompress(b"".join([part async for part in packed.aiter_raw()])) == plain.content
        again = await browser.get(address, headers={"if-none-match": plain.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name", ["js/no.js", "js/..%2f..%2fapp.py", "%2e%2e/app.py", "README.md", "index.html", "js", ""]
)
async def test_nothing_else_is_served(browser: AsyncClient, name: str) -> None:
    """No path leaves the directory, and only files of the browser's types are served."""
    base = (await _script(browser)).removesuffix("js/main.js")
    assert base not in (await browser.get(base + name)).text


async def test_files_of_another_version_are_not_mixed_with_these(browser: AsyncClient) -> None:
    """A page of an older gateway must not load parts of a newer one."""
    address = await _script(browser)
    other = re.sub("static/[0-9a-f]{16}", f"static/{'0' * 16}", address)
    assert (await browser.get(other)).status_code == 404


def test_own_modules_stay_small() -> None:
    """At most 150 lines each (CONTRIBUTING); no HTML is made from text."""
    own = [path for path in sorted(ROOT.rglob("*.js")) if not VENDORED & set(path.relative_to(ROOT).parts)]
    assert len(own) > 20
    assert [path.name for path in own if len(path.read_text().splitlines()) > MAX_LINES] == []
    assert [path.name for path in own if re.search(r"innerHTML|insertAdjacentHTML|\beval\(", path.read_text())] == []


def test_every_import_is_a_file() -> None:
    """Modules import by relative paths only, of files that are there."""
    for path in sorted(ROOT.rglob("*.js")):
        for name in re.findall(r"(?:\bfrom|\bimport)\s*\(?\s*\"([^\"\n]+)\"", path.read_text()):
            assert name.startswith("."), f"{path.name}: {name}"
            target: Path = (path.parent / name).resolve()
            assert target.is_file(), f"{path.name}: {name}"


def test_a_sheet_styles_what_is_its_own() -> None:
    """The sheets of rooms that were open stay: each rule needs a class that no other sheet has."""
    sheets = {path: _selectors(path.read_text()) for path in [*ROOT.rglob("rooms/*/*.css"), *ROOT.rglob("style/*.css")]}
    classes = {path: set(re.findall(r"[.#][a-z][\w-]*", " ".join(found))) for path, found in sheets.items()}
    assert len(sheets) > 8
    for path, selectors in sheets.items():
        if "rooms" in path.parts:
            own = classes[path].difference(*(others for other, others in classes.items() if other != path))
            assert [one for one in selectors if not own & set(re.findall(r"[.#][a-z][\w-]*", one))] == [], path.name


def _selectors(sheet: str) -> list[str]:
    plain = re.sub(r"/\*.*?\*/|@media[^{]*\{", "", sheet, flags=re.DOTALL)
    return [one.strip() for many in re.findall(r"([^{}]+)\{", plain) for one in re.split(r",(?![^(]*\))", many)]
