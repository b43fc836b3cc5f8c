"""Every text on which a person decides, on every channel, against every character that a person can't see."""

import json
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Literal

import msgspec
import pytest
from agent_framework import AgentResponse, Content, Message, WorkflowEvent, WorkflowRunResult
from pydantic import Field, create_model

from frontdesk.admin.rows import details, summary
from frontdesk.approvals.extraction import digest
from frontdesk.approvals.requester import build_view
from frontdesk.channels.invocations.render import render_waiting
from frontdesk.channels.telegram.channel import TelegramChannel
from frontdesk.channels.telegram.render import send_calls
from frontdesk.channels.web.account import _render_identity as shown_account  # pyright: ignore[reportPrivateUsage]
from frontdesk.channels.web.api import _render_approval as shown_question  # pyright: ignore[reportPrivateUsage]
from frontdesk.channels.web.render import content_of_reply, extract_contents, render_question, render_settled
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording, describe_person
from frontdesk.chat.messages import Destination, OutboundMessage
from frontdesk.chat.rendering import Renderer
from frontdesk.cli.chat import Chat
from frontdesk.cli.terminal import Terminal, print_table
from frontdesk.display.person_names import build_unverified_name
from frontdesk.framework.approval_ids import note_waiting, waits_for, waits_for_people
from frontdesk.framework.workflow_requests import extract_choices, find_choice, request_content
from frontdesk.linkers.oauth.ceremony import confirm_page, start_page
from frontdesk.models.approval import PendingApproval, QuestionView, WaitingPage
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.operations import LedgerRow
from frontdesk.models.reply import Reply, ReplyButton
from frontdesk.models.result import HostedRunResult
from frontdesk_testing.store_samples import question, run, terms
from tests.invisible import invisible_characters, invisible_in

WORDING = Wording(Texts(), "de")
TELEGRAM = TelegramChannel(bot_token="1:a")
PLACE = Destination(user_id="42", chat_id="42")
PLAIN = Renderer(dialect=None, limit=1_000, has_buttons=False)
_CHUNK = 15
"""Names are cut at forty characters, and each character has to be displayed once."""
_SHARES = 8
"""Tests for all characters of one function: each ends within its time limit on a busy machine."""


def _chunks() -> list[str]:
    every = invisible_characters()
    assert len(every) > 4_200
    parts = [every[start : start + _CHUNK] for start in range(0, len(every), _CHUNK)]
    return ["".join(f"x{character}" for character in part) for part in parts]


def _request(text: str) -> Content:
    arguments = {text: text, "nested": {text: [text, {text: text}]}, "amount": 100}
    call = Content.from_function_call("call_1", f"pay{text}", arguments=json.dumps(arguments, ensure_ascii=False))
    return Content.from_function_approval_request("apr_1", call)


def _build_question(text: str, **fields: Any) -> PendingApproval:
    person = Caller(identity=_person(text))
    return question(tool=f"pay{text}", request=_request(text), requester=person, reason=text, **fields)


def _person(text: str) -> ChannelIdentity:
    return ChannelIdentity(channel="telegram", native_id=f"42{text}", attributes={"name": f"Ann{text}"})


def _view(text: str) -> QuestionView:
    return build_view(_build_question(text, rule=terms(names=(text,))), _person(text))


def _workflow(text: str, wanted: Any) -> WorkflowRunResult:
    event: Any = WorkflowEvent.request_info("r", "clerk", {"question": f"Shall I {text}?"}, wanted)
    data: Any = WorkflowEvent.request_info("s", "clerk", {text: [text]}, wanted)
    return WorkflowRunResult([event, data])


def _workflow_as_agent(text: str, wanted: Any) -> AgentResponse[Any]:
    event: Any = WorkflowEvent.request_info("r", "clerk", {text: [text]}, wanted)
    return AgentResponse(messages=[Message("assistant", [request_content(event)])])


def _literal(values: tuple[str, ...]) -> Any:
    literal: Any = Literal
    return literal[values]


