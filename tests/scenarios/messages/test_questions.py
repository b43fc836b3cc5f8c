"""A workflow's questions in a chat: how they are put, and what is taken for an answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import pytest
from agent_framework import Executor, Message, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler

from tests.scenarios.messages.chat import MessagesHost, open_chat
from tests.scenarios.pausing import Inn


class Colour(Enum):
    """What a guest may choose."""

    RED = "red"
    BLUE = "sky blue"


NOT_OPEN = "This question is not yours, or it was answered before."
WANTED: dict[str, Any] = {"yes": bool, "colour": Colour, "age": float, "name": str}


class Host(Executor):
    """Asks what it is told to ask, and says what it has heard."""

    def __init__(self) -> None:
        super().__init__("host")

    @handler
    async def ask(self, text: str, context: WorkflowContext[str, str]) -> None:
        if text not in WANTED:
            return await context.yield_output(f"said {text}")
        await context.request_info({"question": f"Your {text}?"}, WANTED[text])

    @response_handler
    async def sure(self, asked: dict, answer: bool, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"bool {answer}")

    @response_handler
    async def painted(self, asked: dict, answer: Colour, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"colour {answer.name}")

    @response_handler
    async def aged(self, asked: dict, answer: float, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"age {answer}")

    @response_handler
    async def named(self, asked: dict, answer: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"name {answer}")


def flow() -> Workflow:
    host = Host()
    return WorkflowBuilder(name="host", start_executor=host, output_from=[host]).build()


class Listener(Host):
    """The same, for a workflow that is run as an agent."""

    @handler
    async def hear(self, messages: list[Message], context: WorkflowContext[str, str]) -> None:
        await self.ask(messages[-1].text, context)


def _build_listener() -> Any:
    host = Listener()
    return WorkflowBuilder(name="host", start_executor=host, output_from=[host]).build().as_agent()


class Talk:
    """What one person says in a chat, and what is answered."""

    def __init__(self, chat: MessagesHost, person: Any) -> None:
        self.chat, self.person, self.count = chat, person, 0

    async def __call__(self, text: str, *, answers: int = 1) -> str:
        await self.chat.platform.say(self.person, text)
        return (await self.next(answers)).text

    async def next(self, answers: int = 1) -> Any:
        self.count += answers
        return await self.chat.last(self.person.chat_id, self.count)

    async def press(self, message: Any, label: str) -> str:
        await self.chat.platform.click(self.person, message, label)
        return (await self.next()).text


@asynccontextmanager
async def _open_talk(target: Any = flow, **settings: Any) -> AsyncIterator[Talk]:
    async with open_chat(target, **settings) as chat:
        yield Talk(chat, await chat.platform.user("Ada"))


@pytest.mark.parametrize(
    ("asked", "shown", "refused", "answers"),
    [
        ("name", "Your name?", None, {"Ada": "name Ada", "42": "name 42"}),
        ("yes", "Your yes?", "yes or no", {"Yes": "bool True", "n": "bool False", "nein": "bool False"}),
        (
            "colour",
            "Your colour?",
            "one of: red, sky blue",
            {"RED": "colour RED", " Sky Blue ": "colour BLUE", "blue": "colour BLUE"},
        ),
        ("age", "Your age?\n\nPlease answer with a number.", "a number", {"7": "age 7.0", "7.5": "age 7.5"}),
    ],
)
async def test_a_message_answers_the_question(
    asked: str, shown: str, refused: str | None, answers: dict[str, str]
) -> None:
    async with _open_talk() as ada:
        for text, heard in answers.items():
            assert await ada(asked) == shown
            if refused is not None:
                told = f"I asked you something first: please answer with {refused}. /cancel gives the question up."
                assert await ada("what do you mean?") == told
            assert await ada(text) == heard
        assert await ada("hello") == "said hello"


@pytest.mark.parametrize(
    ("asked", "labels", "pressed", "heard"),
    [
        ("yes", ["Yes", "No"], "No", "bool False"),
        ("colour", ["red", "sky blue"], "sky blue", "colour BLUE"),
    ],
)
async def test_a_choice_is_a_button_that_counts_once(asked: str, labels: list[str], pressed: str, heard: str) -> None:
    async with _open_talk() as ada:
        await ada(asked)
        message = await ada.next(0)
        assert [button.text for button in message.buttons] == labels
        assert await ada.press(message, pressed) == heard
        click = (await ada.chat.platform.click(ada.person, message, labels[0])).click
        callback_id = "" if click is None else click.callback_id

        async def told() -> bool:
            return bool((await ada.chat.platform.state()).clicks[callback_id])

        await ada.chat.platform.until(told)
        assert (await ada.chat.platform.state()).clicks[callback_id] == NOT_OPEN
        # Nothing was run for it.
        assert await ada("hello") == "said hello"


@pytest.mark.parametrize("data", ["choose:0000000000000000:0", "choose:x:99999999999999999", "choose:", "choose:x:²"])
async def test_a_button_of_nothing_changes_nothing(data: str) -> None:
    async with _open_talk() as ada:
        await ada("yes")
        message = await ada.next(0)
        event = await ada.chat.platform.click(ada.person, message, data)
        await ada.chat.platform.wait_for_acknowledged(event)
        assert await ada("yes") == "bool True"


async def test_several_questions_are_answered_in_their_order() -> None:
    inn = Inn()
    async with _open_talk(inn) as ada:
        # A greeting, and two questions.
        await ada("two guests", answers=3)
        # What still waits is asked once more.
        assert await ada('{"accepted": true, "nights": 2}', answers=3) == "breakfast?"
        assert await ada("eggs") == "breakfast: eggs"
    assert inn.ledger == ["attic 2", "eggs"]


async def test_an_answer_that_is_no_json_of_its_type_is_refused() -> None:
    inn = Inn()
    async with _open_talk(inn) as ada:
        await ada("anna", answers=2)
        told = "I asked you something first: please answer with Choice, as JSON. /cancel gives the question up."
        for text in ("yes", "{}", '{"accepted": "perhaps"}'):
            assert await ada(text) == told
    assert inn.ledger == []


async def test_a_workflow_as_an_agent_asks_and_is_answered_too() -> None:
    async with _open_talk(_build_listener) as ada:
        assert await ada("colour") == "Your colour?"
        message = await ada.next(0)
        assert [button.text for button in message.buttons] == ["red", "sky blue"]
        assert (await ada("green")).startswith("I asked you something first: please answer with one of: red, sky blue.")
        assert await ada.press(message, "red") == "colour RED"
        assert await ada("hello") == "said hello"


@pytest.mark.parametrize("target", [flow, _build_listener], ids=["workflow", "agent"])
async def test_cancel_gives_the_question_up(target: Any) -> None:
    async with _open_talk(target) as ada:
        assert await ada("/cancel") == "There is nothing to stop."
        await ada("colour")
        message = await ada.next(0)
        assert await ada("/cancel") == "I have dropped my question."
        assert await ada("/cancel") == "There is nothing to stop."
        event = await ada.chat.platform.click(ada.person, message, "red")
        await ada.chat.platform.wait_for_acknowledged(event)
        assert await ada("hello") == "said hello"
        # And the next question is one like any other.
        await ada("name")
        assert await ada("Ada") == "name Ada"


async def test_a_question_that_was_given_up_leaves_what_the_workflow_remembers() -> None:
    inn = Inn()
    async with _open_talk(inn) as ada:
        await ada("anna", answers=2)
        assert await ada("/cancel") == "I have dropped my question."
        assert await ada("who?") == "served anna"
        await ada("two guests", answers=3)
        assert await ada("/cancel") == "I have dropped my 2 questions."
        assert await ada("who?") == "served anna, two guests"
    assert inn.ledger == []


async def test_the_history_says_that_a_question_was_given_up() -> None:
    """A call without a result is refused by models that are told the history."""
    heard: list[list[str]] = []

    class Recorder(Listener):
        @handler
        async def hear(self, messages: list[Message], context: WorkflowContext[str, str]) -> None:
            heard.append([content.type for message in messages for content in message.contents])
            await self.ask(messages[-1].text, context)

    def build() -> Any:
        host = Recorder()
        return WorkflowBuilder(name="host", start_executor=host, output_from=[host]).build().as_agent()

    async with _open_talk(build) as ada:
        for text in ("colour", "/cancel", "hello"):
            await ada(text)
    assert heard[-1] == ["text", "function_call", "function_result", "text"]
