"""Text in documents: a page of keys is encoded as a whole, faster than key by key."""

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
@given(st.lists(st.one_of(CHARACTERS, st.text("aZ09/-_.~*%(&\0", max_size=4)), max_size=4))
@example([])
@example([""])
@example(["photos/2024-01-01/IMG_0001.jpg", "a~b*c", ""])
@example(["a", "<"])
@example(["%28", "(", "100 %"])
@example(["a", "b\0(c", "d"])
def test_texts_together_are_encoded_as_each_is(encode: Callable[[str], str], texts: list[str]) -> None:
    assert list(xml.encode_all(texts, encode)) == list(map(encode, texts))


@pytest.mark.parametrize("character", "&<>\"'\r\0\x1f\x7f\x80\uffff")
def test_escape_changes(character: str) -> None:
    assert xml.escape(character) != character


@pytest.mark.parametrize("character", " &<%+?#(\xe9\x7f")
def test_url_encoding_changes(character: str) -> None:
    assert xml.url_encode(character) != character
    assert unquote(xml.url_encode(character)) == character


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
def test_escaped_text_comes_back(text: str) -> None:
    assert (ElementTree.fromstring(f"<a>{xml.escape(text)}</a>").text or "") == text


def test_times() -> None:
    assert xml.timestamp(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
