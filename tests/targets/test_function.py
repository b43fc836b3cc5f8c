"""Plain functions as targets, in every form that a function has."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any, Optional

import pytest
from agent_framework import AgentResponse, AgentResponseUpdate, AgentSession, Content, Message

from frontdesk.errors import InvalidRequestError
from frontdesk.models.request import ClientTool
from frontdesk.targets.detect import FunctionTarget
from tests.sessions.admitted import Room
from tests.targets.turns import adapt_target, run, stream, turn_of


async def of_text(text: str) -> str:
    """Says it again."""
    return f"heard {text}"


async def of_anything(said):
    return f"heard {said}"


async def of_optional(text: str | None) -> str:
    return f"heard {text}"


async def of_old_optional(text: Optional[str]) -> str:  # noqa: UP045
    return f"heard {text}"


async def of_annotated(text: Annotated[str, "what was said"]) -> str:
    return f"heard {text}"


async def with_default(text: str, extra: int = 1, *, more: str = "") -> str:
    return f"heard {text}"


async def in_words(text: str) -> AsyncIterator[str]:
    for word in f"heard {text}".split(" "):
        yield word if word == "heard" else f" {word}"


class ProactiveSender:
    async def method(self, text: str) -> str:
        return f"heard {text}"

    @staticmethod
    async def static(text: str) -> str:
        return f"heard {text}"

    async def __call__(self, text: str) -> str:
        return f"heard {text}"


async def add_prefix(prefix: str, text: str) -> str:
    return f"{prefix} {text}"


FORMS = [
    of_text,
    of_anything,
    of_optional,
    of_old_optional,
    of_annotated,
    with_default,
    in_words,
    ProactiveSender().method,
    ProactiveSender.static,
    partial(add_prefix, "heard"),
]


@pytest.mark.parametrize("function", FORMS, ids=lambda form: getattr(form, "__name__", "partial"))
async def test_every_form_answers_in_one_piece_and_in_many(function: Any) -> None:
    target = adapt_target(function)
    assert isinstance(target, FunctionTarget)
    assert target.findings == []
    assert target.info.kind == "function"
    assert (await run(function, "hello you")).text == "heard hello you"
    updates, final = await stream(function, "hello you")
    assert "".join(update.text for update in updates) == final.text == "heard hello you"


async def of_list(messages: list[Message]) -> str:
    return " ".join(f"{message.role}:{message.text}" for message in messages)


async def of_bare_list(messages: list) -> str:  # type: ignore[type-arg]
    return await of_list(messages)


async def of_sequence(messages: Sequence[Message]) -> str:
    return await of_list(list(messages))


@pytest.mark.parametrize("function", [of_list, of_bare_list, of_sequence])
async def test_a_function_of_messages_gets_the_history_too(function: Any) -> None:
    remaining = Room()
    await remaining.say("one", key="mine")
    assert (await run(function, "two", remaining=remaining, key="mine")).text == "user:one assistant:re: one user:two"


async def test_a_function_can_have_the_session() -> None:
    async def counted(text: str, session: AgentSession) -> str:
        session.state["turns"] = session.state.get("turns", 0) + 1
        return f"{session.session_id} {session.state['turns']}"

    assert (await run(counted)).text == "ses_1 1"


async def test_what_was_said_and_answered_is_staged() -> None:
    for function in (of_text, in_words):
        async with turn_of("one") as turn:
            await adapt_target(function).run(turn)
            assert turn.staged is not None
            assert [message.text for message in turn.staged] == ["one", "heard one"]
            assert turn.staged[0] is turn.messages[0]


async def test_several_messages_are_one_text() -> None:
    assert (await run(of_text, ["one", "two"])).text == "heard one\ntwo"


IMAGE = Content.from_uri("https://example.com/a.png", media_type="image/png")
WHOLE = AgentResponse(messages=[Message("assistant", ["a"]), Message("assistant", ["b"])], response_id="mine")


@pytest.mark.parametrize(
    ("returned", "text", "value"),
    [
        ("plain", "plain", None),
        ("", "", None),
        (Message("assistant", ["a message"]), "a message", None),
        (Content.from_text("a content"), "a content", None),
        (IMAGE, "", None),
        ({"mood": "good", "n": [1, None]}, '{"mood": "good", "n": [1, null]}', {"mood": "good", "n": [1, None]}),
        ([1, 2], "[1, 2]", [1, 2]),
        (7, "7", 7),
        (False, "false", False),
    ],
)
async def test_what_a_function_returns_is_an_answer(returned: Any, text: str, value: Any) -> None:
    async def function(said: str) -> Any:
        return returned

    for result in (await run(function), (await stream(function))[1]):
        assert result.text == text
        assert result.value == value
        assert [message.role for message in result.messages] == ["assistant"]


async def test_a_whole_response_goes_through_unchanged() -> None:
    async def function(said: str) -> Any:
        return WHOLE

    assert await run(function) is WHOLE
    assert (await stream(function))[1].text == WHOLE.text


async def test_what_a_generator_yields_are_pieces() -> None:
    own = AgentResponseUpdate(contents=[Content.from_text("own ")], role="assistant")

    async def function(said: str) -> AsyncIterator[Any]:
        yield "text "
        yield Content.from_text("content ")
        yield own
        yield 7

    updates, final = await stream(function)
    assert [update.text for update in updates] == ["text ", "content ", "own ", "7"]
    assert updates[2] is own
    assert final.text == (await run(function)).text == "text content own 7"


async def test_a_generator_that_is_left_early_can_tidy_up() -> None:
    tidied = asyncio.Event()

    async def function(said: str) -> AsyncIterator[str]:
        try:
            yield "one"
            yield "two"
        finally:
            tidied.set()

    async with turn_of() as turn:
        started = await adapt_target(function).stream(turn)
        async for _ in started:
            break
        await started.close()
    assert tidied.is_set()


async def test_a_stream_that_nobody_read_can_be_closed() -> None:
    for function in (of_text, in_words):
        async with turn_of() as turn:
            await (await adapt_target(function).stream(turn)).close()


async def test_a_forgotten_await_is_told() -> None:
    async def function(said: str) -> Any:
        return of_text(said)

    with pytest.raises(TypeError, match=r"returned a coroutine instead of an answer\. Check for a missing await"):
        await run(function)


async def test_an_error_comes_through() -> None:
    async def function(said: str) -> str:
        raise RuntimeError("broken")

    async def generator(said: str) -> AsyncIterator[str]:
        yield "one"
        raise RuntimeError("broken")

    for target in (function, generator):
        with pytest.raises(RuntimeError, match="broken"):
            await run(target)
        with pytest.raises(RuntimeError, match="broken"):
            await stream(target)


@pytest.mark.parametrize("function", [of_text, in_words])
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"options": {"temperature": 1}}, "temperature"),
        ({"client_tools": (ClientTool(name="mine"),)}, "tools"),
        ({"said": {"typed": "input"}}, "input"),
        ({"said": None}, "input"),
    ],
    ids=["options", "tools", "typed input", "nothing"],
)
async def test_what_a_function_cannot_take_is_refused_by_name(
    function: Any, fields: dict[str, Any], param: str
) -> None:
    for way in (run, stream):
        with pytest.raises(InvalidRequestError) as caught:
            await way(function, **fields)
        assert caught.value.param == param


async def no_argument() -> str:
    return ""


async def two_arguments(text: str, mood: str) -> str:
    return text


async def keyword_only(*, text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("function", "reason"),
    [(no_argument, "takes no argument"), (two_arguments, "needs mood"), (keyword_only, "text")],
)
def test_a_function_that_cannot_be_called_is_found_at_once(function: Any, reason: str) -> None:
    (finding,) = adapt_target(function).findings
    assert finding.startswith("target: ")
    assert function.__name__ in finding
    assert reason in finding


def test_it_is_called_what_the_function_is_called() -> None:
    info = adapt_target(of_text).info
    assert (info.name, info.description) == ("of_text", "Says it again.")
    assert not info.options
    assert not info.tools
