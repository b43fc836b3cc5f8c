"""`frontdesk chat`: a conversation in the terminal."""

import getpass
import json
import re
from argparse import Namespace
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import httpx

from frontdesk.cli.terminal import CommandError, Terminal, visible
from frontdesk.display.escaping import display_arguments

Event = tuple[str, dict[str, Any]]

CONNECT_SECONDS = 10.0
THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


class UnreachableError(CommandError):
    """The URL does not respond."""


class RefusedError(CommandError):
    """The server returned an error."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class ChatApi:
    def __init__(self, url: str, api_key: str | None) -> None:
        self._url = self._place(httpx.URL(url))
        # An answer may take as long as it takes; the user can cancel it.
        timeout = httpx.Timeout(CONNECT_SECONDS, read=None)
        # A proxy from the environment can't reach this machine.
        self._client = httpx.Client(timeout=timeout, trust_env=self._url.host not in THIS_MACHINE)
        self.use_key(api_key)

    def _place(self, url: httpx.URL) -> httpx.URL:
        """Return the URL for messages, given the URL that the user has named."""
        return url

    def use_key(self, api_key: str | None) -> None:
        if api_key is not None:
            self._client.headers["authorization"] = f"Bearer {api_key}"

    def close(self) -> None:
        self._client.close()

    def agent(self) -> str | None:
        """Return the name of the agent if the server provides it. Raises if the server is unreachable or denies
        access."""
        try:
            return str(self._get(f"{self._url.path.rstrip('/')}/docs/openapi.json")["info"]["title"])
        except (ValueError, LookupError, TypeError):
            return None

    def _get(self, path: str) -> Any:
        try:
            response = self._client.get(self._url.copy_with(path=path), timeout=CONNECT_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        if response.status_code in (401, 403):
            raise _build_refusal(response)
        return response.json()

    def send(self, body: Mapping[str, Any]) -> Generator[Event, None, None]:
        """Yield the events of the answer. An answer that is not streamed is one event, named after its status."""
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                if not response.is_success:
                    response.read()
                    raise _build_refusal(response)
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    yield from read_events(response.iter_bytes())
                else:
                    answer = _object(response.read())
                    yield str(answer.get("status")), answer
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        except httpx.HTTPError as error:
            raise UnreachableError(f"{self._url} ended its response early: {_text(error)}") from None

    def _unreachable(self, error: Exception) -> UnreachableError:
        return UnreachableError(f"can't reach {self._url}: {_text(error)}")


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a byte stream. Only the line ends of the protocol count, not those of Unicode."""
    name = "message"
    rest: list[bytes] = []
    for chunk in chunks:
        rest.append(chunk)
        # A long line in small chunks is joined once.
        if b"\n" not in chunk:
            continue
        *lines, last = b"".join(rest).split(b"\n")
        rest = [last]
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b":")
            if field == b"event":
                name = value.strip().decode(errors="replace")
            elif field == b"data":
                yield name, _object(value)
                name = "message"


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandError("the server did not respond with the Invocations protocol")
    return value  # pyright: ignore[reportUnknownVariableType]


def _build_refusal(response: httpx.Response) -> RefusedError:
    try:
        error = _object(response.content)["error"]
        return RefusedError(response.status_code, error_text(error, response.status_code))
    except (CommandError, LookupError, TypeError, AttributeError):
        text = f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
        return RefusedError(response.status_code, text)


def error_text(error: Mapping[str, Any], status: int | None = None) -> str:
    details = [status, error.get("code"), error.get("param"), error.get("id")]
    facts = ", ".join(str(detail) for detail in details if detail)
    message = error.get("message") or "the server tells no reason"
    return f"{message} ({facts})" if facts else str(message)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_CONVERSATION = "conv_"
"""The beginning of the id of a conversation; any other session is the id of a response."""


