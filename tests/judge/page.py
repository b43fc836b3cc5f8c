"""The page of a visitor without a browser: what its script sends and shows, by the wire alone."""

from typing import Any

from tests.judge.app import PAGE
from tests.judge.site import Process
from tests.judge.wire import Answer, CutError, Exchange, ask

_HOST = "127.0.0.1"


class Page:
    """A visitor who has loaded the page, on any host."""

    def __init__(self) -> None:
        self._headers = {"host": _HOST, "origin": f"http://{_HOST}"}
        self._cursor, self._box, self._shows = -1, "", ""
        self.messages: dict[int, dict[str, Any]] = {}
        self.polls = 0
        self.idle = 0
        """How many polls were answered with nothing that the page did not show already."""

    async def load(self, process: Process) -> None:
        """Load the page, and keep its cookie. Raise `CutError` if the host rejects that, as without its database."""
        exchange = await Exchange.begin(process.port, "GET", PAGE, headers=self._headers)
        status = await exchange.status()
        if status != 200:
            raise CutError(f"the page was not served: {status}")
        self._headers["cookie"] = exchange.cookie
        answer = await self._ask(process, "GET", "me")
        if not answer.ok:
            raise CutError(f"the page was not loaded: {answer.status} {answer.code}")
        self._cursor, self._box = answer.body["cursor"], answer.body["box"]

    async def say(self, process: Process, text: str, name: str) -> Answer:
        """Send a message; the same name makes it the same message."""
        return await self._ask(process, "POST", "conversations/main/messages", {"client_id": name, "text": text})

    async def stop(self, process: Process, name: str) -> Answer:
        """Stop what is being answered."""
        return await self._ask(process, "POST", "conversations/main/stop", {"client_id": name})

    async def poll(self, process: Process) -> None:
        """Wait for what is new, and show it."""
        query = f"after={self._cursor}&box={self._box}&shows={self._shows}"
        answer = await self._ask(process, "GET", f"poll?{query}")
        if not answer.ok:
            return
        frame, before = answer.body, repr(self.messages)
        self._cursor, self._box, self._shows = frame["cursor"], frame["box"], frame.get("shows", "")
        for event in frame["events"]:
            self._take(event)
        self.polls += 1
        self.idle += before == repr(self.messages)

    def has_answered(self, word: str) -> bool:
        """Return True if the page shows the whole answer to a word."""
        return any(f'"{word}"]' in one.get("text", "") for one in self.messages.values())

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "message":
            self.messages[event["message"]["number"]] = event["message"]
        elif event["type"] == "delta":
            shown = self.messages[event["number"]]
            shown["text"] = shown.get("text", "")[: event["from"]] + event["text"]

    async def look(self, process: Process) -> list[dict[str, Any]]:
        """Return the messages of the conversation as a page that is loaded anew shows them."""
        answer = await self._ask(process, "GET", "conversations/main/messages")
        return answer.body["messages"] if answer.ok else []

    async def _ask(self, process: Process, method: str, path: str, body: Any = None) -> Answer:
        return await ask(process.port, method, f"{PAGE}/api/{path}", body, headers=self._headers)


def answers_in(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the host says in a conversation, without what it has taken away again."""
    return [one for one in messages if one.get("role", "assistant") != "user" and one.get("state") != "removed"]
