"""A conversation as plain text."""

from agent_framework import Content, Message

from frontdesk.framework.contents import transcript


def test_who_said_what() -> None:
    said = [
        Message("user", ["look", Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")]),
        Message("assistant", [Content.from_function_call("c", "see", arguments={"where": "here"})]),
        Message("tool", [Content.from_function_result("c", result="a cat")]),
        Message("assistant", [Content.from_text_reasoning(text="hm")]),
        Message("assistant", ["a cat", "it sleeps"]),
    ]
    assert transcript(said) == (
        "user: look\n[image/png]\n\n"
        'assistant: [calls see with {"where":"here"}]\n\n'
        "tool: [result: a cat]\n\n"
        "assistant: a cat\nit sleeps"
    )


def test_nothing_is_nothing() -> None:
    assert transcript([]) == ""