def _types(text: str) -> Iterator[Any]:
    yield from (str, bool, Literal["a", text], _literal(tuple(f"{text}{number}" for number in range(20))))
    yield Enum("Choice", {"one": f"1 {text}", "two": f"2 {text}"})
    title: Any = {"title": f"Amount {text}", "description": f"What {text} costs"}
    fields: Any = {
        "note": (str, Field(default=text, **title)),
        "kind": (Literal["a", text], Field(**title)),
        "kinds": (list[Literal["a", text]], Field(**title)),
    }
    inner: Any = create_model("Inner", **fields)
    yield create_model("Outer", inner=(inner, Field(**title)), **fields)


def _workflows(text: str) -> Iterator[Any]:
    for wanted in _types(text):
        yield from (_workflow(text, wanted), _workflow_as_agent(text, wanted))


def _approvals(text: str) -> Iterator[Any]:
    yield AgentResponse(messages=[Message("assistant", [_request(text)])])
    asked = _build_question(text, rule=terms(names=(text,), asks_requester=True))
    for waits in (asked, asked.replace(rule=terms(names=(text,)))):
        response = AgentResponse(messages=[Message("assistant", [_request(text)])])
        yield HostedRunResult(run=run(), result=response, questions=(waits,))


def _reply(text: str) -> Reply:
    return Reply(f"Delete {text}?", buttons=(ReplyButton(f"Yes {text}", "yes"),))


def _list_calls(messages: list[OutboundMessage]) -> Iterator[Any]:
    for message in messages:
        for call in send_calls(message, PLACE):
            yield call.params


def _telegram(text: str) -> Iterator[Any]:
    renderer = TELEGRAM.renderer
    for result in (*_approvals(text), *_workflows(text)):
        yield from _list_calls(renderer.answer(result))
    yield from _list_calls(renderer.reply(_reply(text)))
    yield from (
        TELEGRAM.approver_question(_view(text)),
        TELEGRAM.settled_question(_build_question(text), _person(text)),
    )


def _words(text: str) -> Iterator[Any]:
    for result in (*_approvals(text), *_workflows(text)):
        yield PLAIN.answer(result)
    for status in ("approved", "rejected", "cancelled"):
        decided = _build_question(text, status=status, rule=terms(), decided_at=1.0)
        yield from (WORDING.decided(decided, _person(text)), WORDING.describe_settled(decided, _person(text)))


def _page(text: str) -> Iterator[Any]:
    for result in (*_approvals(text), *_workflows(text)):
        yield [_without_values(part) for part in msgspec.to_builtins(extract_contents(result, WORDING))]
    asked = _build_question(text, rule=terms(names=(text,)), decided_at=1.0)
    yield from (
        shown_question(asked, 1.0),
        render_settled(asked, _person(text)),
        render_question(_view(text)),
        content_of_reply(_reply(text)),
    )
    yield shown_account(_person(text))


def _without_values(part: Any) -> Any:
    """Leaves out what a form has beside the displayed texts: the names and the values of its answers."""
    if isinstance(part, dict):
        hidden = ("name", *(("choices",) if "labels" in part else ()))
        return {name: _without_values(value) for name, value in part.items() if name not in hidden}
    return [_without_values(one) for one in part] if isinstance(part, list | tuple) else part


def _render_linking(text: str) -> Iterator[Any]:
    yield describe_person(_person(text))
    person = _person(text)
    yield from (start_page(person, text, "/a").body, confirm_page(person, text, text, link="/a", cancel="/b").body)


def _http(text: str) -> Iterator[Any]:
    (waiting,) = render_waiting(WaitingPage(questions=(_view(text),))).data
    response = AgentResponse(messages=[Message("assistant", [_request(text)])])
    note_waiting(response, {"apr_1": (build_unverified_name(_person(text)),)})
    asked = response.messages[0].contents[0]
    yield from (waiting.asker, waiting.asked_for, waits_for(asked), waits_for_people(asked))


@pytest.mark.parametrize("share", range(_SHARES))
@pytest.mark.parametrize("shown", [_telegram, _words, _page, _render_linking, _http])
def test_a_character_that_nobody_sees_reached_the_person_who_decides(
    shown: Callable[[str], Iterator[Any]], share: int
) -> None:
    found: dict[str, Any] = {}
    for chunk in _chunks()[share::_SHARES]:
        for made in shown(chunk):
            for text in _texts(msgspec.to_builtins(made, str_keys=True, enc_hook=vars)):
                found.update(dict.fromkeys(invisible_in(text), text))
    assert found == {}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for part in pair for text in _texts(part))
    elif isinstance(value, list | tuple):
        yield from (text for part in value for text in _texts(part))


