"""The examples with Telegram, on a strict fake of its platform, and the requests of a .rest file."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk_testing import serving
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from tests.docs.pages import ROOT
from tests.docs.running import example
from tests.scenarios.design.telegram import TelegramUser

KEY = {"x-api-key": "alice-key-for-the-laptop"}
EXAMPLES = ROOT / "docs/examples"


@pytest.fixture
async def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[FakeTelegram]:
    monkeypatch.chdir(tmp_path)
    async with fake_telegram() as telegram:
        monkeypatch.setenv("BOT_TOKEN", telegram.token)
        monkeypatch.setenv("TELEGRAM_API_URL", telegram.url)
        yield telegram


def _extract_text(name: str) -> str:
    return (EXAMPLES / name).read_text("utf-8")


def _entries(directory: str) -> list[str]:
    return os.listdir(directory)


async def play(text: str, http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """The answers to the requests in the text of a .rest file, with its variables and the answers that it names."""
    given: dict[str, str] = {}
    answers: list[dict[str, Any]] = []
    named: dict[str, Any] = {}

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name in given:
            return given[name]
        request, _, field = name.partition(".response.body.")
        return str(named[request][field])

    for block in text.split("###"):
        given.update(re.findall(r"^@(\w+) = (\S+)$", block, re.MULTILINE))
        name = re.search(r"^# @name (\w+)$", block, re.MULTILINE)
        found = re.search(r"^(GET|POST) (\S+)\n((?:[\w-]+: [^\n]*\n)*)(?:\n(.*))?", block, re.MULTILINE | re.DOTALL)
        if found is None:
            continue
        method, url, lines, body = found.groups()
        headers = dict(line.split(": ", 1) for line in lines.splitlines())
        url = re.sub(r"\{\{(.+?)\}\}", value, url).removeprefix(given["host"])
        content = re.sub(r"\{\{(.+?)\}\}", value, (body or "").strip())
        answer = await http.request(method, url, headers=headers, content=content)
        answers.append(answer.raise_for_status().json())
        if name is not None:
            named[name.group(1)] = answers[-1]
    return answers


async def test_audit_265_a_typed_workflow_behind_two_channels_with_checkpoints(fake: FakeTelegram) -> None:
    async with serving(example(EXAMPLES / "order_workflow.py")) as client:
        answers = await play(_extract_text("order_workflow.rest"), client.http)
        assert [answer["text"] for answer in answers] == ["c-1: tea", "c-1: tea, cake", "c-1: tea, jam", "c-1: tea"]
        ann = TelegramUser.of(fake, "Ann", 7)
        ann.say("bread")
        assert await ann.wait_for_answers(1) == ["7: bread"]
        ann.say("milk")
        assert await ann.wait_for_answers(2) == ["7: bread", "7: bread, milk"]
    assert "checkpoints" in _entries("orders")
    # A restart goes on from the last checkpoint.
    async with serving(example(EXAMPLES / "order_workflow.py")) as client:
        ann.say("eggs")
        assert (await ann.wait_for_answers(3))[-1] == "7: bread, milk, eggs"


async def test_audit_268_an_answer_over_http_is_shown_on_telegram_as_well(fake: FakeTelegram) -> None:
    async with serving(example(EXAMPLES / "telegram_multicast.py")) as client:
        alice, eve = TelegramUser.of(fake, "Alice", 42), TelegramUser.of(fake, "Eve", 666)
        alice.say("one")
        assert await alice.wait_for_answers(1) == ["You said: one"]

        async def ask(text: str, **more: Any) -> str:
            answer = await client.http.post("/responses", json={"input": text, **more}, headers=KEY)
            return answer.raise_for_status().json()["output"][0]["content"][0]["text"]

        # One conversation, and the answer is at both.
        assert await ask("two", hosting={"show_on": "telegram"}) == "You said: one / two"
        assert (await alice.wait_for_answers(3))[1:] == ["two", "You said: one / two"]
        # Without being asked for, Telegram shows nothing.
        assert await ask("three") == "You said: one / two / three"
        alice.say("four")
        assert (await alice.wait_for_answers(4))[3:] == ["You said: one / two / three / four"]
        eve.say("hello")
        assert "can't use this assistant" in (await eve.wait_for_answers(1))[0]


async def test_the_command_of_the_example_is_one_that_works(fake: FakeTelegram) -> None:
    text = _extract_text("telegram_multicast.py")
    (body,) = re.findall(r"-d '(.*?)'", text)
    async with serving(example(EXAMPLES / "telegram_multicast.py")) as client:
        alice = TelegramUser.of(fake, "Alice", 42)
        alice.say("one")
        await alice.wait_for_answers(1)
        answer = await client.http.post("/responses", content=body, headers=KEY)
        assert answer.status_code == 200
        assert (await alice.wait_for_answers(3))[1] == "hello"
