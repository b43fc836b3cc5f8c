"""Where the messages of a client leave the history of the server."""

from typing import Any

import pytest
from agent_framework import Content, Message

from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.agui.parse import TEXT_DIGEST, text_digest
from frontdesk.channels.agui.schema import AssistantMessage, InputMessage, ToolMessage, UserMessage
from frontdesk.channels.agui.thread import KnownMessages, branch_key, continue_thread, is_of_thread
from frontdesk.models.conversation import TranscriptMessage

CALL = Content.from_function_call("c1", "weather", arguments="{}")


def known(role: Any, message_id: str, run_id: str, content: Any) -> TranscriptMessage:
    properties: dict[str, Any] = {
        "hosting": {"channel": "agui"} if role != "assistant" else {"originating_channel": "a"}
    }
    if isinstance(content, str):
        properties[TEXT_DIGEST] = text_digest(content)
    message = Message(role, [content], additional_properties=properties)
    return TranscriptMessage(
        message=message, channel="agui", at=None, shown_on=frozenset(), message_id=message_id, run_id=run_id
    )


HISTORY = [
    known("user", "u1", "r1", "one"),
    known("assistant", "msg_r1_0", "r1", "first"),
    known("user", "u2", "r2", "two"),
    known("assistant", "msg_r2_0", "r2", CALL),
    known("tool", "t", "r3", Content.from_function_result("c1", result="sunny")),
    known("assistant", "msg_r3_0", "r3", "second"),
]


def user(message_id: str, text: str) -> UserMessage:
    return UserMessage(id=message_id, content=text)


U1, A1, U2 = user("u1", "one"), AssistantMessage(id="msg_r1_0"), user("u2", "two")
A2, T, A3 = (
    AssistantMessage(id="msg_r2_0"),
    ToolMessage(id="x", tool_call_id="c1", content="s"),
    AssistantMessage(id="msg_r3_0"),
)
NEW = user("n", "new")

CASES: dict[str, tuple[list[InputMessage], list[str], bool, str | None]] = {
    "a new message": ([U1, A1, U2, A2, T, A3, NEW], ["n"], False, None),
    "a client without history": ([NEW], ["n"], False, None),
    "an answer that is made up": ([U1, A1, U2, A2, T, A3, AssistantMessage(id="y"), NEW], ["n"], False, None),
    "a part of an answer": ([U1, A1, U2, A2, T, AssistantMessage(id="msg_r3_0~r0"), NEW], ["n"], False, None),
    "an answer without its tool": ([U1, A1, U2, A2, NEW], ["n"], False, None),
    "after an earlier answer": ([U1, A1, NEW], ["n"], True, "r1"),
    "a question again": ([U1, A1, U2], ["u2"], True, "r1"),
    "the first question again": ([U1], ["u1"], True, None),
    "results of tools again": ([U1, A1, U2, A2, T], ["x"], True, "r2"),
    "nothing new": ([U1, A1, U2, A2, T, A3], [], False, None),
    "an edited message": ([U1, A1, user("u2", "other")], ["u2"], True, "r1"),
    "an edited message with what followed": ([U1, A1, user("u2", "other"), A2, T, A3, NEW], ["u2", "n"], True, "r1"),
    "an edited first message": ([user("u1", "other")], ["u1"], True, None),
    "a result of no call": (
        [U1, A1, U2, A2, T, A3, ToolMessage(id="z", tool_call_id="c9", content="")],
        [],
        False,
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_new_and_where_it_continues(name: str) -> None:
    messages, new, branches, previous = CASES[name]
    continuation = continue_thread(messages, KnownMessages(HISTORY))
    assert [one.message.id for one in continuation.new] == new
    assert (continuation.branches, continuation.previous_run_id) == (branches, previous)


def test_the_result_of_an_open_call_is_new() -> None:
    continuation = continue_thread([U1, A1, U2, A2, T], KnownMessages(HISTORY[:4]))
    assert [one.message.id for one in continuation.new] == ["x"]


def test_a_branch_is_of_its_thread_only() -> None:
    key = branch_key("t", "r")
    assert (is_of_thread(key, "t"), is_of_thread("t", "t"), is_of_thread(key, "t2"), is_of_thread(None, "t")) == (
        *(True, True),
        *(False, False),
    )


def test_a_state_that_the_host_could_not_keep_is_a_finding() -> None:
    assert AGUIChannel(max_state_bytes=1_000_000).findings() == [
        "max_state_bytes must be from 1 to 262144, not 1000000"
    ]
    assert AGUIChannel(max_state_bytes=0).findings()
    assert not AGUIChannel().findings()