def test_a_character_that_nobody_sees_reached_the_terminal_of_an_operator(capsys: pytest.CaptureFixture[str]) -> None:
    for chunk in _chunks():
        row = LedgerRow(
            place=(1,),
            columns={
                **dict.fromkeys(("approval_id", "owner", "session_id", "expires_at", "decided_at", "begun")),
                **{"status": "pending", "reason": chunk},
            },
            record={
                "tool": f"pay{chunk}",
                "requester": {"identity": {"native_id": chunk, "channel": "telegram"}},
                "request": {"function_call": {"arguments": {chunk: [chunk]}}},
            },
        )
        seen = {**summary("approvals", row), **details("approvals", row, content=True)}
        print_table(list(seen), [seen])
        approval = {"id": f"apr_1{chunk}", "tool": f"pay{chunk}", "arguments": {chunk: [chunk]}}
        door: Any = None
        screen = Terminal()
        screen.read = lambda prompt: "y"
        assert Chat(door, screen, "Agent", None)._decide(approval) is True  # pyright: ignore[reportPrivateUsage]
    assert invisible_in(capsys.readouterr().out) == []


def test_what_is_displayed_changes_neither_the_digest_nor_the_call() -> None:
    request = _request("\u202e")
    before = digest(request), request.to_dict()
    for _ in (*TELEGRAM.renderer.answer(AgentResponse(messages=[Message("assistant", [request])])),):
        pass
    assert extract_contents(AgentResponse(messages=[Message("assistant", [request])]), WORDING)
    assert (digest(request), request.to_dict()) == before
    # A client of the JSON API gets the exact arguments, and escapes what it displays.
    (waiting,) = render_waiting(WaitingPage(questions=(_view("\u202e"),))).data
    assert (waiting.tool, waiting.arguments["\u202e"]) == ("pay\u202e", "\u202e")


def test_a_choice_is_known_by_its_label_and_by_what_is_displayed_of_it() -> None:
    choices = extract_choices(Literal["yes\u200b", "no"])
    assert [choice.label for choice in choices] == ["yes\\u200b", "no"]
    for written in ("yes\u200b", "yes\\u200b"):
        choice = find_choice(choices, written)
        assert choice is not None
        assert choice.value == "yes\u200b"


def test_the_end_of_a_long_choice_was_hidden_by_its_button() -> None:
    labels = ["Refund everything to the account " + end for end in ("of the customer", "of somebody else")]
    (message,) = TELEGRAM.renderer.answer(_workflow("x", _literal(tuple(labels))))[:1]
    assert all(label in message.text for label in labels)
    short = TELEGRAM.renderer.answer(_workflow("x", Literal["a", "b"]))
    assert [one.text for one in short] == ["Shall I x?", '{"x":["x"]}']


@pytest.mark.parametrize("filler", [" ", "\n", "\t", "\u00a0", "\n ", "\u3000"])
def test_the_end_of_an_argument_was_moved_out_of_sight(filler: str) -> None:
    arguments = {"note": f"thanks{filler * 5_000}and 1000 more"}
    call = Content.from_function_call("call_1", "pay", arguments=json.dumps(arguments, ensure_ascii=False))
    response = AgentResponse(messages=[Message("assistant", [Content.from_function_approval_request("apr_1", call)])])
    asked = question(request=response.messages[0].contents[0])
    fields = msgspec.to_builtins(shown_question(asked, 1.0))["fields"]
    assert "and 1000 more" in fields[0][1]
    for text in ("".join(message.text for message in TELEGRAM.renderer.answer(response)), fields[0][1]):
        blanks = max(len(run) for run in "".join(" " if one.isspace() else "x" for one in text).split("x"))
        assert blanks <= 32


def test_a_question_of_a_workflow_hid_a_part_of_itself_as_markdown() -> None:
    for wanted in (str, bool, create_model("Form", note=(str, ...))):
        parts = extract_contents(_workflow("&#x202e; [pay]: https://a.example 'x'", wanted), WORDING)
        assert [part.is_literal for part in parts] == [True, True]
    assert content_of_reply(_reply("x")).is_literal
