"""Questions and answers through the `openai` package: whole, streamed, structured, refused and failed."""

from typing import Any

import pytest
from agent_framework import Content, tool
from openai import APIError, APIStatusError, BadRequestError, NotFoundError
from pydantic import BaseModel

from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import echo, parrot, spell
from tests.scenarios.chat_completions.desk import HI, open_client
from tests.scenarios.pausing import Inn
from tests.scenarios.responses.cast import Finish, agent, build_answering, call

PIXEL = "data:image/png;base64,iVBORw0KGgo="
USAGE = Content.from_usage({"input_token_count": 7, "output_token_count": 3, "total_token_count": 10})


class Room(BaseModel):
    """What the agent is asked for."""

    number: int
    view: str


async def test_a_question_is_answered_and_nothing_is_kept() -> None:
    target = agent(["hello ", "there", USAGE])
    async with open_client(target) as desk:
        made = await desk.create([{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}])
        (choice,) = made.choices
        assert (choice.message.content, choice.finish_reason, made.model) == ("hello there", "stop", "Concierge")
        assert made.id.startswith("chatcmpl")
        assert (made.usage.prompt_tokens, made.usage.completion_tokens, made.usage.total_tokens) == (7, 3, 10)
        assert target.client.said() == [("system", "be kind"), ("user", "hi")]
        assert desk.is_untouched()


@pytest.mark.parametrize("usage", [False, True])
async def test_a_stream_says_the_same_word_by_word(usage: bool) -> None:
    asked: dict[str, Any] = {"stream_options": {"include_usage": True}} if usage else {}
    async with open_client(agent(["hello ", "there", USAGE])) as desk:
        chunks = await desk.chunks(**asked)
        assert len({chunk.id for chunk in chunks}) == 1
        spoken = [chunk.choices[0] for chunk in chunks if chunk.choices]
        assert spoken[0].delta.role == "assistant"
        assert [choice.delta.content for choice in spoken[1:-1]] == ["hello ", "there"]
        assert [choice.finish_reason for choice in spoken] == [None] * (len(spoken) - 1) + ["stop"]
        counted = [chunk.usage.total_tokens for chunk in chunks if chunk.usage is not None]
        assert counted == ([10] if usage else [])
        # The chunk with the usage has no choice; the others have the field, and it is empty.
        assert [chunk for chunk in chunks if not chunk.choices] == chunks[len(spoken) :]
        assert all(("usage" in chunk.model_fields_set) is usage for chunk in chunks)
        assert desk.is_untouched()


async def test_the_stream_ends_as_the_api_ends_it() -> None:
    async with open_client(parrot()) as desk:
        answer = await desk.post({"messages": HI, "stream": True})
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.text.endswith("data: [DONE]\n\n")


async def test_messages_around_a_tool_of_the_hosts_are_one_message() -> None:
    @tool(approval_mode="never_require")
    def look() -> str:
        """Looks."""
        return "a cat"

    script: Any = (["let me see", call("look")], ["there is ", "a cat"])
    async with open_client(agent(*script, *script, tools=[look])) as desk:
        whole = (await desk.create()).choices[0]
        assert (whole.message.content, whole.message.tool_calls) == ("let me see\n\nthere is a cat", None)
        chunks = await desk.chunks()
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.message.content
        assert not any(chunk.choices[0].delta.tool_calls for chunk in chunks)


async def test_an_answer_with_a_structure_is_parsed() -> None:
    target = agent(['{"number": 12, "view": "sea"}'], ['{"a": 1}'])
    async with open_client(target) as desk:
        parsed = await desk.client.chat.completions.parse(model="m", messages=HI, response_format=Room)
        assert parsed.choices[0].message.parsed == Room(number=12, view="sea")
        asked = target.client.options[-1]["response_format"]["json_schema"]
        assert (asked["name"], asked["strict"]) == ("Room", True)
        await desk.create(response_format={"type": "json_object"})
        assert target.client.options[-1]["response_format"] == {"type": "json_object"}


async def test_options_reach_the_model() -> None:
    target = build_answering(lambda _: ["ok"])
    async with open_client(target) as desk:
        await desk.create(
            temperature=0.5,
            top_p=0.9,
            presence_penalty=0.1,
            frequency_penalty=0.2,
            max_tokens=5,
            stop="end",
            seed=7,
            reasoning_effort="low",
            verbosity="low",
            user="ada",
        )
        options = target.client.options[-1]
        assert {name: options[name] for name in ("temperature", "top_p", "max_tokens", "stop", "seed")} == {
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 5,
            "stop": ["end"],
            "seed": 7,
        }
        assert (options["reasoning"], options["verbosity"]) == ({"effort": "low"}, "low")
        assert "user" not in options
        assert "model" not in options
        await desk.create(max_completion_tokens=9, max_tokens=5, stop=["a", "b"])
        assert (target.client.options[-1]["max_tokens"], target.client.options[-1]["stop"]) == (9, ["a", "b"])


