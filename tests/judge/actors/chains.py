"""Chains and branches of responses, conversations, and turns over WebSockets."""

import asyncio
import json
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.judge.actors.base import AWAY, Actor
from tests.judge.app import get_key
from tests.judge.steps import parse_heard
from tests.judge.wire import Answer

KNOWN = 12


def extract_text(body: Any) -> str:
    """What a response says."""
    parts = [part for item in body["output"] for part in item.get("content") or () if part["type"] == "output_text"]
    return "".join(part["text"] for part in parts)


class Chains(Actor):
    """Continue responses, the last ones and earlier ones."""

    name = "chains"

    async def prepare(self) -> None:
        self._known: list[tuple[str, str, str]] = []

    async def act(self) -> None:
        word = self.court.word("r")
        line, after, previous = (
            self.rng.choice(self._known) if self._known and self.rng.random() < 0.9 else (word, "", "")
        )
        self.ledger.said[word] = line
        asked = self.ledger.tick()
        body = {"input": word, "previous_response_id": previous or None}
        answer = await self.ask("/v1/responses", body, by=4, leaves=self.leaves())
        if answer is not None and answer.ok and answer.body["status"] == "completed":
            self.ledger.hear(line, word, parse_heard(extract_text(answer.body)), asked, after)
            self._known = [*self._known[-KNOWN:], (line, word, answer.body["id"])]


class Conversations(Actor):
    """Take turns in conversations."""

    name = "conversations"

    async def prepare(self) -> None:
        self._known: list[str] = []

    async def act(self) -> None:
        if len(self._known) < 3 or self.rng.random() < 0.05:
            made = await self.ask("/v1/conversations", {}, by=5)
            if made is not None and made.ok:
                self._known = [*self._known[-3:], made.body["id"]]
            return
        line, word = self.rng.choice(self._known), self.court.word("c")
        asked = self.ledger.say(line, word)
        answer = await self.ask("/v1/responses", {"input": word, "conversation": line}, by=5, leaves=self.leaves())
        self._enter(line, word, asked, answer)

    def _enter(self, line: str, word: str, asked: int, answer: Answer | None) -> None:
        if answer is not None and answer.ok and answer.body["status"] == "completed":
            self.ledger.hear(line, word, parse_heard(extract_text(answer.body)), asked)

    async def settle(self) -> None:
        for line in self._known:
            word = self.court.word("c")
            asked = self.ledger.say(line, word)
            body = {"input": word, "conversation": line}
            self._enter(line, word, asked, await self.court.insist(self.host(), "/v1/responses", body, by=5))


class Sockets(Actor):
    """Take a few turns on a WebSocket, each continuing the one before."""

    name = "sockets"
    clients = 1

    async def act(self) -> None:
        port = self.host().port
        try:
            async with asyncio.timeout(60):
                async with connect(
                    f"ws://127.0.0.1:{port}/v1/responses",
                    additional_headers={"x-api-key": get_key(6)},
                    open_timeout=5,
                    close_timeout=0.1,
                ) as line:
                    await self._turns(line)
        except (OSError, WebSocketException, TimeoutError):
            await asyncio.sleep(AWAY)

    async def _turns(self, line: Any) -> None:
        name, after, previous = self.court.word("socket"), "", None
        for _ in range(self.rng.randrange(1, 4)):
            word = self.court.word("s")
            asked = self.ledger.say(name, word)
            await line.send(json.dumps({"type": "response.create", "input": word, "previous_response_id": previous}))
            async for raw in line:
                event = json.loads(raw)
                if event["type"] == "response.completed":
                    heard = parse_heard(extract_text(event["response"]))
                    self.ledger.hear(name, word, heard, asked, after)
                    after, previous = word, event["response"]["id"]
                    break
                if event["type"] in ("response.failed", "response.incomplete", "error"):
                    return
                if self.rng.random() < 0.02:
                    line.transport.abort()
                    return
