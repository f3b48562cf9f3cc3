"""Uses the console by keyboard alone: walks pages with Tab, opens what buttons open, and finds where that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

SCRIPT = Path(__file__).with_name("keyboard.js")
MAX_STOPS = 400
CHANGING = ("Sign out", "Start", "Make key", "Make credentials", "Run now", "Pause", "Resume", "Upload")
"""Beginnings of names of buttons that do at once what tests of their own look at."""


class Keyboard:
    """The keyboard of a page; it is made before the page is opened."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.add_init_script(path=SCRIPT)

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Write a text where the focus is."""
        self.page.keyboard.insert_text(text)

    def settle(self) -> None:
        """Wait until nothing in the page changes for a moment."""
        self.page.evaluate("keyboard.settle()")

    def open(self, path: str) -> None:
        """Open a page of the console, and wait until it stands still."""
        self.page.goto(path)
        self.page.wait_for_selector("main h1")
        self.settle()

    def go(self, words: str) -> None:
        """Go to a page by the palette."""
        self.press("Control+k")
        expect(self.page.get_by_role("combobox", name="Go to or do")).to_be_focused()
        self.type(words)
        expect(self.page.get_by_role("option").first).to_contain_text(words)
        self.press("Enter")
        expect(self.page.get_by_role("dialog")).to_have_count(0)

    def reach(self, locator: Locator, key: str = "Tab") -> None:
        """Press Tab until something has the focus."""
        wanted = locator.element_handle()
        for _ in range(MAX_STOPS):
            if wanted.evaluate("one => document.activeElement === one"):
                return
            self.press(key)
        raise AssertionError(f"{key} does not reach {locator}: it is at {self.focused()}")

    def use(self, locator: Locator, key: str = "Enter") -> None:
        """Go to a control by Tab, and press a key there."""
        self.reach(locator)
        self.press(key)

    def focused(self) -> str:
        """Return what has the focus; empty when it is lost."""
        found: str = self.page.evaluate("keyboard.focused()")
        return found

    def walk(self, key: str = "Tab") -> dict[str, list[str]]:
        """Go around once. Returns controls that Tab misses, that look alike with the focus, or are covered then."""
        presses = self.page.evaluate("keyboard.begin()")
        pressed = 0
        while not self.page.evaluate("keyboard.isRound()"):
            if pressed > MAX_STOPS:
                return {"trap": [self.focused()]}
            for _ in range(presses):
                self.press(key)
            pressed += presses
            presses = 8
        return self._faults("keyboard.end()")

    def glance(self) -> dict[str, list[str]]:
        """Do the same without keys, which is far quicker, and finds no traps."""
        return self._faults("keyboard.glance()")

    def _faults(self, script: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.page.evaluate(script)
        return {kind: names for kind, names in found.items() if names}

    def openers(self) -> list[str]:
        """Return the names of the buttons that may open something."""
        names: list[str] = self.page.evaluate("keyboard.buttons()")
        return [name for name in dict.fromkeys(names) if not name.startswith(CHANGING)]

    def faults_of_button(self, path: str, name: str) -> Iterator[str]:
        """Open a page, press one of its buttons and Esc, also for each item of its menu. Yields what goes wrong."""
        button = self.page.get_by_role("button", name=name, exact=True).first
        dialogs = self._press_button(path, button)
        items = self.page.get_by_role("menu").get_by_role("menuitem", disabled=False).all_inner_texts()
        if not items:
            yield from self._faults_after(name, dialogs)
        for index, item in enumerate(items):
            if item.startswith(CHANGING):
                continue
            self._press_button(path, button)
            self.press(*["ArrowDown"] * index)
            if item[:20] not in self.focused():
                yield f"{item}: arrows reach {self.focused()}"
            self.press("Enter")
            yield from self._faults_after(name, dialogs)

    def _press_button(self, path: str, button: Locator) -> int:
        """Return how many dialogs were open before."""
        self.open(path)
        dialogs = self.page.locator("dialog[open]").count()
        button.focus()
        self.press("Enter")
        self.settle()
        return dialogs

    def _faults_after(self, opener: str, open_before: int) -> Iterator[str]:
        self.settle()
        dialogs = self.page.locator("dialog[open]")
        before = dialogs.count()
        if not self.focused():
            yield "the focus is lost"
        if before <= open_before:
            return
        if not self.page.evaluate("keyboard.isInDialog()"):
            yield f"the focus is outside of the dialog, at {self.focused()}"
        if found := self.walk():
            yield f"in the dialog: {found}"
        self.press("Escape")
        self.settle()
        if dialogs.count() >= before:
            yield "Esc does not close the dialog"
        elif opener[:20] not in self.focused():
            yield f"after Esc the focus is at {self.focused() or 'nothing'}"
