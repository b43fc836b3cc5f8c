"""Whatever reads text from outside does so in a number of steps that grows with it, and not with its square.

The lines of the package that run are counted, not seconds: three times the input may take three times the lines, and a
little more. What regular expressions do within a line is counted in `test_patterns`.
"""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st

import frontdesk
from frontdesk import identifiers
from frontdesk.activity.parse import strip_mentions
from frontdesk.activity.schema import Activity
from frontdesk.asgi import messages as http
from frontdesk.auth import hmac_auth, local_callers
from frontdesk.channels.a2a import parse as a2a
from frontdesk.channels.a2a.schema import SendIn
from frontdesk.channels.agui import parse as agui
from frontdesk.channels.chat_completions import parse as completions
from frontdesk.channels.chat_completions.parse import read_messages
from frontdesk.channels.invocations import parse as invocations
from frontdesk.channels.invocations.schema import InvocationBody
from frontdesk.channels.mcp.calls import responses_in
from frontdesk.channels.responses import parse as responses
from frontdesk.channels.telegram import parse as telegram
from frontdesk.channels.web import files as page_files
from frontdesk.channels.web import parse as page
from frontdesk.channels.web.wire import SendBody
from frontdesk.chat import inbound, questions
from frontdesk.chat.messages import BotIdentity, Destination, InboundFile, InboundMessage, Quote, Sender
from frontdesk.chat.rendering import Renderer
from frontdesk.cli import terminal
from frontdesk.cli.chat import read_events
from frontdesk.demo.host import next_step
from frontdesk.errors import FrontdeskError
from frontdesk.framework import types
from frontdesk.framework.contents import transcript
from frontdesk.http import bodies, sse
from frontdesk.linkers import one_time_code
from frontdesk.markdown import Mrkdwn
from frontdesk.markdown.plain_text import split_text, text_length
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.openai import items as openai_items
from frontdesk.openai import tools
from frontdesk.openai.tools import input_arguments, parse_input
from frontdesk.outbound import network
from frontdesk.secret import Secret, redact, shorten
from frontdesk.serialization import codec, json_tree
from frontdesk.telemetry.redaction import RedactionFilter
from frontdesk_testing.sse import parse_sse, read_sse
from tests.examples import examples

SOURCE = str(Path(frontdesk.__file__).parent)
Reads = Callable[[str, int], Any]


A2A_PARAMS = msgspec.json.Decoder(SendIn)


def page_message(text: str, units: int) -> Any:
    """A body of the page: its text, a choice, a locale, the name of a file and the files."""
    file = {"media_type": text, "data": "AAAA", "name": text}
    sent = {"client_id": "c", "text": f"/{text}", "choice": text, "locale": text, "files": [file] * units}
    body = page.decode(SendBody, json.dumps(sent).encode())
    page_files.read_files(body.files[:1], most=1, max_bytes=10)
    caller = Caller(identity=ChannelIdentity("web", "vis_1"))
    return page.to_item(body, page.read_text(body, 10**9), channel="web", caller=caller, chat="main", now=0.0)


