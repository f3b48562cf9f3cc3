"""A tab of the browser: signs in, opens pages, collects what goes wrong in it, checks accessibility."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Error, Page

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway

ANSWERS = "Failed to load resource"
"""What Chromium prints for an answer that is no success; tests look at answers themselves."""


class Tab:
    """A tab with a list of its faults: errors of scripts, violations of the Content Security Policy."""

    def __init__(self, page: Page, gateway: Gateway) -> None:
        self.page = page
        self.gateway = gateway
        self.faults: list[str] = []
        page.on("console", self._read_message)
        page.on("pageerror", self._read_error)

    def _read_message(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(ANSWERS):
            self.faults.append(message.text)

    def _read_error(self, error: Error) -> None:
        self.faults.append(error.message)

    def sign_in(self, access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY) -> None:
        """Sign in without the page: its own test is `test_sign_in`."""
        answer = self.page.request.post(
            "/api/v1/session",
            data={"access_key": access_key, "secret_key": secret_key},
            headers={"origin": self.gateway.admin},
        )
        assert answer.ok, answer.text()

    def open(self, path: str) -> Page:
        """Open a page of the console, and wait until its heading is there."""
        self.page.goto(path)
        self.page.wait_for_selector("main h1")
        return self.page

    def check_accessibility(self, context: str | None = None) -> None:
        """Assert that axe-core finds nothing in the page, or in the part of a selector."""
        results = Axe().run(self.page, context=context)
        assert results.violations_count == 0, results.generate_report()
