"""The fake Bot API reads texts and forms in a number of steps that grows with them, and not with their square."""

from contextlib import suppress
from typing import Any

import pytest

from frontdesk_testing.telegram.bodies import read_parameters
from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.markup.entities import format_text
from frontdesk_testing.telegram.privacy import mentions
from tests.linear.test_loops import Reads, grows


def build_reader(mode: str) -> Reads:
    def read(text: str, units: int) -> Any:
        with suppress(ApiError):
            return format_text(text, mode, None)

    return read


def format_given(text: str, units: int) -> Any:
    bold = [{"type": "bold", "offset": place, "length": units - place} for place in range(units)]
    with suppress(ApiError):
        return format_text(text, None, bold)


def form(text: str, units: int) -> Any:
    body = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + text + "\r\n--x--"
    with suppress(ApiError):
        return read_parameters("", "multipart/form-data; boundary=x", body.encode())


def list_named(text: str, units: int) -> Any:
    found = [{"type": "mention", "offset": place, "length": 1} for place in range(units)]
    return mentions({"text": text, "entities": found})


READERS: dict[str, Reads] = {
    "HTML": build_reader("HTML"),
    "MarkdownV2": build_reader("MarkdownV2"),
    "Markdown": build_reader("Markdown"),
    "plain": build_reader(""),
    "entities": format_given,
    "a form": form,
    "mentions": list_named,
}
UNITS = [
    *(
        "a",
        " ",
        "\n",
        "😀",
        "<b>",
        "</b>",
        "<b>a</b>",
        "<a href='x",
        "&lt;",
        "&",
        "<b a ",
        "<pre><code>",
        "*",
        "_",
        "__",
    ),
    *(
        "||",
        "`",
        "```",
        "```a\n",
        "[",
        "[a](b)",
        "![",
        "\\",
        ">",
        ">a\n",
        "@some_one ",
        "/a",
        "#",
        "http://",
        "a@b.",
        "~a~",
    ),
    *("\r\n--x", "\r\n--x\r\n\r\n", 'name="', "*a* ", "[a", "(", ">||a||\n"),
]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_linear_time(name: str) -> None:
    wrong = [told for unit in UNITS if (told := grows(READERS[name], unit, 60))]
    assert not wrong, wrong
