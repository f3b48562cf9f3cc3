"""Names in archives: safe to unpack, and unique."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.admin.archives.entry_names import EntryNames


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("photos/a.jpg", "photos/a.jpg"),
        ("../../etc/passwd", "__/__/etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("a//b/./c", "a/b/c"),
        ("C:\\Windows\\x", "C__Windows_x"),
        ("nul\x00byte\n", "nul_byte_"),
        ("cod\u202etxt.exe", "cod_txt.exe"),
        ("dots. . ", "dots____"),
        ("...", "___"),
        ("empty/", "empty/"),
        ("/", "_/"),
        ("ж" * 200, "ж" * 120),
    ],
)
def test_names_cannot_leave_their_folder(key: str, name: str) -> None:
    assert EntryNames().name(key) == name


def test_no_two_entries_share_a_name() -> None:
    names = EntryNames()
    assert [names.name(key) for key in ("a.txt", "A.TXT", "./a.txt", "a.txt/b", "d/x", "d")] == [
        "a.txt",
        "A (2).TXT",
        "a (3).txt",
        "a (4).txt/b",
        "d/x",
        "d (2)",
    ]


def test_many_equal_names_cost_no_search_each() -> None:
    names = EntryNames()
    made = {names.name(f"{chr(1 + number % 8)}") for number in range(5000)}
    assert len(made) == 5000
    assert "_ (5000)" in made


def test_a_folder_keeps_its_name() -> None:
    names = EntryNames()
    made = [names.name(key) for key in ("a", "a/x", "a/y", "A/z", "a (2)")]
    assert made == ["a", "a (2)/x", "a (2)/y", "a (2)/z", "a (2) (2)"]


@given(st.lists(st.text(max_size=12), max_size=12))
def test_any_keys_unpack_side_by_side(keys: list[str]) -> None:
    names = EntryNames()
    made = [names.name(key) for key in keys]
    files = [name.casefold() for name in made if not name.endswith("/")]
    assert len(set(files)) == len(files)
    for name in made:
        segments = name.rstrip("/").split("/")
        assert not {"", ".", ".."} & set(segments)
        above = {"/".join(segments[:count]).casefold() for count in range(1, len(segments))}
        assert not above & set(files)
