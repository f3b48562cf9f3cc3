"""What can be named on the command line."""

from __future__ import annotations

import sys

import pytest

from sluice_s3.loadtests.common.targets import Target, parse_target, version
from sluice_s3.loadtests.cpu.options import size_of


def test_the_three_kinds() -> None:
    sluice = parse_target("sluice", "full", {})
    assert (sluice.name, sluice.durability, sluice.launched) == ("sluice-full", "full", True)
    assert parse_target("sluice:relaxed", "full", {}).durability == "relaxed"
    assert parse_target("a=http://127.0.0.1:1", "full", {"a": 7}) == Target("a", url="http://127.0.0.1:1", pid=7)
    peer = parse_target("peer=env KEY={access_key} peer --port {port} {data}", "full", {})
    assert peer.command == "env KEY={access_key} peer --port {port} {data}"
    assert peer.launched


@pytest.mark.parametrize("text", ["other", "sluice:fast", "=x", "x=", "x=https://host"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is|lacks|TLS"):
        parse_target(text, "full", {})


def test_sizes() -> None:
    assert [size_of(text) for text in ("512", "4k", "10M", "1GiB", "64KiB")] == [512, 4096, 10 << 20, 1 << 30, 65536]
    with pytest.raises(ValueError, match=r"is|lacks|TLS"):
        size_of("4x")


def test_version_of_a_program() -> None:
    assert version(f"env A=b {sys.executable}x serve") == ""
    assert version("env A=b git {data}").startswith("git version")
