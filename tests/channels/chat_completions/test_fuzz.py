"""Bodies of every shape: each is answered in the API's words, or refused in them, and nothing is left behind."""

import asyncio
import json
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from frontdesk import AgentFrameworkHost
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk_testing.internals import active_runs
from tests.examples import examples
from tests.scenarios.responses.cast import build_answering, call

JSON = {"content-type": "application/json"}
WHOLE, CHUNK = TypeAdapter(ChatCompletion), TypeAdapter(ChatCompletionChunk)

words = st.sampled_from(["", "hi", "a", "look", "data:image/png;base64,AAAA", "https://a.example/b.png", "\x00", "é"])
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
part = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "input_audio", "file", "refusal", "x"])},
    optional={
        "text": words | junk,
        "refusal": words,
        "image_url": st.fixed_dictionaries({"url": words}, optional={"detail": words}) | junk,
        "file": st.fixed_dictionaries({}, optional={"file_data": words, "filename": words, "file_id": words}) | junk,
        "input_audio": st.fixed_dictionaries({"data": st.just("AAAA"), "format": st.sampled_from(["wav", "x"])}) | junk,
    },
)
called = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b"])},
    optional={
        "type": st.sampled_from(["function", "custom", "x"]),
        "function": st.fixed_dictionaries({"name": words, "arguments": words}) | junk,
        "custom": st.fixed_dictionaries({"name": words, "input": words}) | junk,
    },
)
message = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "system", "developer"]) | junk,
        "content": words | st.lists(part, max_size=2) | junk,
    },
    optional={
        "tool_calls": st.lists(called, max_size=2) | junk,
        "tool_call_id": st.sampled_from(["a", "b"]) | junk,
        "name": words | junk,
        "refusal": words | junk,
    },
)
look = {"type": "function", "function": {"name": "look"}}
patch = {"type": "custom", "custom": {"name": "patch"}}
answered = st.sampled_from(
    [
        [
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "seen"},
        ],
        [{"role": "user", "content": "call look"}],
        [{"role": "user", "content": [{"type": "text", "text": "call patch"}]}],
    ]
)
body = st.fixed_dictionaries(
    {"messages": st.lists(message, min_size=1, max_size=3) | answered},
    optional={
        "stream": st.booleans(),
        "tools": st.just([look, patch]) | st.lists(st.sampled_from([look, patch]) | junk, max_size=3),
        "tool_choice": st.sampled_from(["auto", "none", "required", look]) | junk,
        "response_format": st.sampled_from([{"type": "text"}, {"type": "json_object"}]) | junk,
        "temperature": st.floats(-1, 3) | junk,
        "stop": words | st.lists(words, max_size=5) | junk,
        "n": st.just(1) | junk,
        "seed": st.integers(-5, 10**20) | junk,
        "metadata": st.dictionaries(words, words, max_size=2) | junk,
    },
)


def _answer(messages: list[Any]) -> list[Any]:
    said = messages[-1].text if messages else ""
    if said.startswith("call "):
        return [call(said.removeprefix("call "), input="x")]
    return ["{", "}"]


async def _ask(http: httpx.AsyncClient, sent: dict[str, Any]) -> int:
    answer = await http.post("/v1/chat/completions", content=json.dumps(sent), headers=JSON)
    assert answer.status_code in (200, 400), (sent, answer.text)
    if answer.status_code == 400:
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"]
    elif sent.get("stream"):
        *events, done, nothing = answer.text.split("\n\n")
        assert (done, nothing) == ("data: [DONE]", "")
        for event in events:
            # The package has no type for a custom call in a stream.
            if '"custom"' not in event:
                CHUNK.validate_json(event.removeprefix("data: "), strict=True)
    else:
        WHOLE.validate_json(answer.text, strict=True)
    return answer.status_code


async def _play(bodies: list[dict[str, Any]]) -> set[int]:
    host = AgentFrameworkHost(build_answering(_answer), channels=[ChatCompletionsChannel()])
    async with (
        host.app.router.lifespan_context(host.app),
        httpx.AsyncClient(transport=httpx.ASGITransport(host.app), base_url="http://127.0.0.1") as http,
    ):
        statuses = {await _ask(http, sent) for sent in bodies}
        assert not active_runs(host)
        return statuses


@examples(15)
@given(st.lists(body, min_size=4, max_size=12))
def test_any_body_is_answered_or_refused_in_the_words_of_the_api(bodies: list[dict[str, Any]]) -> None:
    asyncio.run(_play(bodies))


def test_both_are_among_them() -> None:
    said = {"messages": [{"role": "user", "content": "call patch"}], "tools": [look, patch]}
    assert asyncio.run(_play([said, {**said, "stream": True}, {"messages": [{}]}])) == {200, 400}
