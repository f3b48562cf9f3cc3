"""Keys and paths, without a mount."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings

from sluice_s3.storage_drivers.errors import BlobMissing
from sluice_s3.storage_drivers.tree import Stamp, paths, types
from tests.support.environment import sized
from tests.unit.storage_drivers.tree.tools import KEYS, SEGMENTS, fits, keys

PLAIN = (
    "a",
    "a/b",
    "%61",
    "a%2fb",
    "k" * 255,
    "x/" + "n" * 255,
    "\x7f",
    "é",
    "e\u0301",
    "...",
    ".sluic",
    "a+",
    "\ufffe",
)
ESCAPED = (
    *("a/", "/a", "/", "//", "a//b", ".", "..", "../a", "a/../b", "a/.", "\0", "n" * 256, "é" * 128),
    *(
        ".sluice",
        ".sluice-keys/a",
        "x/.sluice",
        ".SLUICE-keys",
        ".\u200dsluice-keys/a",
        ".\u017fluice",
        "\uff0esluice",
        ".sluice/tmp",
    ),
)


@pytest.mark.parametrize("key", PLAIN)
def test_what_can_be_a_path_is_one(key: str) -> None:
    assert paths.direct_path("b", key) == f"b/{key}"


@pytest.mark.parametrize("key", ESCAPED)
def test_what_cannot_be_a_path_is_escaped(key: str) -> None:
    assert paths.direct_path("b", key) is None
    assert paths.key_of("b", paths.escaped_path("b", key)) == key


@settings(max_examples=sized(500, 10_000), deadline=None)
@given(keys())
def test_every_key_comes_back_from_its_path(key: str) -> None:
    plain, escaped = paths.direct_path("b", key), paths.escaped_path("b", key)
    assert plain is None or paths.key_of("b", plain) == key
    assert paths.key_of("b", escaped) == key
    for path in (plain, escaped):
        if path is not None:
            parts = paths.validated_key(path).split(b"/")
            assert all(0 < len(part) <= 255 and part not in (b".", b"..") and b"\0" not in part for part in parts)
    assert max(len(part) for part in escaped.split("/")) <= 200


@settings(max_examples=sized(200, 5000), deadline=None)
@given(keys(), keys())
def test_no_escaped_path_is_anothers_directory_or_twin(one: str, two: str) -> None:
    first, second = paths.escaped_path("b", one), paths.escaped_path("b", two)
    if one != two:
        assert not second.startswith(f"{first}/")
        assert unicodedata.normalize("NFKC", first).casefold() != unicodedata.normalize("NFKC", second).casefold()
    assert first.isascii()
    assert first == first.lower()


@pytest.mark.parametrize(
    "path",
    [
        *("b", "b/", "other/a", "b/a//b", "b/../a", "b/a/.", "b/.sluice/a", "b/x/.sluice-keys/a", "b/.sluice-keys/"),
        *("b/.sluice-keys/A", "b/.sluice-keys/%4a%zz", "b/.sluice-keys/%ff", "b/.sluice-keys/a/b", "b/.sluice-keys/a+"),
        *("b/.sluice-keys/" + "a" * 200, "b/.sluice-keys/%61", "b/\udcff", "b/" + "k/" * 512 + "k"),
    ],
)
def test_no_key_of_ours_is_there(path: str) -> None:
    assert paths.key_of("b", path) is None


@pytest.mark.parametrize("key", [key for key in (*KEYS, *SEGMENTS) if fits(key)])
def test_careful_names_are_lower_case_and_plain(key: str) -> None:
    path = paths.direct_path("b", key, careful=True)
    if path is not None:
        assert path.isascii()
        assert path == path.lower()
        assert not any(part.endswith(".") or set(part) & set('\\:*?"<>| \t') for part in path.split("/"))


@pytest.mark.parametrize("name", [".nfs000000000000a1b200000001", ".fuse_hidden0000000300000001"])
def test_what_a_mount_leaves_of_open_files(name: str) -> None:
    assert paths.is_silly_rename(name)
    assert not paths.is_silly_rename(name + "x")


@pytest.mark.parametrize("stamp", [Stamp(0, 0, 0), Stamp(5 << 30, -1, 1 << 63), Stamp(1, 1795249891444559953, 17)])
@pytest.mark.parametrize("path", ["b/a", "b/a:b/c\nd", "b/t:1.2.3:b/x"])
def test_a_locator_says_what_it_was_made_of(stamp: Stamp, path: str) -> None:
    assert types.parse(types.locator(path, stamp)) == (path, stamp)


@pytest.mark.parametrize(
    "text", ["", "t:", "t:1.2:b/a", "t:1.2.3:b", "f:0000000000000001", "t:1.2.3:/a", "t:g.2.3:b/a"]
)
def test_no_locator(text: str) -> None:
    with pytest.raises(BlobMissing):
        types.parse(text)


@pytest.mark.parametrize("path", ["b", "", "b//a", "/a", "b/../a", "b/./a", "b/a\0", "b/\udcff"])
def test_no_path_leaves_the_store(path: str) -> None:
    with pytest.raises(BlobMissing):
        paths.validated_key(path)
