"""A picture that was sent is stored once, reaches the model each time, and is shown on the wire as it came."""

import base64
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content

from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.messages.wire import Media
from frontdesk_testing.store_samples import data_uri
from tests.scenarios.desk import InvocationsHost, open_client
from tests.scenarios.messages.chat import open_chat

PICTURE = data_uri("cat", 60_000)
RAW = PICTURE.partition(",")[2]
SELECT = "SELECT data FROM "
WORDS = ["a cat", "the same cat", "and again"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontdesk.db"


@asynccontextmanager
async def desk(path: Path, model: ScriptedChatClient) -> AsyncIterator[InvocationsHost]:
    channels = [InvocationsChannel(), ResponsesChannel(), ConversationsChannel()]
    async with open_client(Agent(client=model, name="A"), channels=channels, store=SqliteStateStore(path)) as opened:
        yield opened


def pictures_seen(model: ScriptedChatClient) -> list[int]:
    """How many pictures the model was given at each call, each of them whole."""
    uris = [[content.uri for message in call for content in message.contents if content.uri] for call in model.seen]
    assert {uri for call in uris for uri in call} <= {PICTURE}
    return [len(call) for call in uris]


def count_stored(path: Path) -> tuple[int, int]:
    """How many bytes lie in files, and how often the picture lies in the database."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("SELECT COALESCE(SUM(size), 0) FROM files").fetchone()
        tables = ("history", "runs", "items", "inbox", "background")
        rows = [bytes(data) for table in tables for (data,) in connection.execute(SELECT + table)]
    return size, sum(data.count(RAW.encode()) for data in rows)


def build_input(text: str) -> list[Any]:
    content = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": PICTURE}]
    return [{"role": "user", "content": content}]


async def test_responses_show_what_was_sent(path: Path) -> None:
    model = ScriptedChatClient(WORDS)
    async with desk(path, model) as opened:
        first = (await opened.client.post("/responses", json={"input": build_input("what is that?")})).json()
        items = (await opened.client.get(f"/responses/{first['id']}/input_items")).json()["data"]
        assert [part.get("image_url") for part in items[0]["content"]] == [None, PICTURE]
        body = {"input": "sure?", "previous_response_id": first["id"]}
        second = (await opened.client.post("/responses", json=body)).json()
        assert second["output"][0]["content"][0]["text"] == "the same cat"
    assert count_stored(path) == (60_000, 0)
    # Another process knows it as well.
    model = ScriptedChatClient(WORDS[2:])
    async with desk(path, model) as opened:
        body = {"input": build_input("and this?"), "previous_response_id": second["id"], "background": True}
        third = (await opened.client.post("/responses", json=body)).json()
        while third["status"] in ("queued", "in_progress"):
            third = (await opened.client.get(f"/responses/{third['id']}")).json()
        assert third["status"] == "completed", third
        items = (await opened.client.get(f"/responses/{third['id']}/input_items")).json()["data"]
        assert PICTURE in str(items)
    assert pictures_seen(model) == [2]
    assert count_stored(path) == (60_000, 0)


async def test_a_conversation_lists_what_was_sent(path: Path) -> None:
    model = ScriptedChatClient(WORDS)
    async with desk(path, model) as opened:
        talk = (await opened.client.post("/v1/conversations", json={"items": build_input("keep this")})).json()["id"]
        body = {"input": build_input("and this"), "conversation": talk}
        answered = await opened.client.post("/responses", json=body)
        assert answered.status_code == 200, answered.text
        items = (await opened.client.get(f"/v1/conversations/{talk}/items")).json()["data"]
    uris = [part["image_url"] for item in items for part in item["content"] if "image_url" in part]
    assert uris == [PICTURE, PICTURE]
    assert pictures_seen(model) == [2]
    assert count_stored(path) == (60_000, 0)


async def test_an_invocation_goes_on_with_what_was_sent(path: Path) -> None:
    model = ScriptedChatClient(WORDS)
    parts = [{"type": "text", "text": "look"}, {"type": "data", "data": RAW, "media_type": "image/png"}]
    async with desk(path, model) as opened:
        answered = await opened.client.post("/invocations", json={"message": parts})
        assert answered.status_code == 200, answered.text
        body = {"message": "sure?", "session_id": answered.json()["session_id"]}
        assert (await opened.client.post("/invocations", json=body)).json()["text"] == "the same cat"
    assert pictures_seen(model) == [1, 1]
    assert count_stored(path) == (60_000, 0)


async def test_a_picture_in_a_chat_and_one_that_the_model_made(path: Path) -> None:
    made = Content.from_uri(PICTURE, media_type="image/png")
    model = ScriptedChatClient([[Content.from_text("here:"), made], "the same"])
    async with open_chat(Agent(client=model, name="A"), store=SqliteStateStore(path)) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "like this", media=[Media(media_type="image/png", data=RAW, name="a.png")])
        _, shown = await chat.platform.wait_for_answers(ada.chat_id, 2)
        assert [media.data for media in shown.media] == [RAW]
        await chat.platform.say(ada, "which?")
        await chat.platform.wait_for_answers(ada.chat_id, 3)
    assert pictures_seen(model) == [1, 2]
    # Once for the event, which has no owner yet, and once for its sender.
    assert count_stored(path) == (120_000, 0)


async def test_small_data_and_texts_are_stored_as_ever(path: Path) -> None:
    model = ScriptedChatClient(WORDS)
    small = f"data:text/plain;base64,{base64.b64encode(b'small').decode()}"
    content = [{"type": "input_text", "text": PICTURE[:5000]}, {"type": "input_file", "file_data": small}]
    async with desk(path, model) as opened:
        answered = await opened.client.post("/responses", json={"input": [{"role": "user", "content": content}]})
        assert answered.status_code == 200, answered.text
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM files").fetchone() == (0,)
        (data,) = connection.execute("SELECT data FROM history").fetchone()
    assert re.match(rb'\{"v":1,', bytes(data))
