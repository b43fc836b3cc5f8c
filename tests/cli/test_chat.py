"""`frontdesk chat`, driven through pipes and a terminal against running servers."""

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.processes import Running, frontdesk


def lines_of(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_each_line_of_a_pipe_is_a_turn_of_one_session(demo: Running) -> None:
    said = lines_of("My name is Ada", "", "What is my name?", "/new", "What is my name?")
    ended = frontdesk("chat", demo.url(), stdin=said)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "A pleasure, Ada. What can I do for you?",
        "You are Ada, of course.",
        "A new session begins.",
        "You have not told me your name yet.",
    ]


def test_quit_leaves(demo: Running) -> None:
    ended = frontdesk("chat", demo.url(), stdin=lines_of("/quit", "Thanks"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_session_can_be_named(demo: Running) -> None:
    assert frontdesk("chat", demo.url(), "--session", "later", stdin="My name is Grace\n").returncode == 0
    ended = frontdesk("chat", demo.url(), "--session", "later", stdin="What is my name?\n")
    assert ended.stdout == "You are Grace, of course.\n"


def test_an_approval_is_shown_and_answered(demo: Running) -> None:
    booking = "Book an attic room for 2 nights"
    ended = frontdesk(
        "chat", demo.url(), stdin=lines_of(booking, "perhaps", "y", booking, "n", "What did I say before?")
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    offer, question, please, booked, _, _, refused, before = ended.stdout.splitlines()
    assert offer == "With pleasure: one attic room for 2 nights at 160 euros. I need a yes before I book it."
    assert question.startswith('Concierge wants to run book_room with {"room": "attic", "nights": 2} (')
    assert please == "Please answer y or n."
    assert booked.startswith("Booked: one attic room for 2 nights at 160 euros. Your booking number is M-")
    assert refused == "As you wish. I have booked nothing."
    assert before == f"You said “{booking}”; then “{booking}”."


TWO_PAYMENTS = """
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


class Payer(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        results = [one.result for one in messages[-1].contents if one.type == "function_result"]
        calls = [Content.from_function_call(f"c{n}", "pay", arguments={"euros": n}) for n in (1, 2)]

        contents = [Content.from_text(" and ".join(results))] if results else calls

        async def whole():
            return ChatResponse(messages=Message("assistant", contents))

        async def pieces():
            yield ChatResponseUpdate(role="assistant", contents=contents)

        return self._build_response_stream(pieces()) if stream else whole()


@tool(approval_mode="always_require")
def pay(euros: int) -> str:
    return f"paid {euros}"


host = AgentFrameworkHost(Agent(Payer(), name="Payer", tools=[pay]), channels=[InvocationsChannel()])
"""


def test_two_approvals_of_one_turn_are_asked_for_once_each(tmp_path: Path) -> None:
    (tmp_path / "payer.py").write_text(TWO_PAYMENTS)
    with Running("serve", "payer:host", "--port", "0", cwd=tmp_path) as server:
        ended = frontdesk("chat", server.url(), stdin=lines_of("pay", "y", "y"))
    assert (ended.returncode, ended.stderr) == (0, "")
    first, second, answer = ended.stdout.splitlines()
    assert first.startswith('Payer wants to run pay with {"euros": 1} (')
    assert second.startswith('Payer wants to run pay with {"euros": 2} (')
    assert answer == "paid 1 and paid 2"


def test_an_approval_that_nobody_answers_stays_open(demo: Running) -> None:
    ended = frontdesk("chat", demo.url(), stdin=lines_of("Book a garden room"))
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1] == "Nobody decided."


def test_ctrl_c_cancels_the_answer_and_not_the_program(parrot: Running) -> None:
    with Running("chat", parrot.url()) as chat:
        chat.type("for ever")
        chat.read_until("you said ")
        chat.interrupt()
        chat.read_until("(cancelled)")
        # The same session: the answer that was cancelled has let go of it.
        chat.type("hello")
        chat.read_until("you said hello\n")
        assert chat.end() == 0
        assert chat.errors() == ""


def test_a_terminal_gets_prompts_and_ctrl_c_at_one_does_not_leave(demo: Running) -> None:
    ours, theirs = os.openpty()
    try:
        with Running("chat", demo.url(), stdin=theirs, stdout=theirs) as chat:
            screen = Screen(ours)
            screen.read_until("/quit leaves.\r\nyou> ")
            os.write(ours, b"Thanks\n")
            screen.read_until("Concierge> At your service.\r\nyou> ")
            # The prompt is there a moment before the program listens to Ctrl-C; a user would press it again.
            screen.read_until("/quit leaves.\r\nyou> ", nudge=chat.interrupt)
            os.write(ours, b"Book a garden room\n")
            screen.read_until("Allow it? y/n> ")
            os.write(ours, b"no\n")
            screen.read_until("Concierge> As you wish. I have booked nothing.\r\nyou> ")
            os.write(ours, b"/quit\n")
            assert chat.end() == 0
            assert chat.errors() == ""
    finally:
        os.close(ours)
        os.close(theirs)


class Screen:
    """What a terminal shows."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._shown = ""

    def read_until(self, text: str, nudge: Callable[[], None] | None = None) -> None:
        while text not in self._shown:
            if nudge is not None and not select.select([self._terminal], [], [], 0.5)[0]:
                nudge()
                continue
            self._shown += os.read(self._terminal, 65536).decode()
        self._shown = self._shown.partition(text)[2]


def test_an_error_of_the_server_is_one_line_and_the_chat_goes_on(parrot: Running) -> None:
    ended = frontdesk("chat", parrot.url(), stdin=lines_of("fail", "/dance", "hello"))
    assert ended.returncode == 1
    assert ended.stdout == "you said hello\n"
    failed, unknown = ended.stderr.splitlines()
    assert failed.startswith("error: The agent failed while it answered. (target_failed, ")
    assert unknown == "error: there is no /dance; there are /new and /quit"


def test_a_server_can_not_steer_the_terminal(parrot: Running) -> None:
    ended = frontdesk("chat", parrot.url(), stdin="steer\n")
    assert (ended.returncode, ended.stdout) == (0, "[2Jwiped\u2028out\n")


def test_a_key_opens_a_locked_door(parrot: Running, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key-that-is-long\n")
    locked = f"{parrot.url()}/locked"
    by_file = frontdesk("chat", locked, "--api-key-file", "key", stdin="hello\n", cwd=tmp_path)
    by_option = frontdesk("chat", locked, "--api-key", "a-key-that-is-long", stdin="hello\n")
    for ended in (by_file, by_option):
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "you said hello\n", "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "Valid credentials are needed. (401, unauthenticated)"),
        (["--api-key", "another-key-that-is-long"], "The API key is not valid. (401, unauthenticated)"),
        (["--api-key", "ключ"], "--api-key contains no valid key. A key is one line of printable ASCII characters"),
        (["--api-key-file", "gone"], "--api-key-file gone: No such file or directory"),
        (
            ["--api-key-file", "empty"],
            "--api-key-file empty contains no valid key. A key is one line of printable ASCII characters",
        ),
    ],
)
def test_a_key_that_does_not_fit_is_told(options: list[str], told: str, parrot: Running, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    ended = frontdesk("chat", f"{parrot.url()}/locked", *options, stdin="hello\n", cwd=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"frontdesk: {told}\n")


def test_nobody_at_the_url_is_told() -> None:
    ended = frontdesk("chat", "http://127.0.0.1:1/invocations", stdin="hello\n")
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("frontdesk: can't reach http://127.0.0.1:1/invocations: ")


def test_a_wrong_path_is_told(parrot: Running) -> None:
    ended = frontdesk("chat", f"{parrot.url()}/elsewhere", stdin="hello\n")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "error: No route for this path. (404, not_found)\n"


@contextmanager
def stranger(status: int, kind: str, body: bytes, announced: int | None = None) -> Iterator[str]:
    """A server that speaks another protocol."""

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body) if announced is None else announced))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


EVENTS = "text/event-stream"
HALF = b'event: update\ndata: {"text": "half"}\n\n'


@pytest.mark.parametrize(
    ("status", "kind", "body", "announced", "told"),
    [
        (502, "text/html", b"<h1>Oh no</h1>", None, "error: the server answered 502 Bad Gateway"),
        (200, "text/html", b"<h1>Hi</h1>", None, "error: the server did not respond with the Invocations protocol"),
        (200, EVENTS, b"data: hello\n\n", None, "error: the server did not respond with the Invocations protocol"),
        (200, EVENTS, HALF, None, "frontdesk: the server ended its response early"),
        (200, EVENTS, HALF, 1000, "frontdesk: http://127.0.0.1"),
        (
            200,
            EVENTS,
            b'data: {"status": "failed", "error": {}, "approvals": [1]}\n',
            None,
            "error: the server tells no",
        ),
        (202, "application/json", b'{"status": "queued", "id": "run_1"}', None, None),
    ],
)
def test_a_strange_server_is_told_in_one_line(
    status: int, kind: str, body: bytes, announced: int | None, told: str | None
) -> None:
    with stranger(status, kind, body, announced) as url:
        ended = frontdesk("chat", url, stdin="hello\n")
    if told is None:
        assert (ended.returncode, ended.stdout) == (0, "The answer comes later, as run_1.\n")
    else:
        assert ended.returncode == 1
        [line] = ended.stderr.splitlines()
        assert line.startswith(told)
