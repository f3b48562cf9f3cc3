"""Text in documents: a page of keys is looked at as a whole before any of them is escaped."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice_s3.app.s3.wire import xml

ENCODERS = [xml.escape, xml.url_encode]
CHARACTERS = st.text(st.characters(codec="utf-8"), max_size=4)


@pytest.mark.parametrize("encode", ENCODERS)
@given(st.lists(st.one_of(CHARACTERS, st.text("aZ09/-_.~*", max_size=4)), max_size=4))
@example([])
@example(["a", "<"])
def test_plain_texts_are_left_as_they_are(encode: Callable[[str], str], texts: list[str]) -> None:
    if xml.needs_no_encoding(texts, encode):
        assert list(map(encode, texts)) == texts


@pytest.mark.parametrize("encode", ENCODERS)
def test_usual_keys_are_plain(encode: Callable[[str], str]) -> None:
    assert xml.needs_no_encoding(["photos/2024-01-01/IMG_0001.jpg", "a~b*c", ""], encode)


@pytest.mark.parametrize("character", "&<>\"'\r\n\t\0\x1f\x7f\x80\u2028\xe9\uffff")
def test_what_escape_may_change_is_not_plain(character: str) -> None:
    assert not xml.needs_no_encoding(["a", f"b{character}"], xml.escape)


@pytest.mark.parametrize("character", " &<%+?#\xe9\x7f")
def test_what_url_encoding_changes_is_not_plain(character: str) -> None:
    assert not xml.needs_no_encoding([f"{character}"], xml.url_encode)
    assert unquote(xml.url_encode(character)) == character


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
def test_escaped_text_comes_back(text: str) -> None:
    assert (ElementTree.fromstring(f"<a>{xml.escape(text)}</a>").text or "") == text


def test_times() -> None:
    assert xml.timestamp(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
