"""Outputs of a workflow keep their modality on every channel (AUDIT 271)."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from agent_framework import Content, Executor, Message, WorkflowBuilder, WorkflowContext, handler
from openai import AsyncOpenAI

from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.framework.outputs import extract_messages, output_json, read_output
from frontdesk.serialization.codec import register_dataclass
from tests.channels.web.visiting import open_visitor
from tests.scenarios.messages.chat import MessagesHost, open_chat

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def picture() -> Content:
    return Content.from_data(PNG, "image/png")


PICTURE = str(picture().uri)


@dataclass
class Bill:
    """Data that a workflow returns."""

    item: str
    euros: int


register_dataclass(Bill, "audit.Bill")


class Emitter(Executor):
    """Returns the output that it was made with."""

    def __init__(self, output: Any) -> None:
        super().__init__("emitter")
        self._output = output

    @handler
    async def emit(self, messages: list[Message], context: WorkflowContext[Any, Any]) -> None:
        await context.yield_output(self._output)


def emits(output: Any) -> Any:
    def build() -> Any:
        one = Emitter(output)
        return WorkflowBuilder(name="emitter", start_executor=one, output_from=[one]).build()

    return build


@asynccontextmanager
async def open_host(output: Any) -> AsyncIterator[tuple[MessagesHost, AsyncOpenAI]]:
    doors = [ResponsesChannel(), ChatCompletionsChannel(), InvocationsChannel(), WebChatChannel()]
    async with (
        open_chat(emits(output), channels=doors) as host,
        AsyncOpenAI(base_url=f"{host.base_url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield host, client


async def answers_of(host: MessagesHost, client: AsyncOpenAI, chat_messages: int = 1) -> dict[str, Any]:
    """What each channel answers, by its name."""
    said: dict[str, Any] = {}
    whole: Any = await client.responses.create(input="go")
    said["responses"] = whole.output
    stream: Any = await client.responses.create(input="go", stream=True)
    said["responses stream"] = [event async for event in stream][-1].response.output
    completion: Any = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
    said["completions"] = completion.choices[0].message.content
    chunks: Any = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "go"}], stream=True
    )
    said["completions stream"] = "".join([c.choices[0].delta.content or "" async for c in chunks if c.choices])
    answer = await host.platform.http.post(f"{host.base_url}/invocations", json={"message": "go"})
    said["invocations"] = answer.json()
    ann = await host.platform.user("Ann")
    await host.platform.say(ann, "go")
    said["chat"] = await host.platform.wait_for_answers(ann.chat_id, chat_messages)
    async with open_visitor(host.base_url) as page:
        await page.say("go")
        said["page"] = (await page.wait_for_messages(2))[1:]
    return said


def texts_of(output: Any) -> list[str]:
    return [part.text for item in output for part in item.content]


async def test_audit_271_a_text_content_was_json_in_quotes() -> None:
    async with open_host(Content.from_text("a *word*")) as (host, client):
        said = await answers_of(host, client)
    assert texts_of(said["responses"]) == texts_of(said["responses stream"]) == ["a *word*"]
    assert said["completions"] == said["completions stream"] == "a *word*"
    assert said["invocations"]["text"] == "a *word*"
    assert said["invocations"]["outputs"] == [{"type": "text", "text": "a *word*"}]
    assert [one.text for one in said["chat"]] == ["a *word*"]
    assert [one["text"] for one in said["page"]] == ["a *word*"]


@pytest.mark.parametrize("as_list", [False, True], ids=["one", "list"])
async def test_audit_271_a_picture_was_a_python_repr(as_list: bool) -> None:
    """One content is one message, and so is a list of contents."""
    output = [Content.from_text("look: "), picture()] if as_list else picture()
    async with open_host(output) as (host, client):
        said = await answers_of(host, client, chat_messages=2 if as_list else 1)
    text = "look: " if as_list else ""
    everything = repr(said)
    assert "Content(" not in everything
    assert "agent_framework" not in everything
    for name in ("responses", "responses stream"):
        shown = json.dumps([item.model_dump() for item in said[name]])
        assert PICTURE.partition(",")[2] in shown
        assert text in shown
    for name in ("completions", "completions stream"):
        assert said[name] == f"{text}![image/png]({PICTURE})"
    contents = said["invocations"]["outputs"][0]
    assert [one["type"] for one in (contents if as_list else [contents])] == (["text", "data"] if as_list else ["data"])
    assert said["invocations"]["text"] == text
    media = [file for one in said["chat"] for file in one.media]
    assert [one.media_type for one in media] == ["image/png"]
    assert [one.text for one in said["chat"] if one.text] == ([text] if as_list else [])
    (shown,) = said["page"]
    assert (shown.get("text", ""), [file["media_type"] for file in shown["files"]]) == (text, ["image/png"])


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Bill("a_b_c", 3), '{"item":"a_b_c","euros":3}'),
        ({"a*b*": [1, None]}, '{"a*b*":[1,null]}'),
        ([1, 2], "[1,2]"),
        (True, "true"),
    ],
    ids=["dataclass", "mapping", "list", "bool"],
)
async def test_audit_271_data_is_json_on_every_channel(output: Any, expected: str) -> None:
    async with open_host(output) as (host, client):
        said = await answers_of(host, client)
    assert texts_of(said["responses"]) == texts_of(said["responses stream"]) == [expected]
    assert said["completions"] == said["completions stream"] == expected
    assert said["invocations"]["outputs"] == [json.loads(expected)]
    assert [one.text for one in said["chat"]] == [expected]
    assert [(one["text"], one["is_literal"]) for one in said["page"]] == [(expected, True)]


class Opaque:
    """No JSON form, and a representation that has an address of memory."""


class Texted(Opaque):
    def __str__(self) -> str:
        return "a text of its own"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Opaque(), '"Opaque"'),
        ({"a": Opaque()}, '{"a":"Opaque"}'),
        (Texted(), '"a text of its own"'),
        ({"n": 2**80}, '{"n":1208925819614629174706176}'),
        ("\ud83d", '"\\ud83d"'),
    ],
    ids=["opaque", "inside", "text", "integer", "surrogate"],
)
def test_audit_271_json_never_has_a_representation(value: Any, expected: str) -> None:
    assert output_json(value) == expected


def test_audit_271_contents_that_follow_each_other_are_one_message() -> None:
    output = [Content.from_text("a"), picture(), "b", picture(), {"c": 1}]
    said = [(one.role, [content.type for content in one.contents]) for one in extract_messages(output)]
    assert said == [
        ("assistant", ["text", "data"]),
        ("assistant", ["text"]),
        ("assistant", ["data"]),
        ("assistant", ["text"]),
    ]
    assert len(read_output(output, with_data=False) or ()) == 3
    assert read_output([]) == []
