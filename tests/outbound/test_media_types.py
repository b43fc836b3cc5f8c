"""What counts as a media type, and what is made of a header."""

import pytest

from frontdesk.outbound.client import ANY_TYPE, bare_media_type, is_media_type


@pytest.mark.parametrize("text", ["image/png", "application/vnd.api+json", "IMAGE/PNG", "x/" + "y" * 127])
def test_media_types(text: str) -> None:
    assert is_media_type(text)


@pytest.mark.parametrize("text", ["", "image", "image/", "/png", "image/png;q=1", "+x/y", "a b/c", "x/" + "y" * 128])
def test_what_is_no_media_type(text: str) -> None:
    assert not is_media_type(text)


def test_a_header_without_its_parameters() -> None:
    assert bare_media_type(" Text/HTML ; charset=utf-8") == "text/html"
    assert bare_media_type("nonsense") == ANY_TYPE
