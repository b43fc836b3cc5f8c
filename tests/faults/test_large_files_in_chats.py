"""Large files of a chat are decoded and encoded away from the event loop, so that nobody else waits for them."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk.channels.telegram import channel, client
from frontdesk.chat import media
from frontdesk.concurrency.offload import MIN_LARGE_BYTES
from frontdesk_testing import EchoAgent
from frontdesk_testing.telegram import Upload
from tests.faults.test_large_work_of_others import note_threads
from tests.scenarios.telegram.bot import SECRET, open_bot


class Mirror(EchoAgent):
    """Answers with a file."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._uri = f"data:text/plain;base64,{base64.b64encode(data).decode()}"

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        file = Content.from_uri(self._uri, media_type="text/plain")
        yield AgentResponseUpdate(contents=[file], role="assistant")


@pytest.mark.parametrize(("size", "on_loop"), [(100, True), (2 * MIN_LARGE_BYTES, False)])
async def test_a_file_that_came_or_went_stopped_everybody(
    monkeypatch: pytest.MonkeyPatch, size: int, on_loop: bool
) -> None:
    data = b"x" * size
    async with open_bot(Mirror(data)) as bot:
        ada = bot.fake.user("Ada")
        noted = {
            "a file that came": note_threads(monkeypatch, media, "data_content"),
            "a file to send": note_threads(monkeypatch, channel, "send_calls"),
            "its form": note_threads(monkeypatch, client, "encode_form"),
        }
        bot.fake.say(ada, "look", media=("document", Upload(data, "a.txt", "text/plain")))
        await bot.answers(bot.fake.private(ada))
        await bot.wait_for_ends()
    assert noted == {name: [on_loop] for name in noted}


@pytest.mark.parametrize(("size", "on_loop"), [(100, True), (2 * MIN_LARGE_BYTES, False)])
async def test_an_update_that_was_long_stopped_everybody(
    monkeypatch: pytest.MonkeyPatch, size: int, on_loop: bool
) -> None:
    async with open_bot(EchoAgent()) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.private(ada)
        noted = note_threads(monkeypatch, channel, "read_update")
        person: dict[str, Any] = {"id": ada.id, "is_bot": False, "first_name": "Ada"}
        message = {"message_id": 1, "date": 1, "chat": {"id": ada.id, "type": "private"}, "from": person}
        body = {"update_id": 5, "message": {**message, "text": "hi", "unknown": "x" * size}}
        answer = await bot.http.post("/telegram/events", json=body, headers={"x-telegram-bot-api-secret-token": SECRET})
        assert answer.status_code == 200
        await bot.says(bot.fake.private(ada), "hi")
    assert noted == [on_loop]
