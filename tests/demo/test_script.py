"""The scripted concierge: what is said gives what is answered, with no model and no framework run."""

import pytest
from agent_framework import Content, Message

from frontdesk.demo.host import Step, next_step


def step(*said: str) -> Step:
    """The step after a conversation in which the guest said these things."""
    messages = [Message("user", [line]) for line in said]
    return next_step([one for message in messages for one in (message, Message("assistant", ["..."]))][:-1])


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("When is breakfast?", "breakfast"),
        ("my name is Ada. until when is the BAR open", "bar"),
        ("When can I swim?", "pool"),
        ("Is the library open now?", "library"),
    ],
)
def test_hours_are_looked_up(said: str, place: str) -> None:
    assert step(said) == Step("", "opening_hours", {"place": place})


@pytest.mark.parametrize(
    ("said", "expression"),
    [
        ("What is 3 * (110 + 12)?", "3 * (110 + 12)"),
        ("12 times 7", "12 * 7"),
        ("12x7=?", "12*7"),
        ("how much is 7 plus 5 minus 2.5", "7 + 5 - 2.5"),
        ("10 divided by 4, please", "10 / 4"),
        ("10 ÷ 4", "10 / 4"),
    ],
)
def test_sums_are_worked_out(said: str, expression: str) -> None:
    assert step(said) == Step("", "calculate", {"expression": expression})


@pytest.mark.parametrize(
    ("said", "room", "nights"),
    [
        ("Book a sea view room for two nights", "sea view", 2),
        ("please reserve the attic for 3 nights", "attic", 3),
        ("I'd like to book a room", "garden", 1),
        ("book a night in the garden", "garden", 1),
    ],
)
def test_a_booking_calls_the_tool_that_needs_a_yes(said: str, room: str, nights: int) -> None:
    found = step(said)
    assert (found.tool, found.arguments) == ("book_room", {"room": room, "nights": nights})
    assert "I need a yes" in found.text


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Hello!", "welcome to the Marmalade"),
        ("help", "I am the concierge"),
        ("what can you do?", "book a room"),
        ("how is the weather", "umbrella"),
        ("What time is it?", "1962"),
        ("when do you open?", "Which one?"),
        ("What do the rooms cost?", "sea view (150 euros a night)"),
        ("book a room for 400 nights", "one to thirty nights"),
        ("thank you", "At your service."),
        ("good night", "Sleep well"),
        ("my name is Ada", "A pleasure, Ada."),
        ("what is my name?", "not told me"),
        ("What did I say before?", "Nothing yet"),
        ("I am 30 years old", "not in my script"),
        ("colourless green ideas", "not in my script"),
        ("", "all ears"),
    ],
)
def test_everything_has_an_answer(said: str, answer: str) -> None:
    found = step(said)
    assert answer in found.text
    assert found.tool is None


def test_it_remembers_what_was_said() -> None:
    assert step("one", "What did I say before?").text == "You said “one”."
    assert step("one", "two", "what have I told you").text == "You said “one”; then “two”."
    assert "A few things. The latest were “two”" in step("one", "two", "three", "four", "What did I say?").text
    assert step("my name is Ada", "what is my name?").text == "You are Ada, of course."
    assert step("call me Grace", "hello").text.startswith("Welcome back, Grace!")


def test_no_messages_are_no_error() -> None:
    assert next_step([]).text == "I am all ears."


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("Booked.", "Booked."),
        ("Error: Tool call invocation was rejected by user.", "As you wish. I have booked nothing."),
        ("Error: Argument parsing failed.", "I am sorry, that did not work."),
    ],
)
def test_what_a_tool_brings_is_said(result: str, said: str) -> None:
    messages = [
        Message("user", ["book it"]),
        Message("assistant", [Content.from_function_call("call_1", "book_room", arguments="{}")]),
        Message("tool", [Content.from_function_result("call_1", result=result)]),
    ]
    assert next_step(messages) == Step(said)
    assert next_step([*messages, Message("user", ["because it rains"])]) == Step(said)
