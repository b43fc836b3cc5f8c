"""Messages become items of the service, and items of anybody's become messages."""

from typing import Any

import pytest
from agent_framework import Content, Message

from frontdesk.foundry.conventions import foundry_response_id
from frontdesk.history.foundry.reading import _READERS, read
from frontdesk.history.foundry.writing import write
from frontdesk.openai.tools import TOOL_KINDS

RESPONSE = foundry_response_id()
CITATION: Any = {"type": "citation", "title": "A guide", "url": "https://a.example/guide", "file_id": "f"}


def _call(name: str = "look", call_id: str = "call_1") -> Content:
    return Content.from_function_call(call_id, name, arguments='{"at": 1}')


TURNS: dict[str, list[Message]] = {
    "texts with borders": [Message("user", ["one", "two"]), Message("assistant", ["three", "four"])],
    "a picture and a file": [
        Message(
            "user",
            [
                Content.from_uri("https://a.example/b.png", media_type="image/png"),
                Content.from_uri("data:text/plain;base64,aGk=", media_type="text/plain"),
            ],
        )
    ],
    "a tool": [
        Message("user", ["hi"]),
        Message("assistant", ["so", _call(), _call("listen", "call_2")]),
        Message("tool", [Content.from_function_result("call_1", result="seen")]),
        Message("tool", [Content.from_function_result("call_2", result={"heard": [1]})]),
        Message("assistant", ["done"]),
    ],
    "a client's tool": [
        Message("tool", [Content.from_function_result("call_9", result="from the client")]),
        Message("assistant", ["thanks"]),
    ],
    "reasoning": [Message("assistant", [Content.from_text_reasoning(id="r", text="hm", protected_data="x"), "so"])],
    "a question": [Message("assistant", [Content.from_function_approval_request("ask_1", _call())])],
    "an answer": [Message("user", [Content.from_function_approval_response(True, "ask_1", _call())])],
    "tools of the service": [
        Message(
            "assistant",
            [
                Content.from_search_tool_call("s", tool_name="web_search", arguments={"query": "x"}),
                Content.from_search_tool_result("s", tool_name="web_search", result=[1]),
                Content.from_code_interpreter_tool_call(call_id="c", inputs=[Content.from_text("1+1")]),
                Content.from_code_interpreter_tool_result(call_id="c", outputs=[Content.from_text("2")]),
                Content.from_shell_tool_call(call_id="sh", commands=["ls"]),
                Content.from_shell_tool_result(
                    call_id="sh", outputs=[Content.from_shell_command_output(stdout="a", exit_code=0)]
                ),
                Content.from_mcp_server_tool_call("m", "find", server_name="books", arguments="{}"),
                Content.from_mcp_server_tool_result("m", output="found"),
                Content.from_image_generation_tool_result(image_id="i", outputs=None),
                Content.from_error(message="no"),
                Content("computer_tool_call", id="co", call_id="co", actions=[{"type": "click"}]),
                Content("computer_tool_result", call_id="co"),
            ],
        )
    ],
    "what a message says beside": [
        Message(
            "assistant",
            ["hi"],
            author_name="Ada",
            message_id="m-1",
            additional_properties={"hosting": {"channel": "web", "at": [1, None]}},
        )
    ],
    "citations and properties": [
        Message(
            "user",
            [
                Content.from_text("see", additional_properties={"lang": "en"}),
                Content.from_uri(
                    "https://a.example/b.png",
                    media_type="image/png",
                    additional_properties={"detail": "high", "alt": "a map"},
                ),
            ],
        ),
        Message(
            "assistant",
            [
                "plain, ",
                Content.from_text("cited", annotations=[CITATION], additional_properties={"core": {"x": [1]}}),
                Content.from_function_call("c", "look", arguments="{}", additional_properties={"fc_id": "fc_1"}),
                "again",
            ],
        ),
    ],
}


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_is_read_back_as_it_was(name: str) -> None:
    given, output = write(TURNS[name], RESPONSE)
    back = read([*given, *output])
    assert [message.role for message in back] == [message.role for message in TURNS[name]]
    for before, after in zip(TURNS[name], back, strict=True):
        assert [_as_dict(content) for content in after.contents] == [_as_dict(content) for content in before.contents]
        assert after.author_name == before.author_name
        assert after.additional_properties == before.additional_properties
        if before.message_id:
            assert after.message_id == before.message_id


