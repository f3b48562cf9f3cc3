"""Where a website sends its reader on to."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.negative.signer import presign
from tests.negative.wire import Request
from tests.s3.plane import ROOT, WAY, plane
from tests.store.site import prepare, settings_for

SITE = b"<WebsiteConfiguration><IndexDocument><Suffix>i</Suffix></IndexDocument></WebsiteConfiguration>"
PUBLIC = (
    b'{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",'
    b' "Resource": "arn:aws:s3:::site/*"}]}'
)


async def test_an_object_says_where_to_go_in_its_own_header_only(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, website_domain="web.test")
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as s3:
        assert (await s3.ask("PUT", "/site")).status == 200
        assert (await s3.ask("DELETE", "/site", "publicAccessBlock")).status == 204
        assert (await s3.ask("PUT", "/site", "website", SITE)).status == 200
        assert (await s3.ask("PUT", "/site", "policy", PUBLIC)).status == 204
        told = {"x_amz_meta_a": "x-amz-website-redirect-location: http://other.test/"}
        assert (await s3.ask("PUT", "/site/stays", "", b"here", **told)).status == 200
        moved = presign(Request("PUT", "/site/moved", "x-amz-website-redirect-location=%2F%C3%A9"), ROOT, WAY)
        assert (await s3.send(moved)).status == 200
        here, there = [
            await s3.send(Request("GET", path, headers=(("host", "site.web.test"),))) for path in ("/stays", "/moved")
        ]
        assert (here.status, here.body) == (200, b"here")
        assert (there.status, there.headers["location"]) == (301, "/é")
