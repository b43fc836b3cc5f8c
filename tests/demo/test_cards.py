"""The demo has something for each card of the page."""

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from frontdesk.demo import build_host
from frontdesk.demo.host import HEIGHT, PROMPTS, WIDTH, ScriptedClient, sea_view
from frontdesk_testing import serving
from tests.channels.web.visiting import Visitor, open_visitor


def test_the_picture_is_a_png() -> None:
    data = sea_view()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (WIDTH, HEIGHT)
    length = struct.unpack(">I", data[33:37])[0]
    assert len(zlib.decompress(data[41 : 41 + length])) == HEIGHT * (1 + 3 * WIDTH)


async def answers_to_prompts(ada: Visitor) -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = {}
    for prompt in PROMPTS:
        before = len(await ada.messages())
        await ada.say(prompt)
        answers[prompt] = (await ada.wait_for_messages(before + 2))[before + 1]
    return answers


async def test_each_prompt_shows_a_card() -> None:
    async with serving(build_host(ScriptedClient(pause=0))) as client, open_visitor(client.base_url) as ada:
        assert (await ada.get("me"))["prompts"] == list(PROMPTS)
        answers = await answers_to_prompts(ada)
        tool = answers["When is breakfast?"]["tools"][0]
        assert (tool["name"], tool["arguments"]) == ("opening_hours", '{"place": "breakfast"}')
        assert any("question" in message for message in await ada.messages())
        assert [file["media_type"] for file in answers["Show me the view"]["files"]] == ["image/png"]
        assert len(answers["What is there to see nearby?"]["citations"]) == 3
        assert len(answers["Tell me the story of the house"]["text"]) > 1_000


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "kept"])
async def test_the_restaurant_asks_with_a_form(kept: bool, tmp_path: Path) -> None:
    host = build_host(ScriptedClient(pause=0), state_dir=tmp_path / "state" if kept else None)
    async with serving(host) as client, open_visitor(f"{client.base_url}/restaurant") as ada:
        await ada.say("A table, please")
        form = (await ada.wait_for_messages(2))[1]["form"]
        assert [field["kind"] for field in form["fields"]] == [
            *("group", "integer", "choice", "choice", "choices", "boolean")
        ]
        values = {"guest": {"name": "Ada"}, "people": 2, "evening": "tonight", "dishes": ["oysters"], "dog": True}
        sent = await ada.post("conversations/main/messages", client_id="f", form={"number": 2, "values": values})
        assert sent.status_code == 200
        said = (await ada.wait_for_messages(4))[3]["text"]
        assert said.startswith("Thank you, Ada: the window for 2, tonight at eight. We keep oysters for you.")
