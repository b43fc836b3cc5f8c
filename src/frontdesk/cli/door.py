"""The client's side of the Invocations protocol."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

import httpx

from frontdesk.cli.mistakes import CommandError

Event = tuple[str, dict[str, Any]]

CONNECT_SECONDS = 10.0
THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


class UnreachableError(CommandError):
    """Nobody answers at the URL."""


class RefusedError(CommandError):
    """The server answers with an error."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Door:
    """Sends what the user says, and reads what comes back."""

    def __init__(self, url: str, api_key: str | None) -> None:
        self._url = httpx.URL(url)
        # An answer may take as long as it takes; the user can cancel it.
        timeout = httpx.Timeout(CONNECT_SECONDS, read=None)
        # A proxy of the environment's can't reach this machine.
        self._client = httpx.Client(timeout=timeout, trust_env=self._url.host not in THIS_MACHINE)
        self.use_key(api_key)

    def use_key(self, api_key: str | None) -> None:
        """Sends the key from now on."""
        if api_key is not None:
            self._client.headers["authorization"] = f"Bearer {api_key}"

    def close(self) -> None:
        """Hangs up."""
        self._client.close()

    def agent(self) -> str | None:
        """The agent's name, if the server tells it; also finds out whether the server is there and lets us in."""
        path = f"{self._url.path.rstrip('/')}/docs/openapi.json"
        try:
            response = self._client.get(self._url.copy_with(path=path), timeout=CONNECT_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        if response.status_code in (401, 403):
            raise _refused(response)
        try:
            return str(response.json()["info"]["title"])
        except (ValueError, LookupError, TypeError):
            return None

    def send(self, body: Mapping[str, Any]) -> Generator[Event, None, None]:
        """The events of the answer; an answer in one piece is one event, named after its status."""
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                if not response.is_success:
                    response.read()
                    raise _refused(response)
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    yield from read_events(response.iter_bytes())
                else:
                    answer = _object(response.read())
                    yield str(answer.get("status")), answer
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        except httpx.HTTPError as error:
            raise UnreachableError(f"{self._url} broke off the answer: {_text(error)}") from None

    def _unreachable(self, error: Exception) -> UnreachableError:
        return UnreachableError(f"can't reach {self._url}: {_text(error)}")


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """The events in a stream of bytes. Lines end where the protocol says so, not wherever Unicode sees a line end."""
    name = "message"
    rest: list[bytes] = []
    for chunk in chunks:
        rest.append(chunk)
        # A long line in small pieces is put together once.
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
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CommandError("the server's answer is not in the Invocations protocol")
    return found  # pyright: ignore[reportUnknownVariableType]


def _refused(response: httpx.Response) -> RefusedError:
    try:
        error = _object(response.content)["error"]
        return RefusedError(response.status_code, error_text(error, response.status_code))
    except (CommandError, LookupError, TypeError, AttributeError):
        text = f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
        return RefusedError(response.status_code, text)


def error_text(error: Mapping[str, Any], status: int | None = None) -> str:
    """An error of the protocol in one line."""
    details = [status, error.get("code"), error.get("param"), error.get("id")]
    known = ", ".join(str(detail) for detail in details if detail)
    message = error.get("message") or "the server tells no reason"
    return f"{message} ({known})" if known else str(message)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