def a2a_message(text: str, units: int) -> Any:
    """A message with many parts."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}] * units, "contextId": text[:64]}
    params = a2a.decode_params(A2A_PARAMS, json.dumps({"message": message, "configuration": {}}).encode())
    return a2a.build_input(a2a.parse_sent(params, "", ("text/plain",)), takes_data=False)


def agui_input(text: str, units: int) -> Any:
    """A transcript with many messages."""
    messages = [{"id": f"m{place}", "role": "user", "content": text} for place in range(units)]
    body = agui.decode(json.dumps({"threadId": "t", "runId": "r", "messages": messages, "tools": []}).encode())
    return agui.request_digest(body), agui.to_context(body, [])


def activity(text: str, units: int) -> Any:
    """A message with many mentions."""
    mentions = [{"type": "mention", "text": text, "mentioned": {"id": "28:app"}} for _ in range(units)]
    body = json.dumps({"type": "message", "text": text * 3, "entities": mentions, "recipient": {"id": "28:app"}})
    return strip_mentions(msgspec.json.decode(body, type=Activity), "app")


def chat(text: str, units: int) -> Any:
    """A conversation with calls and their outputs, one pair after another and many at once."""
    calls = [{"id": f"{place}", "function": {"name": "f", "arguments": "{}"}} for place in range(units)]
    outputs = [{"role": "tool", "tool_call_id": one["id"], "content": "a"} for one in calls]
    pairs = [
        message
        for call, output in zip(calls, outputs, strict=True)
        for message in ({"role": "assistant", "tool_calls": [call]}, output)
    ]
    said = {"role": "user", "content": [{"type": "text", "text": "a"}] * units, "name": text[:64]}
    return [said, *pairs, {"role": "assistant", "content": text, "tool_calls": calls}, *outputs]


def lines_of(call: Callable[[], Any]) -> int:
    """How many lines of the package run in a call, whether it ends well or in an error that is meant for the caller."""
    count = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return local if frame.f_code.co_filename.startswith(SOURCE) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        with contextlib.suppress(FrontdeskError, ValueError, msgspec.MsgspecError):
            call()
    finally:
        sys.settrace(before)
    return count


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("frontdesk.http", 20, "", 0, "asked for %s", (text,), None)


async def _collect(pieces: list[bytes]) -> list[Any]:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [event async for event in read_sse(chunks())]


def pieces_of(text: str) -> list[bytes]:
    data = b"data: " + text.encode("utf-8", "replace") + b"\n\n"
    return [data[start : start + 7] for start in range(0, len(data), 7)]


def deep(text: str) -> Any:
    tree: Any = text
    for _ in range(min(len(text), 40)):
        tree = {"items": tree}
    return tree


async def _body(text: str) -> bytes:
    parts = [text.encode("utf-8", "replace")[start : start + 7] for start in range(0, len(text), 7)]

    async def receive() -> Any:
        part = parts.pop() if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    return await http.read_rest(receive, await receive(), limit=2**30)


def invocation(text: str) -> Any:
    body = json.dumps({"message": [{"type": "text", "text": text}] * (len(text) // 50), text: 1})
    return invocations.decode(body.encode())


def read_updated(text: str, units: int) -> Any:
    marks = ("mention", "bot_command", "text_mention")
    entities = [{"type": marks[place % 3], "offset": place, "length": place} for place in range(units)]
    message = {"message_id": 1, "chat": {"id": 1}, "from": {"id": 1}, "text": text, "entities": entities}
    body = json.dumps({"update_id": 1, "message": {**message, "reply_to_message": message}})
    return telegram.read_update(body.encode(), BotIdentity(id="1", name="me"))


def read_quoted(text: str) -> Any:
    said = InboundMessage(
        event_id="e",
        at=1.0,
        sender=Sender(id="u"),
        place=Destination(chat_id="c"),
        text=text,
        quote=Quote(text=text),
        media=(InboundFile(media_type=text, data=text),),
    )
    rules = inbound.InboundRules(channel="chat", has_buttons=False)
    return inbound.to_item(said, rules, BotIdentity(id="me", name="me"), now=1.0, payload=dict)


ITEMS: dict[str, Callable[[int], Any]] = {
    "message": lambda place: {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}],
    },
    "empty": lambda place: {"type": "message", "role": "assistant", "content": []},
    "reasoning": lambda place: {"type": "reasoning", "id": f"r{place}", "summary": []},
    "call": lambda place: {"type": "function_call", "call_id": f"c{place}", "name": "f", "arguments": "{}"},
    "custom call": lambda place: {"type": "custom_tool_call", "call_id": f"c{place}", "name": "f", "input": "x"},
    "tools": lambda place: {"type": "additional_tools", "role": "developer", "tools": [{"name": f"f{place}"}]},
    "output": lambda place: {"type": "function_call_output", "call_id": f"c{place}", "output": "a"},
    "answer": lambda place: {"type": "mcp_approval_response", "approval_request_id": f"a{place}", "approve": True},
}

# What reads outside text, by what it is called with: a text, and how many parts it was made of.
READERS: dict[str, Reads] = {
    "split_text": lambda text, units: split_text(text, 4096),
    "split_text with a high limit": lambda text, units: split_text(text, max(1, len(text) - 1)),
    "split_text with a low limit": lambda text, units: split_text(text, 16, units="utf16"),
    "text_length": lambda text, units: text_length(text, "utf16"),
    "redact": lambda text, units: redact(text),
    "shorten": lambda text, units: shorten(text, len(text) // 2),
    "a record": lambda text, units: RedactionFilter().filter(record(text)),
    "parse_sse": lambda text, units: parse_sse(b"data: " + text.encode("utf-8", "replace") + b"\n\n"),
    "read_sse": lambda text, units: asyncio.run(_collect(pieces_of(text))),
    "read_events": lambda text, units: list(read_events(pieces_of(text))),
    "encode_data": lambda text, units: sse.encode_data(text.encode("utf-8", "replace")),
    "read_rest": lambda text, units: asyncio.run(_body(text)),
    "parse_resume_position": lambda text, units: http.parse_resume_position(text.encode("utf-8", "replace")),
    "plain_id": lambda text, units: identifiers.plain_id(text, "id"),
    "locate": lambda text, units: bodies.locate(msgspec.ValidationError(f"`{text}` - at `$.a`")),
    "an invocation": lambda text, units: invocation(text),
    "a response": lambda text, units: responses.decode(json.dumps({"input": text, text: 1}).encode()),
    "a completion": lambda text, units: completions.decode(json.dumps({"messages": [{text: text}], text: 1}).encode()),
    "tools of a response": lambda text, units: responses.client_tools(
        [], tools.merge([{"type": "function", "name": f"f{place}"} for place in range(units)])
    ),
    "the text of a custom tool": lambda text, units: parse_input(input_arguments(text)) + parse_input(text),
    "a message of another agent": a2a_message,
    "an input of AG-UI": agui_input,
    "arguments of an MCP tool": lambda text, units: responses_in({f"{text}{place}": {} for place in range(units)}),
    "an activity": activity,
    "messages of a completion": lambda text, units: read_messages(chat(text, units // 8), (), "append"),
    "a message on the page": page_message,
    "a host name": lambda text, units: local_callers._names_loopback(text.encode("latin-1", "replace")),
    "an allowed host": lambda text, units: network.plain_host(text),
    "a target": lambda text, units: hmac_auth._target({"raw_path": text.encode("latin-1", "replace"), "path": text}),
    "a code": lambda text, units: one_time_code.read(text, 8),
    "printable": lambda text, units: terminal.printable(text),
    "visible": lambda text, units: terminal.visible(text),
    "an update": read_updated,
    "a mention": lambda text, units: inbound.without_mentions(text, [(place, 1) for place in range(units)]),
    "a chat command": lambda text, units: inbound.command_in("/" + text),
    "a worded answer": lambda text, units: questions.read_words("yes " + text),
    "a chat message": lambda text, units: read_quoted(text),
    "a plain reply": lambda text, units: Renderer(dialect=Mrkdwn(), limit=16).plain(text),
    "the demo": lambda text, units: next_step([Message("user", [Content.from_text(text)])]),
    "a transcript": lambda text, units: transcript([Message("user", [Content.from_text(text)])] * units),
    "encode": lambda text, units: codec.encode({"a": [text] * units, text: deep(text)}),
    "a tree": lambda text, units: json_tree.write([{text: [place]} for place in range(units)], 0),
    "a schema": lambda text, units: types.require_schema(
        {"properties": {f"{text}{place}": {"type": "string"} for place in range(units)}, "items": deep(text)}, "a"
    ),
} | {
    f"items: {kind}": lambda text, units, make=make: openai_items.read_added(
        [make(place) for place in range(units)], host_tools=()
    )
    for kind, make in ITEMS.items()
}

UNITS = [
    *(
        "a",
        "!",
        " ",
        "\n",
        ". ",
        "a ",
        "\n\n",
        "```\n",
        "~~~~",
        "\r\n",
        "\u200d",
        "🇩",
        "é",
        "\u0301",
        "\x00",
        "1+(",
        "%41",
    ),
    *(
        "-eyJ",
        "-eyJaaaaaaaaaaaa",
        "eyJ.",
        "://",
        "a://b@",
        "password=",
        "password = ",
        "?code=",
        "bearer ",
        "12345:",
        "sk-",
    ),
    *(" - at `$", "data: a\n", ";", "&a=b", "/..", "@me", "```a```", "what did i ", "[", "a.", "{}"),
]


def grows(read: Reads, unit: str, rounds: int) -> str | None:
    """What is wrong with how the lines grow, if anything is."""
    few = lines_of(lambda: read(unit * rounds, rounds))
    many = lines_of(lambda: read(unit * (3 * rounds), 3 * rounds))
    return None if many <= 4 * few + 200 else f"{rounds} times {unit!r} take {few} lines, three times as many {many}"


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_linear_time(name: str) -> None:
    secret = Secret("-eyJaaaa")
    wrong = [told for unit in UNITS if (told := grows(READERS[name], unit, 120))]
    assert not wrong, wrong
    assert secret.reveal()


def _twice(text: str, units: int) -> Any:
    # A loop over the text for each of its lines: what the counter is for. Its lines are those of the package's own.
    return [text_length(text[:place], "utf16") for place in range(len(text))]


def test_a_reader_that_does_not_is_found() -> None:
    assert grows(_twice, "a", 120) is not None


@examples(60)
@given(st.lists(st.sampled_from(UNITS), min_size=1, max_size=4).map("".join), st.sampled_from(sorted(READERS)))
def test_any_mixture_takes_linear_time(unit: str, name: str) -> None:
    assert grows(READERS[name], unit, 40) is None


def test_every_parser_of_a_channel_is_asked() -> None:
    """A new room brings a parser, and this says that its loops are to be counted here."""
    rooms = {path.parent.name for path in (Path(SOURCE) / "channels").glob("*/channel.py")}
    assert rooms == {
        *("a2a", "activity", "agui", "chat_completions", "conversations", "invocations", "mcp", "responses"),
        *("telegram", "web"),
    }
    assert InvocationBody.__struct_fields__
