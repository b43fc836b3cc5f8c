"""`frontdesk chat`: a conversation in the terminal."""

import getpass
import json
import re
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from frontdesk.cli.door import Door, Event, RefusedError, UnreachableError, error_text
from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.responses_door import ResponsesDoor
from frontdesk.cli.terminal import Terminal, printable, visible

Approval = dict[str, Any]

_COMMAND = re.compile(r"/\w+")
LATER = ("queued", "in_progress")
WORDS = {"y": True, "yes": True, "n": False, "no": False}


def run(arguments: Namespace) -> int:
    """Run a conversation until the user leaves; return 1 if the input was a pipe and a turn failed."""
    terminal = Terminal()
    key = _api_key(arguments)
    with closing(Door(arguments.url, key)) as first, closing(ResponsesDoor(arguments.url, key)) as second:
        door, name = _entered((first, second), terminal)
        chat = Chat(door, terminal, name, arguments.session)
        if terminal.interactive:
            terminal.tell(f"This is {name} at {arguments.url}. /new starts a new session, /quit leaves.")
        chat.talk()
    return 1 if chat.failed and not terminal.interactive else 0


def _api_key(arguments: Namespace) -> str | None:
    if arguments.api_key_file is None:
        return None if arguments.api_key is None else _usable(arguments.api_key, "--api-key")
    option = f"--api-key-file {arguments.api_key_file}"
    try:
        return _usable(Path(arguments.api_key_file).read_text(errors="replace"), option)
    except OSError as error:
        raise CommandError(f"{option}: {error.strerror}") from None


def _usable(key: str, source: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise CommandError(f"what {source} gives is no key; a key is one line of plain characters")
    return key


def _entered(doors: Sequence[Door], terminal: Terminal) -> tuple[Door, str]:
    """Return the first door behind which an agent says its name; without one, the first that there is."""
    for door in doors:
        name = _agent(door, terminal)
        if name is not None:
            return door, printable(name)
    return doors[0], "agent"


def _agent(door: Door, terminal: Terminal) -> str | None:
    try:
        return door.agent()
    except RefusedError as error:
        if error.status != 401 or not terminal.interactive:
            raise
    door.use_key(_usable(getpass.getpass("API key: "), "API key"))
    return door.agent()


class Chat:
    """One conversation with one agent."""

    def __init__(self, door: Door, terminal: Terminal, name: str, session: str | None) -> None:
        self._door = door
        self._terminal = terminal
        self._name = name
        self._session = session
        self.failed = False

    def talk(self) -> None:
        """Run turns until the input ends."""
        while (line := self._read("you> ")) is not None:
            if line == "/quit":
                return
            if line == "/new":
                self._session = None
                self._terminal.tell("A new session begins.")
            elif _COMMAND.fullmatch(line):
                self._complain(f"there is no {line}; there are /new and /quit")
            elif line:
                self._turn(line)

    def _read(self, prompt: str) -> str | None:
        try:
            return self._terminal.read(prompt)
        except KeyboardInterrupt:
            if not self._terminal.interactive:
                raise
            self._terminal.tell("\n/quit leaves.")
            return ""

    def _turn(self, line: str) -> None:
        body: dict[str, Any] = {"message": line, "stream": True}
        if self._session is not None:
            body["session_id"] = self._session
        waiting = self._send(body)
        asked: set[str] = set()
        while waiting:
            approval = waiting.pop(0)
            # The response to one approval lists the others again.
            if str(approval["id"]) in asked:
                continue
            asked.add(str(approval["id"]))
            approved = self._decide(approval)
            if approved is not None:
                waiting += self._send({"approval": {"id": approval["id"], "approved": approved}})

    def _send(self, body: dict[str, Any]) -> list[Approval]:
        """Send a request and show the answer as it comes; return the approvals that it waits for."""
        try:
            with closing(self._door.send(body)) as events:
                return self._show(events)
        except KeyboardInterrupt:
            self._terminal.tell("\n(cancelled)")
        except CommandError as error:
            if isinstance(error, UnreachableError) and not self._terminal.interactive:
                self._terminal.end_line()
                raise
            self._complain(str(error))
        return []

    def _show(self, events: Iterable[Event]) -> list[Approval]:
        shown = False
        for name, data in events:
            self._session = data.get("session_id") or self._session
            if "status" in data:
                return self._end(data, shown)
            if name == "update" and data.get("text"):
                self._say(str(data["text"]), first=not shown)
                shown = True
        raise UnreachableError("the server broke off its answer")

    def _say(self, text: str, *, first: bool) -> None:
        self._terminal.write(f"{self._name}> {text}" if first and self._terminal.interactive else text)

    def _end(self, data: dict[str, Any], shown: bool) -> list[Approval]:
        if data.get("text") and not shown:
            self._say(str(data["text"]), first=True)
        self._terminal.end_line()
        if data["status"] in LATER:
            self._terminal.tell(f"The answer comes later, as {data.get('id')}.")
        if isinstance(data.get("error"), dict):
            self._complain(error_text(data["error"]))
        approvals: list[Any] = data["approvals"] if isinstance(data.get("approvals"), list) else []
        return [approval for approval in approvals if isinstance(approval, dict) and "id" in approval]

    def _decide(self, approval: Approval) -> bool | None:
        shown = json.dumps(approval.get("arguments"), ensure_ascii=False)
        tool, number = visible(str(approval.get("tool"))), visible(str(approval["id"]))
        self._terminal.tell(f"{self._name} wants to run {tool} with {visible(shown)} ({number})")
        while (answer := self._read("Allow it? y/n> ")) is not None:
            if answer.lower() in WORDS:
                return WORDS[answer.lower()]
            self._terminal.tell("Please answer y or n.")
        self._terminal.tell("Nobody decided.")
        return None

    def _complain(self, text: str) -> None:
        self.failed = True
        self._terminal.complain(text)
