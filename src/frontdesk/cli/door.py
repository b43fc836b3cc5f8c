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
    """There is no answer from the URL."""


class RefusedError(CommandError):
    """The server answers with an error."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Door:
    """Sends messages of the user, and reads the answers."""

    def __init__(self, url: str, api_key: str | None) -> None:
        self._url = self._place(httpx.URL(url))
        # An answer may take as long as it takes; the user can cancel it.
        timeout = httpx.Timeout(CONNECT_SECONDS, read=None)
        # A proxy from the environment can't reach this machine.
        self._client = httpx.Client(timeout=timeout, trust_env=self._url.host not in THIS_MACHINE)
        self.use_key(api_key)

    def _place(self, url: httpx.URL) -> httpx.URL:
        """Return where messages are sent, for the URL that the user has named."""
        return url

    def use_key(self, api_key: str | None) -> None:
        """Send an API key with all further requests."""
        if api_key is not None:
            self._client.headers["authorization"] = f"Bearer {api_key}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def agent(self) -> str | None:
        """Return the name of the agent, if the server gives it; raise if the server is unreachable or refuses us."""
        try:
            return str(self._get(f"{self._url.path.rstrip('/')}/docs/openapi.json")["info"]["title"])
        except (ValueError, LookupError, TypeError):
            return None

    def _get(self, path: str) -> Any:
        """Return the JSON at another path of the server."""
        try:
            response = self._client.get(self._url.copy_with(path=path), timeout=CONNECT_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        if response.status_code in (401, 403):
            raise _refused(response)
        return response.json()

    def send(self, body: Mapping[str, Any]) -> Generator[Event, None, None]:
        """Yield the events of the answer; an answer in one piece is one event, named after its status."""
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
    """Yield the events in a stream of bytes; only the line ends of the protocol count, not those of Unicode."""
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
        raise CommandError("the server's answer is not in the Invocations protocol")
    return value  # pyright: ignore[reportUnknownVariableType]


def _refused(response: httpx.Response) -> RefusedError:
    try:
        error = _object(response.content)["error"]
        return RefusedError(response.status_code, error_text(error, response.status_code))
    except (CommandError, LookupError, TypeError, AttributeError):
        text = f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
        return RefusedError(response.status_code, text)


def error_text(error: Mapping[str, Any], status: int | None = None) -> str:
    """Return an error of the protocol as one line."""
    details = [status, error.get("code"), error.get("param"), error.get("id")]
    facts = ", ".join(str(detail) for detail in details if detail)
    message = error.get("message") or "the server tells no reason"
    return f"{message} ({facts})" if facts else str(message)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
