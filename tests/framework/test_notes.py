"""Notes beside an answer: which tools it has used, and which sources it cites."""

from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content, Message, WorkflowEvent

from frontdesk import Citation, ToolUse
from frontdesk.framework.notes import MAX_CITATIONS, MAX_DETAIL_LENGTH, MAX_TOOLS, LiveNotes, list_notes
from frontdesk.interfaces.chat import ToolDetail

SECRET = "hunter2"


def call(name: str = "look", call_id: str = "1", arguments: Any = None) -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments or f'{{"word": "{SECRET}"}}')


def result(call_id: str = "1", **fields: Any) -> Content:
    return Content.from_function_result(call_id, **{"result": f"found {SECRET}", **fields})


def build_cited(*annotations: Any) -> Content:
    return Content.from_text("x", annotations=list(annotations))


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("hidden", ()),
        ("names", (ToolUse(call_id="1", name="look", state="done"),)),
        (
            "full",
            (
                ToolUse(
                    call_id="1",
                    name="look",
                    state="done",
                    arguments=f'{{"word": "{SECRET}"}}',
                    result=f"found {SECRET}",
                ),
            ),
        ),
    ],
)
def test_as_much_is_noted_of_a_call_as_the_channel_shows(detail: ToolDetail, expected: tuple[ToolUse, ...]) -> None:
    messages = [Message("assistant", [call()]), Message("tool", [result()]), Message("assistant", ["done"])]
    assert list_notes(messages, detail).tools == expected
    assert (SECRET in str(list_notes(messages, detail))) == (detail == "full")


def test_a_call_is_followed_from_its_first_piece_to_its_result() -> None:
    now = [10.0]
    notes = LiveNotes("full", lambda: now[0])

    def add(*contents: Content) -> bool:
        return notes.add(AgentResponseUpdate(contents=list(contents), role="assistant"))

    assert add(call(arguments='{"wo'))
    assert notes.notes.tools[0].state == "running"
    assert add(Content.from_function_call("", "", arguments='rd": 1}'))
    assert notes.notes.tools[0].arguments == '{"word": 1}'
    now[0] = 12.5
    assert notes.add(WorkflowEvent("output", executor_id="one", data=AgentResponseUpdate(contents=[result()])))
    assert (notes.notes.tools[0].state, notes.notes.tools[0].seconds) == ("done", 2.5)
    assert not add(Content.from_text("words alone"))
    assert not notes.add("words")


def test_a_call_that_waits_for_a_yes_has_its_question_instead() -> None:
    asked = Content.from_function_approval_request("1", call())
    assert list_notes([Message("assistant", [call(), asked])], "full").tools == ()
    assert list_notes([Message("tool", [result()])], "full").tools == ()


def test_a_call_that_failed_says_so() -> None:
    messages = [Message("assistant", [call()]), Message("tool", [result(exception="boom")])]
    assert list_notes(messages, "names").tools[0].state == "failed"


def test_notes_are_bounded() -> None:
    calls = [call(f"tool {number} " + "x" * 500, str(number), "y" * 9_999) for number in range(2 * MAX_TOOLS)]
    sources = [{"type": "citation", "title": "t" * 999, "url": f"https://a.example/{n}"} for n in range(99)]
    notes = list_notes([Message("assistant", [*calls, build_cited(*sources)])], "full")
    assert len(notes.tools) == MAX_TOOLS
    assert notes.tools[-1].name.startswith(f"tool {2 * MAX_TOOLS - 1} x")
    assert {len(tool.arguments) for tool in notes.tools} == {MAX_DETAIL_LENGTH + 1}
    assert len(notes.citations) == MAX_CITATIONS


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (
            {"type": "citation", "title": "A", "url": "https://a.example/"},
            Citation(title="A", url="https://a.example/"),
        ),
        (
            {"type": "citation", "url": "http://a.example/"},
            Citation(title="http://a.example/", url="http://a.example/"),
        ),
        ({"type": "citation", "title": "A", "url": "javascript:alert(1)"}, Citation(title="A")),
        ({"type": "citation", "title": "A", "url": "//a.example"}, Citation(title="A")),
        ({"type": "citation", "file_id": "file_1"}, Citation(title="file_1")),
        ({"type": "citation"}, None),
        ({"type": "other", "title": "A"}, None),
        ("citation", None),
    ],
)
def test_a_source_is_known_by_its_annotation(annotation: Any, expected: Citation | None) -> None:
    notes = list_notes([Message("assistant", [build_cited(annotation, annotation)])], "hidden")
    assert notes.citations == (() if expected is None else (expected,))
