"""A person writes to a bot on the page of the fake."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from frontdesk_testing.telegram import FakeTelegram
from frontdesk_testing.telegram.page.routes import PeoplePage
from frontdesk_testing.telegram.server import serve_on
from tests.browser import chromium, need_chromium
from tests.testing.telegram.starting import bot_at


@asynccontextmanager
async def serve_page() -> AsyncIterator[tuple[FakeTelegram, httpx.AsyncClient]]:
    telegram = FakeTelegram(privacy=False)
    async with serve_on(telegram.app(PeoplePage(telegram).routes()), 0) as url:
        telegram.url = url
        try:
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
                yield telegram, http
        finally:
            await telegram.close()


async def post(http: httpx.AsyncClient, path: str, /, **body: Any) -> Any:
    answer = await http.post(f"/people/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_page_acts_for_people() -> None:
    async with serve_page() as (telegram, http), bot_at(telegram) as bot:
        ann = (await post(http, "user", first_name="Ann", language_code="de"))["id"]
        await post(http, "act", user=ann, action="start", payload="p")
        said = await post(http, "say", user=ann, text="one")
        content = base64.b64encode(b"bytes").decode()
        await post(http, "say", user=ann, text="c", file={"kind": "document", "name": "a.txt", "content": content})
        await post(http, "change", user=ann, chat=ann, message_id=said["message_id"], text="two")
        forum = (await post(http, "group", title="F", users=[ann], forum=True))["id"]
        topic = (await post(http, "topic", user=ann, chat=forum, name="T"))["message_thread_id"]
        await post(http, "say", user=ann, chat=forum, text="in it", thread=topic)
        updates = await bot.updates()
        texts = [update["message"]["text"] for update in updates if "text" in update.get("message", {})]
        assert texts == ["/start p", "one", "in it"]
        assert any("edited_message" in update for update in updates)
        markup = {"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}
        sent = await bot.call("sendMessage", chat_id=ann, text="hi", reply_markup=markup)
        await bot.call("setMyCommands", commands=[{"command": "help", "description": "Help"}])
        await post(http, "press", user=ann, chat=ann, message_id=sent["message_id"], button="Go")
        (update,) = await bot.updates()
        await bot.call("answerCallbackQuery", callback_query_id=update["callback_query"]["id"], text="Done")
        await bot.call("sendMessageDraft", chat_id=ann, draft_id=1, text="d", can_stop=True)
        state = (await http.get("/people/state", params={"chat": ann, "user": ann})).json()
        assert [message["text"] for message in state["transcript"]["messages"]] == ["/start p", "two", "c", "hi"]
        assert (state["menu"], state["answers"][0]["text"]) == ({"help": "Help"}, "Done")
        assert [chat["type"] for chat in state["chats"]] == ["private", "supergroup"]
        await post(http, "act", user=ann, action="stop")
        await post(http, "change", user=ann, chat=ann, message_id=said["message_id"])
        await post(http, "act", user=ann, action="block")
        assert "blocked" in await bot.read_refusal("sendMessage", chat_id=ann, text="x")
        await post(http, "act", user=ann, action="unblock")
        await post(http, "fail", method="getMe", code=502, description="Bad Gateway", retry_after=1)
        assert await bot.read_refusal("getMe") == "Bad Gateway"
        before = telegram.clock.now()
        await post(http, "advance", seconds=60)
        assert telegram.clock.now() - before >= 60


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("say", {"user": 1}),
    ("say", {"user": "x"}),
    ("say", {"user": 77, "text": " "}),
    ("say", {"user": 77, "text": "x", "file": {"kind": "hologram", "name": "a", "content": ""}}),
    ("group", {"title": "G", "users": []}),
    ("act", {"user": 77, "action": "dance"}),
    ("act", {"user": 77, "action": "stop"}),
    ("press", {"user": 77, "chat": 77, "message_id": 9, "button": "x"}),
    ("dance", {}),
]


async def test_what_cannot_be_done_is_told() -> None:
    async with serve_page() as (telegram, http):
        telegram.user("Ann", user_id=77)
        for action, body in REFUSED:
            answer = await http.post(f"/people/{action}", json=body)
            assert answer.status_code in (400, 404), body
            assert answer.json()["error"]


async def test_another_sites_form_can_do_nothing() -> None:
    async with serve_page() as (telegram, http):
        answer = await http.post(
            "/people/user", content=b'{"first_name":"Eve"}', headers={"content-type": "text/plain"}
        )
        assert answer.status_code == 404
        assert [user.first_name for user in telegram.world.users.values()] == ["The desk"]
        assert (await http.get("/people/state?after=x")).status_code == 400


async def test_the_page_waits_for_a_change() -> None:
    async with serve_page() as (telegram, http):
        ann = telegram.user("Ann")
        changes = (await http.get("/people/state")).json()["changes"]
        waiting = asyncio.create_task(
            http.get("/people/state", params={"after": changes, "chat": ann.id, "user": ann.id})
        )
        telegram.say(ann, "hello")
        assert (await waiting).json()["transcript"]["messages"][0]["text"] == "hello"


async def test_the_fake_is_a_process_that_ends_with_its_parent() -> None:
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "frontdesk_testing.telegram", "--with-parent", "--person", "Bob", "--token", "5:x"]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            assert (await http.get("/bot5:x/getMe")).json()["result"]["id"] == 5
            users = (await http.get("/people/state")).json()["users"]
            assert [user["first_name"] for user in users] == ["Bob"]
            assert "Fake Telegram" in (await http.get("/")).text
    finally:
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_a_person_writes_and_presses_on_a_phone() -> None:
    program = need_chromium("the page of the fake Telegram")
    async with serve_page() as (telegram, _), bot_at(telegram) as bot, chromium(program) as new_tab:
        ann = telegram.user("Ann")
        chat = telegram.private(ann)
        tab = await new_tab()
        page = tab.page
        await page.goto(telegram.url)
        await page.fill("#text", "hello <b>")
        await page.click("text=Send")
        await telegram.until(lambda: telegram.shown(chat).texts == ["hello <b>"])
        markup = {"inline_keyboard": [[{"text": "Go on", "callback_data": "go"}]]}
        bold = [{"type": "bold", "offset": 4, "length": 2}]
        sent = await bot.call("sendMessage", chat_id=ann.id, text="<i> 😀 x", entities=bold, reply_markup=markup)
        await page.click("text=Go on")
        await telegram.until(lambda: telegram.bot.callbacks)
        assert await page.inner_text(".message b") == "😀"
        (callback,) = telegram.bot.callbacks
        await bot.call("answerCallbackQuery", callback_query_id=callback, text="Going")
        await page.locator("#status", has_text="Going").wait_for()
        await bot.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="done " * 40)
        await page.wait_for_selector("text=done done")
        cells = [[{"text": ["a ", {"type": "bold", "text": "cell"}], "align": "right", "valign": "top"}]]
        blocks = [{"type": "heading", "size": 2, "text": "<i>Report"}, {"type": "table", "cells": cells}]
        await bot.call("sendRichMessage", chat_id=ann.id, rich_message={"blocks": blocks})
        await page.wait_for_selector(".rich td >> text=a cell")
        assert await page.inner_text(".rich h2") == "<i>Report"
        await bot.call("sendChatAction", chat_id=ann.id, action="typing")
        await page.wait_for_selector("text=typing…")
        await page.click("text=New group")
        await page.fill("#answer", "Team")
        await page.click("dialog >> text=OK")
        await page.fill("#text", "all of you")
        await page.wait_for_selector("nav button[aria-pressed=true] >> text=Team")
        await page.press("#text", "Enter")
        await telegram.until(
            lambda: any("all of you" in telegram.shown(group).texts for group in telegram.world.chats.values())
        )
        assert await tab.fits()
        assert tab.complaints == []
