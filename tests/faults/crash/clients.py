"""Clients that keep books: what was acknowledged to them, and of what they don't know."""

import json
from random import Random
from typing import Any

import httpx

from frontdesk_testing import parse_sse
from tests.faults.crash.books import Book, Question, Said, Tally
from tests.faults.crash.processes import HostProcess
from tests.faults.crash.server import RECALL, TOLD


class CutOffError(Exception):
    """The host went away before its answer was there."""


class Client:
    """One person with one conversation; `host` may be another one at each turn."""

    exactly = False

    def __init__(self, book: Book, tally: Tally, dice: Random) -> None:
        self.book = book
        self._tally = tally
        self._dice = dice

    async def turn(self, host: HostProcess) -> None:
        """Says the next thing, whatever that is."""
        raise NotImplementedError

    async def recall(self, host: HostProcess) -> Said:
        """What the agent is sent of the conversation."""
        raise NotImplementedError

    async def _say(self, host: HostProcess, text: str, path: str, body: dict[str, Any]) -> Any:
        """Notes how it went; the answer is acknowledged when the last byte of a good one has come."""
        try:
            answer = await self._post(host, path, body)
        except CutOffError:
            self.book.unknown.append(text)
            self._tally.unknown += 1
            raise
        if answer is None:
            self.book.unknown.append(text)
            return None
        self.book.acknowledged.append(text)
        self._tally.acknowledged += 1
        return answer

    async def _post(self, host: HostProcess, path: str, body: dict[str, Any]) -> Any:
        """The answer as it is at its end, or nothing if it was refused."""
        try:
            response = await host.client.post(path, json=body)
            found: Any = response.json() if not body.get("stream") or response.is_error else _last(response.content)
        except (httpx.TransportError, ValueError) as error:
            raise CutOffError from error
        if response.is_error or found["status"] != "completed":
            self._count_refusal(response, found)
            return None
        return found

    def _count_refusal(self, response: httpx.Response, found: Any) -> None:
        if response.status_code == 409 and found["error"]["code"] == "session_busy":
            self._tally.busy += 1
        else:
            self._tally.refused += 1
            print(f"{self.book.name}: {response.status_code} {found}", flush=True)


class Named(Client):
    """Speaks Invocations, in a session that it named; now and then it wants something paid for."""

    async def turn(self, host: HostProcess) -> None:
        pending = [one for one in self.book.questions if one.state == "pending"]
        if pending and self._dice.random() < 0.3:
            await self.answer(host, self._dice.choice(pending))
            return
        pays = self._dice.random() < 0.3
        text = self.book.next("pay " if pays else "")
        stream = self._dice.random() < 0.3
        found = await self._say(
            host, text, "/invocations", {"message": text, "session_id": self.book.name, "stream": stream}
        )
        if found is not None and pays:
            (question,) = found["approvals"]
            self.book.questions.append(Question(question["id"], question["arguments"]["item"]))
            self._tally.questions += 1

    async def answer(self, host: HostProcess, question: Question) -> None:
        """Allows a payment. One that may have been allowed before counts as used up, if the host says so."""
        again = question.state == "unknown"
        question.state = "unknown"
        body = {"approval": {"id": question.approval_id, "approved": True}}
        try:
            response = await host.client.post("/invocations", json=body)
            found = response.json()
        except httpx.TransportError as error:
            raise CutOffError from error
        if response.status_code == 200:
            question.state = "answered"
        elif found["error"]["code"] == "approval_answered" and again:
            question.state = "used"
        elif found["error"]["code"] in ("approval_answered", "not_found"):
            self._tally.questions_lost += 1
        else:
            self._count_refusal(response, found)

    async def recall(self, host: HostProcess) -> Said:
        found = await self._post(host, "/invocations", {"message": RECALL, "session_id": self.book.name})
        return [] if found is None else _read_told(found["text"])


class Chained(Client):
    """Speaks Responses: each turn continues the last one that was acknowledged, so it has no other history."""

    exactly = True
    _last: str | None = None

    async def turn(self, host: HostProcess) -> None:
        text = self.book.next()
        found = await self._say(host, text, "/v1/responses", self._body(text, stream=self._dice.random() < 0.3))
        if found is not None:
            self._last = found["id"]

    async def recall(self, host: HostProcess) -> Said:
        found = await self._post(host, "/v1/responses", self._body(RECALL, store=False))
        return [] if found is None else _read_told(found["output"][0]["content"][0]["text"])

    def _body(self, text: str, **more: Any) -> dict[str, Any]:
        return {"model": "any", "input": text, **more, **({"previous_response_id": self._last} if self._last else {})}


def _last(body: bytes) -> Any:
    found = parse_sse(body)[-1].json()
    return found.get("response", found)


def _read_told(text: str) -> Said:
    return [(role, said) for role, said in json.loads(text.removeprefix(TOLD))]