def test_audit_53_citations_and_properties_were_lost() -> None:
    """The parts say what they can, and our key the rest; a part that others have changed has their text."""
    given, output = write(TURNS["citations and properties"], RESPONSE)
    assert [item["content"] for item in given] == [
        [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "high"},
        ]
    ]
    before, cited, call, _ = read([*given, *output])[1].contents
    assert (before.annotations, before.additional_properties) == (None, {})
    assert cited.annotations == [CITATION]
    assert cited.additional_properties == {"core": {"x": [1]}}
    assert call.additional_properties == {"fc_id": "fc_1"}
    output[0]["content"][1]["text"] = "changed"
    assert read(output)[0].contents[1].text == "changed"
    # What others have taken away or broken is read without it.
    for broken in (None, "x", [], [{"annotations": 1, "additional_properties": 2}, None], [1, 2]):
        output[0]["agent_framework"]["extras"] = broken
        assert [content.text for content in read(output)[0].contents[:2]] == ["plain, ", "changed"]


def _as_dict(content: Content) -> dict[str, Any]:
    return {"additional_properties": {}, **content.to_dict()}


def test_questions_and_answers_name_each_other_in_later_turns_too() -> None:
    asked = write(TURNS["a question"], RESPONSE)[1]
    later = foundry_response_id(RESPONSE)
    answered = write(TURNS["an answer"], later)[0]
    assert answered[0]["approval_request_id"] == asked[0]["id"]
    # And so do those that others have written, which have nothing of ours.
    for item in (*asked, *answered):
        del item["agent_framework"]
    request, response = (message.contents[0] for message in read([*asked, *answered]))
    assert response.id == request.id == asked[0]["id"]
    assert response.approved is True
    assert response.function_call is not None
    assert (response.function_call.name, response.function_call.arguments) == ("look", '{"at": 1}')


def test_answers_are_parted_from_questions_by_role() -> None:
    turn = [Message("user", ["before"]), Message("assistant", ["then"]), Message("user", ["now"])]
    given, output = write([*turn, Message("assistant", ["so"]), Message("tool", [_result()])], RESPONSE)
    assert [item["role"] for item in given] == ["user", "assistant", "user"]
    assert [item["type"] for item in output] == ["message", "function_call_output"]
    assert {part["type"] for part in output[0]["content"]} == {"output_text"}


def _result() -> Content:
    return Content.from_function_result("call_1", result="x")


def test_items_of_others_are_read() -> None:
    items: list[dict[str, Any] | None] = [
        {"type": "message", "role": "developer", "id": "msg_0", "content": "be brief"},
        {"type": "message", "role": "user", "id": "msg_1", "content": [{"type": "input_text", "text": "hi"}]},
        None,
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "id": "msg_2", "content": [{"type": "output_text", "text": "so"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "look", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "2", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "id": "fco_1", "call_id": "1", "output": "seen"},
        {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "mcp_1", "output": "found"},
        {"type": "mcp_call", "id": "mcp_2", "name": "find", "server_label": "b", "arguments": "{}", "output": "x"},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "b", "tools": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
        {"type": "something_new", "id": "xx_1"},
        {"type": "message", "role": "user", "id": "m", "content": [{"type": "input_file", "file_data": "aGk="}]},
        {"type": "message", "role": "user", "id": "m", "content": [{"type": "input_image", "file_id": "file-1"}]},
    ]
    read_back = [(message.role, [content.type for content in message.contents]) for message in read(items)]
    assert read_back == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text_reasoning", "text", "function_call", "function_call"]),
        ("tool", ["function_result"]),
        ("tool", ["mcp_server_tool_result"]),
        ("assistant", ["mcp_server_tool_call", "mcp_server_tool_result"]),
        ("assistant", ["search_tool_call"]),
        ("user", ["data"]),
        ("user", ["hosted_file"]),
    ]


KINDS = sorted({*_READERS, *TOOL_KINDS})
JUNK: list[Any] = [
    None,
    1,
    "x",
    ["x"],
    [["x"]],
    {"x": None},
    [{"type": "input_text"}],
    [{"type": "input_image", "image_url": "?"}],
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_what_others_have_written_wrong_is_no_failure(kind: str, junk: Any) -> None:
    names = (
        *("content", "output", "summary", "arguments", "input", "name", "call_id", "result", "role", "approve"),
        *("action", "outputs", "queries", "encrypted_content", "server_label", "approval_request_id"),
    )
    read([{"type": kind, "id": junk, **dict.fromkeys(names, junk)}, {"type": kind, "id": "x"}])


@pytest.mark.parametrize(
    "kept", [1, ["x"], [{}], [{"type": "nothing"}], [{"type": "text", "text": 1, "nonsense": 2}], {"a": 1}]
)
def test_contents_of_another_version_do_not_fail_a_turn(kept: Any) -> None:
    item = {"type": "function_call_output", "id": "fco_1", "call_id": "1", "output": "seen", "agent_framework": None}
    for own in (
        kept,
        {"contents": kept},
        {"contents": kept, "role": 1, "joins": "x", "properties": 7, "message_id": 3},
    ):
        assert len(read([{**item, "agent_framework": own}])) == 1