async def test_pictures_sounds_and_files_reach_the_model() -> None:
    target = build_answering(lambda _: ["seen"])
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    ]
    async with open_client(target) as desk:
        await desk.create([{"role": "user", "content": parts}])
        contents = target.client.seen[-1][-1].contents
        assert [(one.type, one.media_type) for one in contents] == [
            ("text", None),
            ("data", "image/png"),
            ("uri", "image/png"),
            ("data", "audio/wav"),
            ("data", "application/pdf"),
        ]


async def test_a_picture_is_fetched_from_nowhere_unless_it_is_set_so() -> None:
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://127.0.0.1/cat.png"}}]}]
    async with open_client(parrot(), fetch_urls=True) as desk:
        with pytest.raises(BadRequestError) as caught:
            await desk.create(picture)
        assert caught.value.param == "messages[0].content[0].image_url"
    async with open_client(echo) as desk:
        with pytest.raises(BadRequestError, match="Image URLs are not accepted"):
            await desk.create(picture)


async def test_a_refusal_and_a_cut_answer_are_told_apart() -> None:
    no = Content.from_text("no", additional_properties={"core": {"model_output_kind": "refusal"}})
    async with open_client(agent([no], [no], ["half", Finish("length")], ["half", Finish("length")])) as desk:
        message = (await desk.create()).choices[0].message
        assert (message.content, message.refusal) == (None, "no")
        assert [chunk.choices[0].delta.refusal for chunk in await desk.chunks()] == [None, "no", None]
        assert (await desk.create()).choices[0].finish_reason == "length"
        assert (await desk.chunks())[-1].choices[0].finish_reason == "length"


async def test_a_picture_of_the_agents_is_shown_as_a_link() -> None:
    made = Content.from_uri(PIXEL, media_type="image/png")
    async with open_client(agent(["here: ", made])) as desk:
        assert (await desk.create()).choices[0].message.content == f"here: ![image/png]({PIXEL})"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_that_needs_a_persons_word_is_an_error_that_says_so(stream: bool) -> None:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    async with open_client(build_answering(lambda _: [call("pay", amount=1)], tools=[pay])) as desk:
        with pytest.raises(APIError, match="keeps no session") as caught:
            await (desk.chunks() if stream else desk.create())
        if not stream:
            # No status with which a client would run it once more.
            assert isinstance(caught.value, APIStatusError)
            assert (caught.value.status_code, caught.value.code) == (400, "session_required")
            assert caught.value.response.headers["x-should-retry"] == "false"
        assert (paid, desk.is_untouched()) == ([], True)


async def test_a_workflow_that_pauses_is_an_error_too() -> None:
    async with open_client(Inn()) as desk:
        with pytest.raises(APIStatusError, match="without a session"):
            await desk.create()
        assert not desk.active


@pytest.mark.parametrize("stream", [False, True])
async def test_a_target_that_fails_is_told_once(stream: bool) -> None:
    target = agent(["half", RuntimeError("the secret reason")])
    async with open_client(target) as desk:
        desk.client = desk.client.with_options(max_retries=2)
        with pytest.raises(APIError) as caught:
            await (desk.chunks() if stream else desk.create())
        assert "secret" not in str(caught.value)
        assert len(target.client.seen) == 1
        assert desk.active == 0


async def test_functions_and_workflow_streams_answer_too() -> None:
    async with open_client(spell) as desk:
        assert (await desk.create()).choices[0].message.content == "hello"
        assert "".join(chunk.choices[0].delta.content or "" for chunk in await desk.chunks()) == "hello"
        with pytest.raises(BadRequestError, match="max_completion_tokens"):
            await desk.create(max_tokens=3)
        assert (await desk.create(temperature=1)).choices[0].message.content == "hello"


async def test_the_only_model_is_the_target() -> None:
    async with open_client(parrot(), beside=[ResponsesChannel()]) as desk:
        (model,) = (await desk.client.models.list()).data
        assert (await desk.client.models.retrieve(model.id)).id == "Concierge"
        with pytest.raises(NotFoundError):
            await desk.client.models.retrieve("gpt-5")
        with pytest.raises(NotFoundError, match="No route for"):
            await desk.client.embeddings.create(model="m", input="x")
        # Beside it, the other API is served on the same base URL.
        assert (await desk.client.responses.create(model="m", input="hi")).output_text == "you said hi"
        assert (await desk.create()).choices[0].message.content == "you said hello"


async def test_an_update_that_repeats_what_came_before_is_said_once() -> None:
    def pieces(**more: Any) -> list[Content]:
        given = (("no ", "append"), ("thanks", "append"), ("no thanks", "replace"))
        return [Content.from_text(text, merge_mode=mode, **more) for text, mode in given]  # type: ignore[arg-type]

    declined = pieces(additional_properties={"core": {"model_output_kind": "refusal"}})
    async with open_client(agent(pieces(), declined)) as desk:
        assert "".join(chunk.choices[0].delta.content or "" for chunk in await desk.chunks()) == "no thanks"
        assert "".join(chunk.choices[0].delta.refusal or "" for chunk in await desk.chunks()) == "no thanks"
