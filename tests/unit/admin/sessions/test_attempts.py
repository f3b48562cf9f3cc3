"""Guessing is slow, and takes no memory."""

from __future__ import annotations

from sluice_s3.app.admin.sessions.attempts import PLACES, Attempts, Guesses, network_of
from tests.support.settings import ROOT
from tests.unit.admin.console_client import Console

SESSION = "/api/v1/session"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_one_an_interval() -> None:
    clock = Clock()
    attempts = Attempts(3, 10, clock)
    assert [attempts.take("a") for _ in range(4)] == [0, 0, 0, 10]
    assert attempts.take("b") == 0
    clock.now += 10
    assert [attempts.take("a") for _ in range(2)] == [0, 10]
    clock.now += 1e6
    assert [attempts.take("a") for _ in range(4)] == [0, 0, 0, 10]
    attempts.give_back("a")
    assert attempts.take("a") == 0


def test_many_names_take_no_more_memory() -> None:
    attempts = Attempts(3, 10, Clock())
    for number in range(3 * PLACES):
        attempts.take(str(number))
    assert len(attempts._due) == PLACES


def test_a_key_is_guarded_against_many_addresses_but_not_against_its_owner() -> None:
    guesses = Guesses(Clock())
    assert guesses.take("10.0.0.1", "KEY") == 0
    guesses.succeed("10.0.0.1", "KEY")
    refused = [guesses.take(f"10.1.{number}.1", "KEY") for number in range(100)]
    assert sum(wait == 0 for wait in refused) == 20
    assert guesses.take("10.0.0.2", "KEY") > 0
    assert guesses.take("10.0.0.1", "KEY") == 0


def test_who_counts_as_one() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert network_of("testclient") == "testclient"


async def test_guesses_are_answered_with_429(site: Console) -> None:
    browser = site.browser()
    wrong = {"access_key": ROOT.access, "secret_key": "wrong"}
    answers = [await browser.post(SESSION, json=wrong) for _ in range(12)]
    assert [one.status_code for one in answers] == [403] * 10 + [429] * 2
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 6
    right = {"access_key": ROOT.access, "secret_key": ROOT.secret}
    assert (await browser.post(SESSION, json=right)).status_code == 429, "nor does the right one stand out"
    assert (await site.browser(address="127.0.0.2").post(SESSION, json=right)).status_code == 200


async def test_who_signs_in_is_not_slowed_down(site: Console) -> None:
    for _ in range(15):
        await site.sign_in()


async def test_what_nobody_sent_is_not_read(site: Console) -> None:
    answer = await site.browser().post(SESSION, json={"access_key": "x", "secret_key": "y" * 5000})
    assert answer.status_code == 413