class ResponsesClient(ChatApi):
    """Client that translates between the Invocations protocol and the Responses API."""

    def _place(self, url: Any) -> Any:
        path = url.path.rstrip("/")
        for name in ("/invocations", "/responses", "/v1"):
            path = path.removesuffix(name)
        return url.copy_with(path=f"{path}/v1/responses")

    def agent(self) -> str | None:
        """Return the name of the agent if the server has the Responses API. Raises if access is denied."""
        try:
            return str(self._get(f"{self._url.path.removesuffix('/responses')}/models")["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            return None

    def send(self, body: Mapping[str, Any]) -> Generator[Event, None, None]:
        """Yield the events of the answer in the format of the Invocations protocol."""
        with closing(super().send(to_responses(body))) as events:
            for name, data in events:
                if name in _TEXTS:
                    yield "update", {"text": data.get("delta")}
                elif name == "error":
                    raise RefusedError(500, error_text(data))
                elif data.get("object") == "response":
                    yield "end", to_invocation(data)
                elif name in ("response.completed", "response.incomplete", "response.failed"):
                    yield "end", to_invocation(_parse_object(data, "response"))


def to_responses(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a body of the Invocations protocol to the Responses API."""
    if "approval" in body:
        approval = body["approval"]
        answer = {
            "type": "mcp_approval_response",
            "approval_request_id": approval["id"],
            "approve": approval["approved"],
        }
        return {"input": [answer], "stream": True}
    request: dict[str, Any] = {"input": body["message"], "stream": True}
    session = body.get("session_id")
    if session is not None:
        request["conversation" if session.startswith(_CONVERSATION) else "previous_response_id"] = session
    return request


def to_invocation(response: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a response to an Invocations answer. The next turn continues from it, unless it has failed."""
    output = _parse_objects(response, "output")
    parts = [part for item in output if item.get("type") == "message" for part in _parse_objects(item, "content")]
    conversation = _parse_object(response, "conversation").get("id")
    failed = response.get("status") in ("failed", "cancelled")
    return {
        "id": response.get("id"),
        "status": str(response.get("status")),
        "session_id": conversation or (None if failed else response.get("id")),
        "text": "".join(str(part.get("text") or part.get("refusal") or "") for part in parts),
        "approvals": [_approval(item) for item in output if item.get("type") == "mcp_approval_request"],
        "error": response.get("error"),
    }


def _approval(item: Mapping[str, Any]) -> dict[str, Any]:
    given = item.get("arguments")
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        arguments = given
    return {"id": item.get("id"), "tool": item.get("name"), "arguments": arguments}


def _parse_objects(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    given = value.get(name)
    values = cast("list[Any]", given) if isinstance(given, list) else []
    return [part for part in values if isinstance(part, dict)]


def _parse_object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    given = value.get(name)
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


Approval = dict[str, Any]

_COMMAND = re.compile(r"/\w+")
LATER = ("queued", "in_progress")
WORDS = {"y": True, "yes": True, "n": False, "no": False}


def run(arguments: Namespace) -> int:
    """Run a conversation until the user leaves. Return 1 if the input was a pipe and a turn failed."""
    terminal = Terminal()
    key = _api_key(arguments)
    with closing(ChatApi(arguments.url, key)) as first, closing(ResponsesClient(arguments.url, key)) as second:
        api, name = _choose_api((first, second), terminal)
        chat = Chat(api, terminal, name, arguments.session)
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
        raise CommandError(f"{source} contains no valid key. A key is one line of printable ASCII characters")
    return key


def _choose_api(apis: Sequence[ChatApi], terminal: Terminal) -> tuple[ChatApi, str]:
    """Return the first client whose agent returns its name, or else the first reachable one."""
    for api in apis:
        name = _agent(api, terminal)
        if name is not None:
            return api, visible(name)
    return apis[0], "agent"


def _agent(api: ChatApi, terminal: Terminal) -> str | None:
    try:
        return api.agent()
    except RefusedError as error:
        if error.status != 401 or not terminal.interactive:
            raise
    api.use_key(_usable(getpass.getpass("API key: "), "API key"))
    return api.agent()


class Chat:
    def __init__(self, api: ChatApi, terminal: Terminal, name: str, session: str | None) -> None:
        self._api = api
        self._terminal = terminal
        self._name = name
        self._session = session
        self.failed = False

    def talk(self) -> None:
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
        """Send a request and print the answer as it arrives. Return the approvals that it waits for."""
        try:
            with closing(self._api.send(body)) as events:
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
        raise UnreachableError("the server ended its response early")

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
        shown = display_arguments(json.dumps(approval.get("arguments"), ensure_ascii=False))
        tool, number = visible(str(approval.get("tool"))), visible(str(approval["id"]))
        self._terminal.tell(f"{self._name} wants to run {tool} with {shown} ({number})")
        while (answer := self._read("Allow it? y/n> ")) is not None:
            if answer.lower() in WORDS:
                return WORDS[answer.lower()]
            self._terminal.tell("Please answer y or n.")
        self._terminal.tell("Nobody decided.")
        return None

    def _complain(self, text: str) -> None:
        self.failed = True
        self._terminal.complain(text)
