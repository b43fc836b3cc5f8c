"""Pictures and documents, to the agent and from it."""

import base64

import pytest
from agent_framework import Agent, Content, Message

from frontdesk.channels.web.files import detect_kind, read_files
from frontdesk.channels.web.wire import SentFile
from frontdesk.errors import RequestError
from frontdesk.scripted import ScriptedChatClient
from tests.channels.web.visiting import open_visitor, web_host

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def build_file(data: bytes, media_type: str = "image/png", name: str = "") -> dict[str, str]:
    return {"media_type": media_type, "data": base64.b64encode(data).decode(), "name": name}


async def test_files_go_to_the_agent_and_come_back_from_it() -> None:
    answer = [
        Content.from_text("Here you are."),
        Content.from_uri(f"data:image/png;base64,{base64.b64encode(PNG).decode()}", media_type="image/png"),
    ]
    client = ScriptedChatClient([answer])
    async with web_host(Agent(client, "Draw.")) as url, open_visitor(url) as ada, open_visitor(url) as bob:
        await ada.say(
            "look", files=[build_file(PNG, name="room.png"), build_file(b"<script>", "text/html", "page.html")]
        )
        messages = await ada.wait_for_messages(2)
        picture, page = messages[0]["files"]
        assert [(file["media_type"], file["name"]) for file in (picture, page)] == [
            ("image/png", "room.png"),
            ("text/html", "page.html"),
        ]
        asked: Message = client.seen[0][-1]
        assert [content.type for content in asked.contents] == ["text", "data", "data"]
        (drawn,) = messages[1]["files"]
        assert messages[1]["text"] == "Here you are."
        shown = await ada.http.get(f"/chat/api/files/{drawn['id']}")
        assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
        download = await ada.http.get(f"/chat/api/files/{page['id']}")
        assert download.headers["content-type"] == "application/octet-stream"
        assert download.headers["content-disposition"].startswith("attachment;")
        assert "sandbox" in download.headers["content-security-policy"]
        assert (await bob.http.get(f"/chat/api/files/{drawn['id']}")).status_code == 404


async def test_a_file_alone_is_a_message() -> None:
    client = ScriptedChatClient(["A dot."])
    async with web_host(Agent(client, "Look.")) as url, open_visitor(url) as ada:
        await ada.say("", files=[build_file(PNG)])
        assert (await ada.wait_for_messages(2))[1]["text"] == "A dot."


@pytest.mark.parametrize(
    ("claimed", "data", "kind"),
    [
        ("image/png", PNG, "image/png"),
        ("text/plain", PNG, "image/png"),
        ("image/png", b"<html>", "application/octet-stream"),
        ("text/HTML; charset=x", b"<html>", "text/html"),
        ("no type", b"", "application/octet-stream"),
        ("image/svg+xml", b"<svg>", "image/svg+xml"),
        ("x", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_a_picture_is_known_by_its_content(claimed: str, data: bytes, kind: str) -> None:
    assert detect_kind(claimed, data) == kind


@pytest.mark.parametrize(
    ("data", "count", "code"),
    [
        ("AAA", 1, "invalid_request"),
        ("A*==", 1, "invalid_request"),
        ("AAAA", 3, "too_many_files"),
        ("AAAA" * 9, 1, "files_too_large"),
    ],
)
def test_files_that_are_too_many_too_large_or_broken_are_refused(data: str, count: int, code: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_files([SentFile(media_type="a/b", data=data)] * count, most=2, max_bytes=20)
    assert refused.value.code == code
